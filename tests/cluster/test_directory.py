"""The file that names a domain: read with every mistake at its line, and never with a secret in it."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import msgspec
import pytest

from winready.cluster.directory import LARGEST, DirectoryError, parse_directory, read_directory
from winready.report.schemas import active_directory

GOOD = r"""
domain: corp.example.com
credential_spec: webapp
allowed_share: \\files.corp.example.com\webapp\incoming
denied_share: \\FILES.corp.example.com\finance
folder: C:\data\webapp
"""
VALIDATOR = jsonschema.Draft202012Validator(active_directory())


def mistakes(text: str) -> list[str]:
    with pytest.raises(DirectoryError) as caught:
        parse_directory(text.encode(), "d.yaml")
    return [str(item) for item in caught.value.mistakes]


def test_a_good_file() -> None:
    read = parse_directory(GOOD.encode(), "d.yaml")
    assert (read.domain, read.server) == ("corp.example.com", "files.corp.example.com")
    assert read.allowed_share == "\\\\files.corp.example.com\\webapp\\incoming"
    assert read.credential_specs == ["webapp"]
    document = json.loads(msgspec.json.encode(read))
    VALIDATOR.validate(document)
    assert parse_directory(json.dumps(document).encode(), "d.json") == read, "JSON is read as well"


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("domain: corp.example.com", "domain: corp", 2, "'corp' is not the DNS name of a domain, such as corp.example"),
        ("domain: corp.example.com", "domain: 12", 2, "expected text, found 12"),
        ("domain:", "domian:", 2, "unknown key 'domian'; did you mean 'domain'?"),
        ("credential_spec: webapp", "credential_spec: Web App", 3, "is not the name of a GMSACredentialSpec object"),
        ("webapp\\incoming", "webapp & del", 4, "is not a share"),
        ("webapp\\incoming", "%TEMP%", 4, "is not a share"),
        ("webapp\\incoming", "..\\admin$", 4, "is not a share"),
        (r"\\files.corp.example.com\webapp", r"files\webapp", 4, "is not a share"),
        (r"\\FILES.corp", r"\\other.corp", 5, "both shares must be of one server"),
        ("finance", "webapp\\incoming", 5, "allowed_share and denied_share are the same"),
        (r"C:\data", r"data", 6, "is not a folder of Windows nodes"),
        (r"C:\data\webapp", r"C:\a|b", 6, "is not a folder of Windows nodes"),
        ("folder", "domain", 6, "the key 'domain' stands here a second time"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_what_to_write(old: str, new: str, line: int, says: str) -> None:
    assert old in GOOD
    found = mistakes(GOOD.replace(old, new))
    assert any(item.startswith(f"d.yaml:{line}:") and says in item for item in found), found


def test_something_must_be_refused() -> None:
    without = GOOD.replace("denied_share: \\\\FILES.corp.example.com\\finance\n", "")
    assert "'denied_share'" in mistakes(without)[0]
    parse_directory(f"{without}denied_credential_spec: backup\n".encode(), "d.yaml")


@pytest.mark.parametrize(
    "added",
    [
        "password: hunter2-hunter2",
        "Passwort: hunter2-hunter2",
        "gmsa_pwd: hunter2-hunter2",
        "client-secret: hunter2-hunter2",
        "credentials: [{user: x, PASSWORD: hunter2-hunter2}]",
        "token: hunter2-hunter2",
        "password: a\npassword: hunter2-hunter2",
    ],
)
def test_a_secret_is_refused_with_the_reason_and_not_repeated(added: str) -> None:
    found = mistakes(f"{GOOD}{added}\n")
    assert found[0].startswith(("d.yaml:7:", "d.yaml:8:"))
    assert "looks like a secret: winready takes none" in found[0]
    assert "hunter2" not in "\n".join(found)


@pytest.mark.parametrize(
    "text", ["", "---\n---\n", "- a\n", "a: [", "\x00", "&a [*a]", "x: !!python/object:os.system {}"]
)
def test_files_of_another_kind(text: str) -> None:
    assert mistakes(text)[0].startswith("d.yaml:")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path, says in ((tmp_path / "none", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(DirectoryError, match=f"cannot be read: {says}"):
            read_directory(path)
    large = tmp_path / "large"
    large.write_bytes(b"#" * (LARGEST + 1))
    with pytest.raises(DirectoryError, match="this is another file"):
        read_directory(large)


def test_a_mounted_config_map_is_a_path_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "..data").mkdir()
    (tmp_path / "..data" / "domain.yaml").write_text(GOOD)
    (tmp_path / "domain.yaml").symlink_to(Path("..data") / "domain.yaml")
    assert read_directory(tmp_path / "domain.yaml").domain == "corp.example.com"
