"""``winready certify`` and ``winready verify``: what is refused, what is vouched for, and no byte can be changed."""

from __future__ import annotations

import hashlib
import io
import json
import random
import re
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from report import samples
from winready.cli.main import cli
from winready.report.bundle import archive, making, verifying
from winready.report.bundle.product import Product
from winready.report.record import Record

PRODUCT = (
    "--vendor",
    "Shop",
    "--product-name",
    "Shop K8s",
    "--product-version",
    "1.4",
    "--contact",
    "k8s@shop.example",
)
DNS = "core.network.dns-internal"
THREE = samples.inventory(windows=3)
SIMULATED = msgspec.structs.replace(samples.inventory(), simulated=True)
NARROWED = msgspec.structs.replace(
    THREE, nodes=[*THREE.nodes[:4], msgspec.structs.replace(THREE.nodes[4], left_out="not chosen by --node-selector")]
)
CORDONED = msgspec.structs.replace(
    THREE, nodes=[*THREE.nodes[:4], msgspec.structs.replace(THREE.nodes[4], unusable="it is cordoned")]
)
THREE_LINUX = samples.inventory(linux=3)


def without_linux(files: dict[str, bytes]) -> None:
    """Hide from the claim what was not judged."""
    claim = json.loads(files["certificate.json"])
    del claim["linux_not_judged"]
    files["certificate.json"] = json.dumps(claim, indent=2).encode() + b"\n"


def certify(base: Path, *arguments: str) -> Result:
    command = ["certify", "--report-dir", str(base), "--output", str(base / "b.tar.gz"), *arguments]
    return CliRunner().invoke(cli, command)


def verify(path: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["verify", str(path), *arguments])


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    private, public = tmp_path / "key.pem", tmp_path / "key.pub"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return private, public


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    samples.write_run(tmp_path)
    result = certify(tmp_path, *PRODUCT)
    assert result.exit_code == 0, result.output
    return tmp_path / "b.tar.gz"


def test_a_whole_run_becomes_a_certificate_that_verifies(bundle: Path) -> None:
    result = verify(bundle)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Shop: Shop K8s 1.4\nPass, Kubernetes v1.36.0, run 261101-101500-ab12\n")
    assert "✓ by the rules, the 24 outcomes in the journal give the verdict Pass" in result.stdout
    assert "? cannot tell who made it: it is not signed" in result.stdout
    assert result.stdout.endswith("Intact\n")


def test_ordinary_tools_read_it(bundle: Path) -> None:
    with tarfile.open(bundle, "r:gz") as tar:
        names = tar.getnames()
        report = tar.extractfile("report.html")
        assert report is not None
        assert b"not a certificate" not in report.read()
    assert {"certificate.json", "product.yaml", "specification.yaml", "run.json", "journal.jsonl"} < set(names)
    files = archive.unpack(bundle.read_bytes())
    for line in files["SHA256SUMS"].decode().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256(files[name]).hexdigest() == digest


def test_the_same_run_gives_the_same_bytes(bundle: Path, keys: tuple[Path, Path]) -> None:
    first = bundle.read_bytes()
    certify(bundle.parent, *PRODUCT)
    assert bundle.read_bytes() == first
    signed = []
    for _ in range(2):
        certify(bundle.parent, *PRODUCT, "--key", str(keys[0]))
        signed.append(bundle.read_bytes())
    assert signed[0] == signed[1] != first


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"ids": [DNS]}, "the run is partial"),
        ({"outcomes": {DNS: "failed"}}, "the verdict is Fail"),
        ({"settings": {"sandbox": True}}, "sandbox"),
        ({"settings": {"time_scale": 25.0}}, "time scale of 25"),
        ({"found": SIMULATED}, "it ran on the sandbox, a simulated cluster"),
        (
            {"found": samples.inventory(windows=3), "left_out": {"windows-3": "only 2 Windows nodes are judged"}},
            "not all usable Windows nodes were judged, windows-3 were not",
        ),
        ({"found": NARROWED}, "not all usable Windows nodes were judged, windows-3 were not"),
        ({"digest": "sha256:" + "0" * 64}, "a modified specification"),
        ({"conformance": False}, "rule.linux-conformance is not shown"),
        (
            {"found": samples.inventory(windows=1), "waived": True},
            "rule.cluster-size was waived by --allow-small-cluster",
        ),
    ],
)
def test_what_no_certificate_can_rest_on_is_refused_and_drafted_only_as_such(
    tmp_path: Path, given: dict[str, Any], reason: str
) -> None:
    samples.write_run(tmp_path, **given)
    result = certify(tmp_path, *PRODUCT)
    assert result.exit_code == 1
    assert reason in result.stderr
    assert not (tmp_path / "b.tar.gz").exists()
    result = certify(tmp_path, *PRODUCT, "--draft")
    assert result.exit_code == 0, result.output
    files = archive.unpack((tmp_path / "b.tar.gz").read_bytes())
    for name in ("report.html", "certificate.html", "README.txt", "certificate.json", "junit.xml"):
        assert reason in files[name].decode(), name
    assert 'class="sheet draft"' in files["certificate.html"].decode()
    result = verify(tmp_path / "b.tar.gz")
    assert result.exit_code == 3
    assert "Intact, but a draft and no certificate:" in result.stdout
    assert reason in result.stdout


def test_a_draft_of_a_faultless_run_is_a_certificate_all_the_same(bundle: Path) -> None:
    assert certify(bundle.parent, *PRODUCT, "--draft").exit_code == 0
    assert verify(bundle).exit_code == 0


def test_any_changed_byte_is_refused(bundle: Path) -> None:
    data = bundle.read_bytes()
    chance = random.Random(7)
    places = {*range(120), *range(len(data) - 120, len(data)), *chance.sample(range(len(data)), 400)}
    for place in places:
        changed = bytearray(data)
        changed[place] ^= 1 << chance.randrange(8)
        assert not verifying.verify(bytes(changed)).intact, place
    for other in (data[:-1], data + b"\x00", data + data, data[:5000], b""):
        assert not verifying.verify(other).intact


def repacked(bundle: Path, change: Callable[[dict[str, bytes]], None]) -> verifying.Checked:
    """A bundle whose maker changed something and put all digests right again."""
    files = archive.unpack(bundle.read_bytes())
    change(files)
    listed = {name: text for name, text in files.items() if name not in (making.SUMS, making.SIGNATURE)}
    files[making.SUMS] = making.digests(listed)
    return verifying.verify(archive.pack(files))


def replace(name: str, old: bytes, new: bytes, times: int = -1) -> Callable[[dict[str, bytes]], None]:
    def change(files: dict[str, bytes]) -> None:
        assert old in files[name]
        files[name] = files[name].replace(old, new, times)

    return change


def drop(name: str) -> Callable[[dict[str, bytes]], None]:
    """Leave the outcome of something out of the journal."""

    def change(files: dict[str, bytes]) -> None:
        lines = files["journal.jsonl"].splitlines(keepends=True)
        kept = [line for line in lines if f'"result":{{"id":"{name}"'.encode() not in line]
        assert len(kept) == len(lines) - 1
        files["journal.jsonl"] = b"".join(kept)

    return change


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (replace("report.html", b"Windows", b"Winners", 1), "report.html does not follow from the journal"),
        (replace("run.json", b"windows-1", b"windows-9", 1), "run.json does not follow"),
        (replace("certificate.json", b'"Pass"', b'"Best"'), "certificate.json does not follow"),
        (replace("product.yaml", b"Shop", b"Shoe", 1), "product.yaml does not follow"),
        (replace("junit.xml", b"windows-1", b"windows-9", 1), "junit.xml does not follow"),
        (replace("journal.jsonl", b'"outcome":"passed"', b'"outcome":"failed"', 1), "by the rules the verdict is Fail"),
        (replace("journal.jsonl", b'"build":"10.0.20348"', b'"build":""'), "no proof that a Windows container"),
        (
            replace("journal.jsonl", b"e2e-test-images/agnhost", b"e2e-test-images/iis"),
            "rule.images is failed, not passed",
        ),
        (replace("journal.jsonl", b'"sha256:1"', b'"sha256:2"', 1), "rule.images is failed, not passed"),
        (replace("journal.jsonl", b'"os":"linux"', b'"os":"bsd"', 1), "rule.cluster-size is failed, not passed"),
        (replace("journal.jsonl", b'"tests":["0', b'"tests":["g'), "rule.linux-conformance is blocked, not passed"),
        (replace("journal.jsonl", b'"level":"core"', b'"level":"advisory"'), "is not a requirement of level"),
        (replace("journal.jsonl", b'{"event":"run-finished"', b'{"event":"run-vanished"'), "journal cannot be read"),
        (drop("rule.images"), "rule.images has no outcome"),
        (drop(DNS), f"{DNS} was selected and has no outcome"),
        (replace("specification.yaml", b"core", b"cure", 1), "specification in the bundle is broken"),
        (lambda files: files.pop("README.txt"), "missing or do not belong"),
        (lambda files: files.update({"extra.txt": b"x"}), "missing or do not belong"),
        (lambda files: files.update({"certificate.json": b"{}"}), "certificate.json cannot be read"),
    ],
)
def test_a_maker_who_puts_the_digests_right_is_still_found_out(
    bundle: Path, change: Callable[[dict[str, bytes]], None], why: str
) -> None:
    checked = repacked(bundle, change)
    assert not checked.intact
    assert why in " ".join(checked.broken)


def test_a_result_whose_tests_were_never_written_down_cannot_be_judged_again(bundle: Path) -> None:
    files = archive.unpack(bundle.read_bytes())
    tests = re.search(rb',"tests":\[[^]]*\],"strangers":\[\]', files["journal.jsonl"])
    assert tests is not None
    checked = repacked(bundle, replace("journal.jsonl", tests[0], b""))
    assert any("older than the record of which conformance tests ran" in line for line in checked.cannot_tell)


def test_a_node_that_nobody_could_use_is_named_in_the_certificate(tmp_path: Path) -> None:
    samples.write_run(tmp_path, found=CORDONED)
    result = certify(tmp_path, *PRODUCT)
    assert result.exit_code == 0, result.output
    files = archive.unpack((tmp_path / "b.tar.gz").read_bytes())
    claim = json.loads(files["certificate.json"])
    assert claim["verdict"] == "Pass (2 of 3 Windows nodes judged)"
    assert claim["not_judged"] == {"windows-3": "it is cordoned"}
    assert "not judged: windows-3: it is cordoned" in files["README.txt"].decode()
    assert verify(tmp_path / "b.tar.gz").exit_code == 0


def test_linux_nodes_beside_the_two_are_named_in_the_certificate_and_hinder_none(tmp_path: Path) -> None:
    why = "2 Linux nodes are enough as the other side"
    samples.write_run(tmp_path, found=THREE_LINUX, left_out={"linux-3": why})
    result = certify(tmp_path, *PRODUCT)
    assert result.exit_code == 0, result.output
    files = archive.unpack((tmp_path / "b.tar.gz").read_bytes())
    claim = json.loads(files["certificate.json"])
    assert (claim["verdict"], claim.get("not_judged")) == ("Pass", None)
    assert claim["linux_not_judged"] == {"linux-3": why}
    assert f"not judged: linux-3: {why}" in files["README.txt"].decode()
    assert "1 of the cluster's Linux nodes" in files["report.html"].decode().replace("&#39;", "'")
    assert 'name="winready.linux-not-judged" value="linux-3"' in files["junit.xml"].decode()
    assert verify(tmp_path / "b.tar.gz").exit_code == 0
    hidden = repacked(tmp_path / "b.tar.gz", without_linux)
    assert "certificate.json does not follow from the journal" in " ".join(hidden.broken)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (
            b'"windows_nodes":["windows-1","windows-2"]',
            b'"windows_nodes":["windows-1","windows-2","windows-3"]',
            "gave",
        ),
        (
            b'"windows_nodes":["windows-1","windows-2"]',
            b'"windows_nodes":["windows-1","windows-2","windows-9"]',
            "is no",
        ),
        (b'"coverage":"2 of 3 Windows nodes judged"', b'"coverage":""', "by the rules the verdict is Pass (2 of 3"),
    ],
)
def test_a_node_cannot_be_said_to_be_judged_without_evidence_from_there(
    tmp_path: Path, old: bytes, new: bytes, why: str
) -> None:
    samples.write_run(tmp_path, found=THREE, left_out={"windows-3": "only 2 Windows nodes are judged (--nodes)"})
    certify(tmp_path, *PRODUCT, "--draft")
    checked = repacked(tmp_path / "b.tar.gz", replace("journal.jsonl", old, new))
    assert why in " ".join(checked.broken)


def test_nodes_that_say_they_are_simulated_outweigh_a_record_that_denies_it(tmp_path: Path) -> None:
    marked = [msgspec.structs.replace(node, labels={"sandbox.winready.io/simulated": "true"}) for node in THREE.nodes]
    samples.write_run(tmp_path, found=msgspec.structs.replace(THREE, nodes=marked[:4], simulated=False))
    assert "a simulated cluster" in certify(tmp_path, *PRODUCT).stderr


def test_a_draft_cannot_be_passed_off_as_a_certificate(tmp_path: Path) -> None:
    samples.write_run(tmp_path, settings={"sandbox": True})
    certify(tmp_path, *PRODUCT, "--draft")

    def pass_off(files: dict[str, bytes]) -> None:
        claim = json.loads(files["certificate.json"]) | {"draft": False, "not_shown": []}
        files["certificate.json"] = msgspec.json.format(json.dumps(claim).encode(), indent=2) + b"\n"

    checked = repacked(tmp_path / "b.tar.gz", pass_off)
    assert "no certificate can rest on this run: it ran on the sandbox" in checked.broken[0]


def test_the_sheet_for_people_is_one_of_the_files_and_follows_from_the_run(
    bundle: Path, keys: tuple[Path, Path]
) -> None:
    files = archive.unpack(bundle.read_bytes())
    sheet = files["certificate.html"].decode()
    assert f"{hashlib.sha256(files['certificate.html']).hexdigest()}  certificate.html" in files[making.SUMS].decode()
    for words in (
        "<h1>Certificate</h1>", "Shop K8s 1.4", "2026-11-01 10:15 UTC", "core, 24 requirements",
        "10.0.20348 on 2 nodes", "24 of 24 passed", hashlib.sha256(files["journal.jsonl"]).hexdigest(),
        "winready verify BUNDLE.tar.gz", "nobody",
    ):  # fmt: skip
        assert words in sheet, words
    assert 'class="sheet"' in sheet
    for old, new in ((b"24 of 24 passed", b"25 of 24 passed"), (b"Shop K8s", b"Shoe K8s")):
        checked = repacked(bundle, replace("certificate.html", old, new))
        assert checked.broken == ["certificate.html does not follow from the journal"]
    certify(bundle.parent, *PRODUCT, "--key", str(keys[0]))
    signer = archive.unpack(bundle.read_bytes())
    assert "sha256:" in signer["certificate.html"].decode().partition("signed by")[2].partition("<dt>")[0]
    assert verify(bundle).exit_code == 0


def test_a_bundle_from_before_the_sheet_is_still_intact(bundle: Path) -> None:
    def without(files: dict[str, bytes]) -> None:
        del files["certificate.html"]

    assert repacked(bundle, without).intact


def test_signatures(bundle: Path, keys: tuple[Path, Path]) -> None:
    private, public = keys
    assert verify(bundle, "--key", str(public)).exit_code == 1
    certify(bundle.parent, *PRODUCT, "--key", str(private))
    result = verify(bundle, "--key", str(public))
    assert result.exit_code == 0, result.output
    assert "signed by the key that you gave" in result.stdout
    assert "cannot tell whose key that is" in verify(bundle).stdout
    other = Ed25519PrivateKey.generate().public_key()
    public.write_bytes(other.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    result = verify(bundle, "--key", str(public))
    assert (result.exit_code, "not by the one given" in result.stdout) == (1, True)
    checked = repacked(bundle, replace("README.txt", b"Shop", b"Shoe", 1))
    assert "the signature does not fit" in checked.broken[0]


def test_keys_and_products_that_do_not_fit_are_said_without_a_trace(tmp_path: Path) -> None:
    samples.write_run(tmp_path)
    (tmp_path / "bad").write_text("secret words")
    for arguments, text in (
        ((*PRODUCT, "--key", str(tmp_path / "bad")), "is not a private key in PEM"),
        ((*PRODUCT, "--key", str(tmp_path / "none")), "No such file"),
        (PRODUCT[:4], "--product-version, --contact"),
        (("--product-file", str(tmp_path / "bad")), "must be a map"),
    ):
        result = certify(tmp_path, *arguments)
        assert result.exit_code == 2, result.output
        assert text in result.stderr
        assert "secret words" not in result.output
        assert "Traceback" not in result.output
    (tmp_path / "p.yaml").write_text("vendor: A\nproduct_name: B\nproduct_version: 1.10\ncontact: c@d\n")
    assert certify(tmp_path, "--product-file", str(tmp_path / "p.yaml"), "--vendor", "Other").exit_code == 0
    assert verify(tmp_path / "b.tar.gz").stdout.startswith("Other: B 1.10\n")
    for text in ("vendor: [a, b]\n", "vendor: " + "[" * 50_000):
        (tmp_path / "p.yaml").write_text(text)
        result = certify(tmp_path, "--product-file", str(tmp_path / "p.yaml"))
        assert (result.exit_code, str(tmp_path / "p.yaml") in result.stderr) == (2, True)


def hostile(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    """An archive with the head of a bundle and whatever its maker liked inside."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for member, content in members:
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return dressed(out.getvalue())


def dressed(plain: bytes) -> bytes:
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = deflate.compress(plain) + deflate.flush()
    rest = body + zlib.crc32(plain).to_bytes(4, "little") + len(plain).to_bytes(4, "little")
    head = b"\x1f\x8b\x08\x10\x00\x00\x00\x00\x02\xffwinready-bundle sha256:"
    return head + hashlib.sha256(rest).hexdigest().encode() + b"\x00" + rest


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, link
    return member


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ([(entry("../../etc/passwd"), b"x")], "is no name for a file"),
        ([(entry("/etc/passwd"), b"x")], "is no name for a file"),
        ([(entry("a/../../b"), b"x")], "is no name for a file"),
        ([(entry("link", tarfile.SYMTYPE, "/etc/passwd"), b"")], "is no ordinary file"),
        ([(entry("hard", tarfile.LNKTYPE, "/etc/passwd"), b"")], "is no ordinary file"),
        ([(entry("null", tarfile.CHRTYPE), b"")], "is no ordinary file"),
        ([(entry("run.json"), b"1"), (entry("run.json"), b"2")], "is there twice"),
        ([(entry(f"f{number}"), b"") for number in range(2100)], "more than 2000 files"),
    ],
)
def test_hostile_archives_are_refused(members: list[tuple[tarfile.TarInfo, bytes]], why: str, tmp_path: Path) -> None:
    path = tmp_path / "evil.tar.gz"
    path.write_bytes(hostile(*members))
    result = verify(path)
    assert result.exit_code == 1
    assert why in result.stdout
    assert [item.name for item in tmp_path.iterdir()] == ["evil.tar.gz"]


def test_a_bomb_and_a_plain_file_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "b.tar.gz"
    monkeypatch.setattr(archive, "MOST_BYTES", 4 << 20)
    path.write_bytes(dressed(b"\x00" * (archive.MOST_BYTES + 1)))
    assert "holds more than 4 MB" in verify(path).stdout
    path.write_bytes(b"hello")
    assert "this is no winready bundle" in verify(path).stdout
    assert verify(tmp_path / "none").exit_code == 2


def test_bundles_of_two_vendors_compare(bundle: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    samples.write_run(other, outcomes={DNS: "failed"})
    certify(other, *PRODUCT, "--draft")
    result = CliRunner().invoke(cli, ["compare", str(bundle), str(other / "b.tar.gz")])
    assert result.exit_code == 1
    assert f"▼ {DNS}" in result.stdout


def test_a_bundle_cannot_steer_the_terminal_of_who_verifies_it(bundle: Path, tmp_path: Path) -> None:
    files = archive.unpack(bundle.read_bytes())
    claim = json.loads(files["certificate.json"])
    claim["product"]["vendor"] = "\x1b]0;owned\x07Shop\x1b[2J\u202eevil\x9b31m"
    files["certificate.json"] = msgspec.json.format(msgspec.json.encode(claim), indent=2) + b"\n"
    product = msgspec.convert(claim["product"], Product)
    files["product.yaml"] = making.contents(Record(), b"", product, [], b"")["product.yaml"]
    files["README.txt"] = files["README.txt"].replace(b"Shop:", claim["product"]["vendor"].encode() + b":", 1)
    shown = b"<br>" + claim["product"]["vendor"].encode()
    files["certificate.html"] = files["certificate.html"].replace(b"<br>Shop", shown, 1)
    files[making.SUMS] = making.digests({name: text for name, text in files.items() if name != making.SUMS})
    (tmp_path / "evil.tar.gz").write_bytes(archive.pack(files))
    result = CliRunner().invoke(cli, ["verify", str(tmp_path / "evil.tar.gz")], color=True)
    assert result.exit_code == 0, result.output
    assert "Shop" in result.stdout
    assert not set("\x1b\x07\x9b\u202e") & set(result.stdout)


def test_nesting_without_end_is_refused(bundle: Path) -> None:
    deep = b'"settings":{"deep":' + b"[" * 100_000 + b"]" * 100_000 + b","
    checked = repacked(bundle, replace("journal.jsonl", b'"settings":{', deep, 1))
    assert not checked.intact


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    assert verify(Path("/dev/zero")).exit_code == 2
    assert verify(tmp_path).exit_code == 2
