"""What files of volumes are compared with, and how a difference is told."""

from __future__ import annotations

import base64

from winready.checks.core_storage.files import difference
from winready.checks.core_storage.sources import BINARY, COMES, GOES, Group, Source
from winready.cluster.commands import numbered, read_shown, show_files, write_lines


def test_a_difference_names_file_and_line() -> None:
    right = numbered("text", 3)
    assert difference("f", right, right) == ""
    assert difference("f", [], right) == "f is empty or not there"
    assert difference("f", right[:2], right) == "f has 2 lines, not 3"
    assert difference("f", [right[0], "x", right[2]], right) == "line 2 of f is 'x', not '2 text'"
    assert difference("f", ["x"], []) == "f is there: 'x'", "it must not be"


def test_files_that_one_command_printed_are_told_apart_even_when_one_is_cut() -> None:
    assert show_files(["C:\\a", "C:\\b"]) == [
        "cmd",
        "/c",
        "echo.&echo #winready C:\\a&type C:\\a&echo.&echo #winready C:\\b&type C:\\b",
    ]
    printed = b"\r\n#winready C:\\a\r\n1 text\n2 te\r\n#winready C:\\b\r\n\r\n#winready C:\\c\r\nx\r\n"
    assert read_shown(printed) == {"C:\\a": ["1 text", "2 te"], "C:\\b": [], "C:\\c": ["x"]}
    assert write_lines("C:\\a", "text", 7)[2] == "(for /l %i in (1,1,7) do @echo %i text)>C:\\a"


def test_a_source_changes_all_its_keys_at_once() -> None:
    source = Source()
    old, new = source.data(secret=False), source.data(secret=False, update=True)
    assert GOES in old["data"]
    assert COMES not in old["data"]
    assert new["data"][GOES] is None, "a patch takes it out"
    assert COMES in new["data"]
    assert old["binaryData"][BINARY] != new["binaryData"][BINARY]
    secret = source.data(secret=True, update=True)["data"]
    assert secret[GOES] is None
    assert base64.b64decode(secret[COMES]).decode().splitlines() == source.new.texts[COMES]


def test_old_files_and_new_ones_are_told_from_a_mixture() -> None:
    group = Group("the volume", "C:\\v", Source())
    old, new = group.files(group.source.old), group.files(group.source.new)
    assert str(group.state(old)) == "the volume is old"
    assert str(group.state(new)) == "the volume is new"
    assert not group.state(new).mixed
    small, large = "C:\\v\\a-small", "C:\\v\\large"
    torn = group.state({**old, small: new[small]})
    assert torn.mixed
    assert f"mixture: {small} new" in str(torn)
    cut = group.state({**new, large: new[large][:7]})
    assert cut.mixed
    assert "has 7 lines, not 100" in str(cut)
