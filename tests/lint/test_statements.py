"""The statements about fields and gates: whole, in known words, and none said twice."""

from __future__ import annotations

import pytest

from winready.features.audit.snapshot import bundled
from winready.lint import matrix, statements
from winready.lint.statements import EFFECTS, NEUTRAL, REASONS, Statements, of_gate

MOOT = ("rejected", "ignored", "fails")
"""Effects that leave nothing to say about what lies below a field."""
FEATURES = {feature.id for feature in matrix.load()}
FIELDS = {name for one in bundled().values() for name in one.fields or {}}
LINES = [(name, line) for name, lines in statements.fields().items() for line in lines.values()]


def test_lines_are_in_words_that_the_page_explains() -> None:
    for name, line in [*LINES, *statements.gates().items()]:
        assert line.effect in EFFECTS, name
        # That a field says nothing about Windows needs a reason; whatever it does there needs none.
        assert (line.reason in REASONS) == (line.effect == NEUTRAL), name
        assert set(line.features) <= FEATURES, name
        assert line.note == "" or line.note.endswith("."), name
        assert line.effect in (NEUTRAL, "supported") or line.note, name


def test_lines_speak_of_fields_that_exist() -> None:
    types = {name.rpartition(".")[0] for name in FIELDS}
    for name in statements.fields():
        kind, _, field = name.rpartition(".")
        assert name in FIELDS or (field == "*" and kind in types), name


def test_only_what_never_reaches_windows_is_stated_for_a_whole_type() -> None:
    for name, line in LINES:
        assert not name.endswith(".*") or line.effect in MOOT, name


@pytest.mark.parametrize("version", list(bundled()))
def test_no_line_repeats_what_a_rule_says(version: str) -> None:
    snapshot = bundled()[version]
    known = Statements(snapshot.fields or {}, snapshot.minor or 0)
    for name in statements.fields():
        # A rule for containers of all kinds may be wrong about those that cannot have the field at all.
        if known.by_rule(name):
            assert {line.effect for line in statements.fields()[name].values()} == {NEUTRAL}, name


def test_a_rule_speaks_for_the_fields_that_it_looks_at() -> None:
    known = Statements(bundled()["1.36"].fields or {}, 36)
    for field, effect, rule in [
        ("PodSpec.hostPID", "rejected", "pod-host-pid"),
        ("SecurityContext.privileged", "rejected", "sc-privileged"),
        ("Volume.nfs", "fails", "vol-nfs"),
        ("PodSpec.hostNetwork", "ignored", "pod-host-network"),
        ("EphemeralContainer.targetContainerName", "ignored", "ephemeral-target-container"),
    ]:
        statement = known.of(field)
        assert statement is not None
        assert (statement.effect, statement.rules) == (effect, (rule,)), field
    # A rule about some values, or about some pods, says nothing about the rest.
    protocol, user = known.of("ContainerPort.protocol"), known.of("PodSecurityContext.runAsNonRoot")
    assert protocol is not None
    assert user is not None
    assert (protocol.effect, protocol.rules) == ("different", ("ctr-port-sctp",))
    assert (user.effect, user.rules) == ("different", ("hpc-run-as-non-root",))
    assert known.of("PodSpec.landlock") is None


def test_gates_are_known_by_rules_features_or_a_line() -> None:
    for gate, effect in [
        ("WindowsGracefulNodeShutdown", "different"),
        ("UserNamespacesSupport", "rejected"),
        ("NodeLogQuery", "supported"),
        ("MemoryQoS", NEUTRAL),
    ]:
        statement = of_gate(gate)
        assert statement is not None
        assert statement.effect == effect
        assert statement.words
    assert of_gate("WindowsTimeTravel") is None


def test_every_gate_line_is_about_a_gate_of_a_known_version() -> None:
    gates = {name for one in bundled().values() for name in one.gates or {}}
    assert set(statements.gates()) <= gates
