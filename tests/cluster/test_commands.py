"""Commands as Windows and Linux want them, and what is read from their answers."""

from __future__ import annotations

import pytest

from winready.cluster.commands import read_blocks, write_file
from winready.cluster.stats import Usage


def test_a_line_that_cmd_would_misread_is_refused() -> None:
    assert write_file("windows", "C:\\a", "textz") == ["cmd", "/c", "echo textz>C:\\a"]
    assert write_file("linux", "/a", "textz", append=True) == ["sh", "-c", "echo textz>>/a"]
    with pytest.raises(ValueError, match="letter"):
        write_file("windows", "C:\\a", "text1")


@pytest.mark.parametrize(("output", "blocks"), [(b"blocks=50\r\n", 50), (b"", None), (b"blocks=\r\n", None)])
def test_only_a_program_that_got_to_its_end_says_how_much_memory_it_had(output: bytes, blocks: int | None) -> None:
    assert read_blocks(output) == blocks


def test_cores_are_counted_over_the_kubelets_stamps_unless_these_are_too_coarse() -> None:
    first = Usage(core_seconds=0, memory_bytes=0, stamped=100, read=0.0)
    assert Usage(core_seconds=30, memory_bytes=0, stamped=160, read=75.0).cores_since(first) == 0.5
    assert Usage(core_seconds=1, memory_bytes=0, stamped=103, read=2.0).cores_since(first) == 0.5
