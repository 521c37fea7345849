"""The scripts for Windows machines: they parse, are in the language that 5.1 and 7 share, and hold together."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from node.powershell import calls, functions, parameters_of, parse, problems, unknown_variables, walk
from winready.node import addons
from winready.node.bundle import scripts
from winready.node.joining import Joining, join_line, upgrade_line
from winready.node.opened import Opened

SCRIPTS = scripts()
ENTRY = SCRIPTS["node.ps1"].decode()
ADDONS = Path(addons.__file__).parent / "data"
CMDLETS = {
    "convertfrom-json", "convertto-json", "foreach-object", "get-acl", "get-command", "get-process", "get-service",
    "invoke-webrequest", "new-object", "new-service", "read-host", "select-object", "set-acl", "set-strictmode",
    "sort-object", "start-service", "start-sleep", "stop-service", "where-object",
    "write-host",
}  # fmt: skip
"""Of every Windows PowerShell 5.1, and of stand-ins for Windows."""
ONLY_WINDOWS = {
    "parts/system.ps1": {
        "add-mppreference", "enable-windowsoptionalfeature", "get-mppreference", "get-netfirewallportfilter",
        "get-netfirewallrule", "get-scheduledtask", "get-windowsoptionalfeature", "new-netfirewallrule",
        "new-scheduledtaskaction", "new-scheduledtaskprincipal", "new-scheduledtasktrigger", "register-scheduledtask",
        "remove-mppreference", "remove-netfirewallrule", "restart-computer", "unregister-scheduledtask",
    },
    "parts/hns.ps1": {
        "get-hnsendpoint", "get-hnsnetwork", "get-hnspolicylist", "remove-hnsendpoint", "remove-hnsnetwork",
        "remove-hnspolicylist",
    },
}  # fmt: skip
"""What only a real Windows has, and the one part that may call it."""
AUTOMATIC = {"_", "psversiontable", "executioncontext", "null", "true", "false", "matches", "psscriptroot", "args"}
SHARED = {"node", "partnames", "accessadministrators", "accesssystem", "accessusers", "accesscreator"}
DEFINED = {name: (path, node) for path, source in SCRIPTS.items() for name, node in functions(source).items()}


@pytest.mark.parametrize("path", SCRIPTS)
def test_it_parses_and_is_the_common_language(path: str) -> None:
    assert problems(SCRIPTS[path]) == []


@pytest.mark.parametrize("path", sorted(ADDONS.glob("*.ps1")), ids=lambda path: path.name)
def test_scripts_of_the_add_ons_are_the_common_language_too(path: Path) -> None:
    assert problems(path.read_bytes()) == []


@pytest.mark.parametrize("path", SCRIPTS)
def test_lines_end_as_they_should_and_parts_stay_small(path: str) -> None:
    source = SCRIPTS[path]
    assert source.endswith(b"\n")
    assert b"\r" not in source
    assert b"\t" not in source
    assert source.count(b"\n") <= 400


def test_the_entry_names_every_part_once() -> None:
    listed = re.findall(r"'([a-z]+)'", ENTRY[ENTRY.index("$PartNames = @(") : ENTRY.index("$problem =")])
    assert Counter(f"parts/{name}.ps1" for name in listed) == Counter(set(SCRIPTS) - {"node.ps1"})


def test_nothing_of_a_part_runs_before_the_bundle_is_verified() -> None:
    assert ENTRY.index("Get-BundleProblem -Root $PSScriptRoot -Digest $BundleDigest") < ENTRY.index("\n    . (")


def test_every_function_has_one_definition_and_is_used() -> None:
    names = Counter(name for source in SCRIPTS.values() for name in functions(source))
    assert [name for name, count in names.items() if count > 1] == []
    used = {name for source in SCRIPTS.values() for name, _, _ in calls(source)}
    assert set(DEFINED) - used == set()


@pytest.mark.parametrize("path", SCRIPTS)
def test_every_command_is_there_where_it_is_called(path: str) -> None:
    known = set(DEFINED) | CMDLETS | ONLY_WINDOWS.get(path, set())
    found = {
        f"{name} (line {line})" for name, line, _ in calls(SCRIPTS[path]) if name not in known and ".." not in name
    }
    assert found == set()


@pytest.mark.parametrize("path", SCRIPTS)
def test_our_own_functions_are_called_with_parameters_that_they_have(path: str) -> None:
    wrong = []
    for name, line, given in calls(SCRIPTS[path]):
        if name in DEFINED:
            where, node = DEFINED[name]
            unknown = set(given) - parameters_of(SCRIPTS[where], node)
            wrong += [f"line {line}: {name} -{one}" for one in unknown]
    assert wrong == []


@pytest.mark.parametrize("name", DEFINED)
def test_a_function_reads_no_variable_that_nobody_set(name: str) -> None:
    path, node = DEFINED[name]
    assert unknown_variables(SCRIPTS[path], node, AUTOMATIC | SHARED) == set()


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("Get-Item a && Get-Item b", "pipeline chains"),
        ("Get-Item a || Get-Item b", "pipeline chains"),
        ("$a = $b ? 1 : 2", "conditional operator"),
        ("$a = $b ?? 1", "??"),
        ("$a ??= 1", "??"),
        ("$a = ${b}?.Length", "?."),
        ("$a = ${b}?[0]", "?["),
        ("class Node { [string]$Name }", "classes"),
        ("enum Kind { One }", "classes"),
        ("1..3 | ForEach-Object -Parallel { $_ }", "-Parallel"),
        ("$a = ConvertFrom-Json -InputObject $b -AsHashtable", "-AsHashtable"),
        ("Get-Content a -AsByteStream", "-AsByteStream"),
        ("Invoke-WebRequest -Uri $u -SkipCertificateCheck", "never right"),
        ("Set-Content a -Encoding utf8NoBOM", "encoding"),
        ("Remove-Service -Name kubelet", "cmdlet of PowerShell 7"),
        ("Set-Service -Name kubelet -BinaryPathName x", "no -BinaryPathName"),
        ("if ($IsWindows) { 1 }", "not set in 5.1"),
        ("Invoke-Expression $text", "never run as code"),
        ("iex $text", "never run as code"),
        ("& ([scriptblock]::Create($text))", "never run as code"),
        ("$a = [IO.Path]::Join('a', 'b')", "Path.Join"),
        ("$a = Join-Path $b c d", "two parts"),
        ("[IO.File]::Move($a, $b, $true)", "does not overwrite"),
        ("Get-CimInstance Win32_OperatingSystem", "CIM"),
        ("try { 1 }\n$a = 2", "try"),
        ('$a = "$name: x"', "read as a scope"),
        ("$a = 'caf\u00e9'", "not ASCII"),
        ("$a = (", "does not parse"),
        ("if ($a) { 1", "does not parse"),
        ("function Foo { clean { 1 } }", "clean"),
        ('$a = "$(Get-Item a && Get-Item b)"', "pipeline chains"),
    ],
)
def test_the_reader_notices(source: str, why: str) -> None:
    assert any(why in problem for problem in problems(source.encode()))


@pytest.mark.parametrize(
    "source",
    [
        "# a && b || c ?? d",
        "$a = 'a && b ?. c class X {'",
        '$a = "is it ? or not: $($b.Name)"',
        "$a = @(1, 2 | Where-Object { $_ -gt 1 })",
        "$a | ? { $_ }",
        "$a = Join-Path $b c",
        "[IO.File]::Move($a + '.new', $b)",
        "$a = '(?:x)'",
        '$a = "${name}: x $env:Path"',
        "try { 1 } finally { 2 }",
    ],
)
def test_the_reader_raises_no_false_alarm(source: str) -> None:
    assert problems(source.encode()) == []


def test_the_readers_of_calls_and_variables_notice() -> None:
    source = b"function Get-A {\n    param([string]$One)\n    return $Two\n}\nGet-A -Tow 1\n"
    node = functions(source)["get-a"]
    assert parameters_of(source, node) == {"one"}
    assert unknown_variables(source, node, AUTOMATIC) == {"two"}
    assert list(calls(source)) == [("get-a", 5, ["tow"])]


def test_the_token_never_goes_where_others_read() -> None:
    """Neither to a line of the log nor to a command line: only into files that are closed before they are filled."""
    for path, source in SCRIPTS.items():
        text = source.decode()
        for line in text.splitlines():
            if "Write-Line" in line or "Invoke-Checked" in line or "Invoke-Program" in line:
                assert "$Token" not in line, f"{path}: {line}"
    join = SCRIPTS["parts/join.ps1"].decode()
    assert "Write-Secret -Path $path -Text (Get-JoinConfiguration -Token $Token" in join
    access = SCRIPTS["parts/access.ps1"].decode()
    secret = access[access.index("function Write-Secret") :]
    assert secret.index("Set-Access") < secret.index("WriteAllText")


def test_the_cluster_is_asked_before_anything_is_changed() -> None:
    for path, question in (("parts/join.ps1", "Assert-TokenKnown"), ("parts/upgrade.ps1", "Assert-ServerFits")):
        text = SCRIPTS[path].decode()
        command = text[text.rindex("\nfunction Invoke-") :]
        assert 0 < command.index(f"{question}") < command.index("Invoke-Beginning"), path
    # Whoever answered is judged: nothing that a server said is used by a caller that has not looked at its certificate.
    server = SCRIPTS["parts/server.ps1"].decode()
    for function in server.split("\nfunction ")[1:]:
        if "= Invoke-ApiRequest" in function:
            assert "Test-ServerCertificate -Answer $answer" in function


def test_every_step_is_tested_and_applied() -> None:
    steps = 0
    for source in SCRIPTS.values():
        for name, line, given in calls(source):
            if name == "new-step":
                steps += 1
                assert {"name", "test", "apply"} <= set(given), line
    assert steps >= 15


def test_exit_codes_are_those_that_are_documented() -> None:
    codes = {"0", "1", "2", "3010"}
    for source in SCRIPTS.values():
        assert set(re.findall(rb"\bexit (\d+)", source)) <= {code.encode() for code in codes}
    assert ENTRY.endswith("exit ([int]@($code)[-1])\n")
    assert all(re.search(rf"\b{code}\b", ENTRY[: ENTRY.index("#>")]) for code in codes)


def test_accounts_are_named_by_identifier() -> None:
    for path, source in SCRIPTS.items():
        assert not re.search(rb"BUILTIN\\|NT AUTHORITY|Everyone|Authenticated Users", source), path


def test_strings_hold_no_host_name() -> None:
    for path, source in SCRIPTS.items():
        urls = set(re.findall(rb"https?://[^\s'\"]+", source))
        assert urls <= {b"http://127.0.0.1:10248/healthz"}, path


def test_the_tree_is_walked_to_its_leaves() -> None:
    assert sum(1 for _ in walk(DEFINED["invoke-join"][1])) > 100


def regexes(function: str) -> list[tuple[str, str]]:
    """The regular expressions that a function replaces by or matches with, as Python reads them."""
    path, node = DEFINED[function]
    text = SCRIPTS[path][node.start_byte : node.end_byte].decode()
    found = re.findall(r"\[regex\]::(?:Replace|Match|Matches)\((.*?), '([^']*)'(?:, '([^']*)')?\)", text)
    return [(form, re.sub(r"\$(\d)", r"\\\1", put.replace("\\", "\\\\"))) for _, form, put in found]


@pytest.mark.parametrize(
    "argument",
    [
        "",
        "plain",
        "two words",
        'say "hi"',
        "C:\\Program Files\\x\\",
        'a\\"b c',
        "a\\\\",
        "tab\there",
        "--x=",
        '\\\\"\\\\ "',
    ],
)
def test_arguments_are_quoted_as_windows_splits_them(argument: str) -> None:
    """The very expressions of the script against Python's own quoting for Windows."""
    (inner, inner_put), (end, end_put) = regexes("convertto-argument")
    quoted = argument
    if argument == "" or re.search(r'[\s"]', argument):
        quoted = '"' + re.sub(end, end_put, re.sub(inner, inner_put, argument)) + '"'
    assert quoted == subprocess.list2cmdline([argument])


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('KUBELET_KUBEADM_ARGS="--a=b --c=npipe:////./pipe/x"\n', ["--a=b", "--c=npipe:////./pipe/x"]),
        ('KUBELET_KUBEADM_ARGS=""\n', []),
        ("", []),
        ("KUBELET_KUBEADM_ARGS=--a=b\r\n", ["--a=b"]),
        # The strip of upstream's script eats letters of the name, and its evaluation would run the rest.
        ('KUBELET_KUBEADM_ARGS="--KUBE=1 $(calc);calc"\n', ["--KUBE=1", "$(calc);calc"]),
        ('KUBELET_KUBEADM_ARGS="--l=\\"a b\\" --p=C:\\\\x"\n', ["--l=a b", r"--p=C:\x"]),
        ('OTHER="x"\nKUBELET_KUBEADM_ARGS="--a=b"\n', ["--a=b"]),
    ],
)
def test_the_flags_of_kubeadm_are_read_and_never_run(text: str, arguments: list[str]) -> None:
    line, escapes, words = regexes("convertfrom-kubeadmflags")
    match = re.search(line[0], text)
    found = []
    if match:
        value = match[1]
        if len(value) >= 2 and value[0] == value[-1] == '"':
            value = re.sub(escapes[0], escapes[1], value[1:-1])
        found = [part.replace('"', "") for part in re.findall(words[0], value)]
    assert found == arguments


def test_the_join_line_is_powershell_and_gives_the_entry_what_it_takes() -> None:
    joining = Joining(
        token="abcdef.0123456789abcdef",
        expires="2026-01-31T12:30:00Z",
        endpoint="",
        ca_hashes=["sha256:1"],
        signed=True,
    )
    opened = Opened(parameters=None, digest="a" * 64, entry_digest="b" * 64)  # type: ignore[arg-type]
    for bundle in (None, opened):
        line = join_line(joining, bundle).encode()
        assert problems(line) == []
        name, _, given = next(call for call in calls(line) if call[0] == ".\\node.ps1")
        assert name
        assert set(given) <= parameters_of(SCRIPTS["node.ps1"], parse(SCRIPTS["node.ps1"]))
        assert {"token", "tokenexpires", "cahash"} <= set(given)


def test_the_upgrade_line_is_powershell_and_gives_the_entry_what_it_takes() -> None:
    line = upgrade_line("a" * 64, "b" * 64).encode()
    assert problems(line) == []
    (given,) = [call[2] for call in calls(line) if call[0] == ".\\node.ps1"]
    assert set(given) == {"bundledigest"} <= parameters_of(SCRIPTS["node.ps1"], parse(SCRIPTS["node.ps1"]))
