"""The sound clusters: each is another one, is known from somewhere, and asks for flags that exist."""

from __future__ import annotations

from click.testing import CliRunner

from winready.cli.main import cli
from winready.proof.healthy.table import PLAIN, VARIANTS
from winready_sandbox.faults.table import FAULTS
from winready_sandbox.plan import Plan


def test_every_sound_cluster_is_another_one_and_says_where_it_is_known_from() -> None:
    assert next(iter(VARIANTS.values())) is PLAIN
    assert len({variant.sentence for variant in VARIANTS.values()}) == len(VARIANTS)
    assert not set(VARIANTS) & set(FAULTS)
    for variant in VARIANTS.values():
        assert variant.fact, variant.name
        assert variant.sentence.endswith("."), variant.name
        assert Plan(**variant.plan).nodes, variant.name
        assert bool(variant.blocked) == bool(variant.says), variant.name


def test_there_are_more_than_25_that_must_pass() -> None:
    assert len([variant for variant in VARIANTS.values() if not variant.blocked]) > 25


def test_their_flags_are_flags_of_a_run() -> None:
    usage = CliRunner().invoke(cli, ["run", "--help"]).output
    for variant in VARIANTS.values():
        for flag in (word for word in variant.flags if word.startswith("--")):
            assert flag in usage, variant.name
