"""The table of upstream tests: whole, consistent, and honest about what stays unproven."""

from __future__ import annotations

import pytest

from winready.features import catalogue
from winready.spec.loader import load_standard
from winready.spec.versions import Version
from winready.upstream.listing import key
from winready.upstream.mapping import load_mapping

MINORS = [Version(1, minor) for minor in range(23, 38)]


def test_every_requirement_in_the_table_is_one_of_the_standard_and_every_test_is_used() -> None:
    mapping = load_mapping()
    assert set(mapping.requirements) <= {item.id for item in load_standard().requirements}
    used = {name for coverage in mapping.requirements.values() for name in coverage.tests}
    used |= {name for entry in catalogue.load().values() for name in entry.tests}
    assert used == set(mapping.tests)


def test_what_the_standard_says_upstream_verifies_is_what_whole_proofs_are_mapped_for() -> None:
    mapping = load_mapping()
    declared = {item.id for item in load_standard().requirements if "upstream" in item.verifiers}
    assert declared == {name for name in mapping.requirements for at in MINORS if mapping.choose(name, at).full}


@pytest.mark.parametrize("version", MINORS, ids=str)
def test_no_two_tests_of_a_version_share_a_text(version: Version) -> None:
    texts = [text for test in load_mapping().tests.values() if (text := test.text(version))]
    assert len({key(text) for text in texts}) == len(texts) > 40


def test_choices_follow_the_version() -> None:
    mapping = load_mapping()
    recreated = "core.network.service-recreated"
    assert mapping.choose(recreated, Version(1, 36)).tests == ("service-recreated",)
    assert mapping.choose(recreated, Version(1, 36)).full
    early = mapping.choose(recreated, Version(1, 25))
    assert early.tests == ("services-up-and-down",)
    assert not early.full
    assert early.unproven
    reboot = "extend.hostprocess.node-rejoins"
    assert mapping.choose(reboot, Version(1, 30)).full
    assert mapping.choose(reboot, Version(1, 36)).tests == ()


def test_a_test_for_linux_proves_nothing_but_the_rest_of_its_set_still_shows_a_part() -> None:
    choice = load_mapping().choose("core.network.dns-custom", Version(1, 24))
    assert not choice.full
    assert "host-aliases" not in choice.tests
    assert choice.tests


def test_whatever_is_not_a_whole_proof_says_what_it_leaves_open() -> None:
    mapping = load_mapping()
    for version in MINORS:
        for requirement in mapping.requirements:
            choice = mapping.choose(requirement, version)
            assert choice.full or bool(choice.tests) == bool(choice.unproven), (requirement, version)
