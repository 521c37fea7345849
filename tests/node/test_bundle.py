"""``winready node bundle`` as an operator runs it."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from node.conftest import ENOUGH, Bundle
from node.mirror import Mirror
from winready.cli.main import cli
from winready.cli.node import COMMANDS
from winready.node.parameters import decode, json_schema


def listing(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def nothing_written(tmp_path: Path) -> bool:
    return list(tmp_path.iterdir()) == []


def test_a_folder_with_scripts_parameters_and_digests(bundle: Bundle, tmp_path: Path) -> None:
    result = bundle()
    assert result.exit_code == 0, result.output
    folder = tmp_path / "bundle"
    found = listing(folder)
    assert {"node.ps1", "node.json", "SHA256SUMS", "parts/join.ps1", "config/containerd.toml"} <= found
    assert not any(name.startswith("files/") for name in found)
    lines = (folder / "SHA256SUMS").read_text().splitlines()
    assert {line[66:] for line in lines} == found - {"SHA256SUMS"}
    for line in lines:
        assert hashlib.sha256((folder / line[66:]).read_bytes()).hexdigest() == line[:64]
    digest = hashlib.sha256((folder / "SHA256SUMS").read_bytes()).hexdigest()
    assert f"digest {digest}\n" in result.output


def test_node_json_follows_its_schema_and_names_every_file_with_its_digest(
    bundle: Bundle, mirror: Mirror, tmp_path: Path
) -> None:
    bundle()
    text = (tmp_path / "bundle/node.json").read_bytes()
    jsonschema.Draft202012Validator(json_schema()).validate(json.loads(text))
    parameters = decode(text)
    assert [file.name for file in parameters.files] == [
        "cni-plugins", "containerd", "crictl", "flannel-plugin", "flanneld", "kube-log-runner", "kube-proxy", "kubeadm",
        "kubelet",
    ]  # fmt: skip
    for file in parameters.files:
        held = mirror.held[file.url.removeprefix(mirror.url)]
        assert file.sha256 == hashlib.sha256(held).hexdigest()
        assert bool(file.target) != bool(file.members)


def test_mirrors_of_registries_reach_the_machine(bundle: Bundle, tmp_path: Path) -> None:
    given = ["docker.io=https://mirror.example.com", "mcr.microsoft.com=http://10.0.0.9:5000"]
    assert bundle(*(word for text in given for word in ("--registry-mirror", text))).exit_code == 0
    document = json.loads((tmp_path / "bundle/node.json").read_bytes())
    jsonschema.Draft202012Validator(json_schema()).validate(document)
    assert document["containerd"]["mirrors"] == [
        dict(zip(("host", "endpoint"), text.split("=", 1), strict=True)) for text in given
    ]
    assert "certs.d" in (tmp_path / "bundle/config/containerd.toml").read_text()


def test_the_line_for_an_upgrade_carries_the_digest_of_the_bundle(bundle: Bundle, tmp_path: Path) -> None:
    made = json.loads(bundle("-o", "json").stdout)
    entry = hashlib.sha256((tmp_path / "bundle/node.ps1").read_bytes()).hexdigest()
    assert made["upgrade"].endswith(f"; .\\node.ps1 upgrade -BundleDigest {made['digest']}")
    assert made["upgrade"].startswith("if ((Get-FileHash .\\SHA256SUMS -Algorithm SHA256).Hash -ne ")
    assert made["upgrade"].count(made["digest"]) == 2
    assert made["upgrade"].count(entry) == 1
    command = ["node", "upgrade-command", "--bundle", str(tmp_path / "bundle")]
    assert CliRunner().invoke(cli, command).stdout == made["upgrade"] + "\n"
    again = json.loads(CliRunner().invoke(cli, [*command, "-o", "json"]).stdout)
    assert again == {"command": made["upgrade"], "kubernetes": "1.36.3", "bundle_digest": made["digest"]}
    (tmp_path / "bundle/node.ps1").write_text("'something else'")
    damaged = CliRunner().invoke(cli, command)
    assert (damaged.exit_code, damaged.stdout) == (2, "")
    assert "is damaged: node.ps1 is not the file" in damaged.stderr


def test_a_field_that_nobody_knows_is_a_mistake(bundle: Bundle, tmp_path: Path) -> None:
    bundle()
    document = json.loads((tmp_path / "bundle/node.json").read_bytes())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(json_schema()).validate(document | {"tokn": "x"})


def test_the_same_input_gives_the_same_bytes(bundle: Bundle, tmp_path: Path) -> None:
    for name in ("one", "two", "one.zip", "two.zip"):
        assert bundle("--offline", to=name).exit_code == 0
    one, two = tmp_path / "one", tmp_path / "two"
    assert listing(one) == listing(two)
    assert all((one / name).read_bytes() == (two / name).read_bytes() for name in listing(one))
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "one.zip") as archive:
        assert set(archive.namelist()) == listing(one)
        assert archive.namelist() == sorted(archive.namelist())
        assert all(archive.read(name) == (one / name).read_bytes() for name in archive.namelist())


def test_manifests_come_with_the_bundle_where_the_network_is_known(bundle: Bundle, tmp_path: Path) -> None:
    def names(to: str) -> set[str]:
        return {path.name for path in (tmp_path / to).glob("manifests/*")}

    assert bundle(to="flannel").exit_code == 0
    assert {"20-kube-proxy.yaml", "30-flannel.yaml"} <= names("flannel")
    assert bundle("--cni", "none", to="unknown").exit_code == 0
    assert names("unknown") == set()
    assert bundle("--cni", "none", "--network-name", "Calico", to="calico").exit_code == 0
    assert "20-kube-proxy.yaml" in names("calico")
    assert "30-flannel.yaml" not in names("calico")
    files = {file.name for file in decode((tmp_path / "calico/node.json").read_bytes()).files}
    assert "flanneld" not in files


def test_a_second_time_changes_nothing(bundle: Bundle, tmp_path: Path) -> None:
    first = json.loads(bundle("-o", "json").stdout)
    again = json.loads(bundle("-o", "json").stdout)
    assert (first["changed"], again["changed"]) == (True, False)
    assert first["digest"] == again["digest"]
    changed = json.loads(bundle("-o", "json", "--mode", "l2bridge").stdout)
    assert changed["changed"]
    assert changed["digest"] != first["digest"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bundle"]


def test_offline_carries_every_file_verified(bundle: Bundle, mirror: Mirror, tmp_path: Path) -> None:
    assert bundle("--offline").exit_code == 0
    parameters = decode((tmp_path / "bundle/node.json").read_bytes())
    for file in parameters.files:
        carried = (tmp_path / "bundle/files" / file.file_name).read_bytes()
        assert carried == mirror.held[file.url.removeprefix(mirror.url)]


def test_a_file_with_another_digest_is_thrown_away(bundle: Bundle, mirror: Mirror, tmp_path: Path) -> None:
    mirror.put("https://dl.k8s.io/v1.36.3/bin/windows/amd64/kubelet.exe", b"evil")
    result = bundle("--offline")
    assert result.exit_code == 2
    assert "kubelet.exe has the SHA-256" in result.stderr
    assert "it was thrown away" in result.stderr
    assert nothing_written(tmp_path)


def test_a_place_without_room_for_the_programs_is_said(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/proc")
    result = bundle("--offline")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "the programs cannot be kept in /proc for a moment" in result.stderr
    assert nothing_written(tmp_path)


def test_a_release_without_a_digest_is_not_trusted(bundle: Bundle, mirror: Mirror, tmp_path: Path) -> None:
    where = next(path for path in mirror.held if "/repos/" in path)
    mirror.held[where] = json.dumps({"assets": [{"name": "flanneld.exe", "digest": None}]}).encode()
    result = bundle()
    assert result.exit_code == 2
    assert "holds no SHA-256 of flanneld.exe" in result.stderr
    assert "--digest flanneld=SHA256" in result.stderr
    assert nothing_written(tmp_path)
    assert bundle("--digest", f"flanneld={'a' * 64}").exit_code == 0
    files = {file.name: file.sha256 for file in decode((tmp_path / "bundle/node.json").read_bytes()).files}
    assert files["flanneld"] == "a" * 64


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--kubernetes", "1.36.99"], "there is no Kubernetes 1.36.99 for Windows: "),
        (["--kubernetes", "1.99"], "there is no Kubernetes 1.99: "),
        (["--kubernetes", "newest"], "'newest' is not a release of Kubernetes"),
        (["--kubernetes", "1.25.16"], "Kubernetes 1.25.16 is too old"),
        (["--containerd", "9.9.9"], "there is no containerd 9.9.9 for Windows: "),
        (["--containerd", "1.6.8"], "containerd 1.6.8 is too old"),
        (["--containerd", "docker"], "'docker' is not a release of containerd"),
        (["--pod-cidr", "10.100.0.0/16"], "of pods (10.100.0.0/16) and of services (10.96.0.0/12) overlap"),
        (["--pod-cidr", "10.244.1.0/16"], "'10.244.1.0/16' is no range of addresses for pods"),
        (["--dns", "dns.example.com"], "'dns.example.com' is no IP address of a DNS server"),
        (["--endpoint", "https://api/"], "'https://api/' is not the address of an API server"),
        (["--endpoint", "10.96.0.1:443"], "is one of the cluster's services"),
        (["--https-proxy", "http://me:secret@proxy:3128"], "without name and password"),
        (["--label", "a b=c"], "'a b=c' is not a label"),
        (["--taint", "os=windows"], "'os=windows' is not a taint"),
        (["--registry", "https://r"], "'https://r' is not a registry"),
        (["--registry-mirror", "docker.io"], "'docker.io' cannot be: a mirror is HOST=URL"),
        (["--registry-mirror", "docker.io=mirror.example.com"], "a mirror is HOST=URL"),
        (["--registry-mirror", "docker.io/library=https://m.example"], "a mirror is HOST=URL"),
        (["--registry-mirror", "docker.io=https://m.example:99999"], "a mirror is HOST=URL"),
        (["--registry-mirror", "docker.io=https://m.example/'; calc #"], "a mirror is HOST=URL"),
        (["--registry-mirror", "..=https://m.example"], "a mirror is HOST=URL"),
        (["--registry-mirror", "docker.io=https://me:secret@m.example"], "a mirror with a name or password cannot be"),
        (["--containerd", "none", "--registry-mirror", "docker.io=https://m.example"], "none installs none"),
        (["--pause-image", "x'; calc #"], "is not the name of an image"),
        (["--interface", "a\"; calc #"], "is not the name of a network adapter"),
        (["--network-name", "Calico"], "'Calico' cannot be the name of the pod network"),
        (["--cni", "none", "--network-name", "a b"], "'a b' cannot be the name of the pod network"),
        (["--digest", f"kubectl={'a' * 64}"], "this bundle has no file 'kubectl'"),
        (["--digest", "kubelet=abc"], "'kubelet=abc' is not NAME=SHA256"),
    ],
)  # fmt: skip
def test_wrong_input_is_one_sentence_and_nothing_is_written(
    bundle: Bundle, tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    result = bundle(*arguments)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr
    assert "secret" not in result.stderr.replace("secrets", "")
    assert nothing_written(tmp_path)


@pytest.mark.parametrize("to", ["taken", "taken.zip"])
def test_what_is_not_ours_is_not_replaced(bundle: Bundle, tmp_path: Path, to: str) -> None:
    if to.endswith(".zip"):
        (tmp_path / to).write_text("my notes")
    else:
        (tmp_path / to).mkdir()
        (tmp_path / to / "notes.txt").write_text("my notes")
    result = bundle(to=to)
    assert result.exit_code == 2
    assert "taken" in result.stderr
    held = tmp_path / to if to.endswith(".zip") else tmp_path / to / "notes.txt"
    assert held.read_text() == "my notes"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_bundle_with_a_foreign_file_in_it_is_left_alone(bundle: Bundle, tmp_path: Path) -> None:
    bundle()
    (tmp_path / "bundle/extra.txt").write_text("mine")
    result = bundle("--mode", "l2bridge")
    assert result.exit_code == 2
    assert "extra.txt" in result.stderr


def test_a_minor_version_is_its_newest_patch(bundle: Bundle, mirror: Mirror, tmp_path: Path) -> None:
    mirror.put("https://dl.k8s.io/release/stable-1.36.txt", b"v1.36.3\n")
    assert bundle("--kubernetes", "1.36").exit_code == 0
    assert decode((tmp_path / "bundle/node.json").read_bytes()).kubernetes == "1.36.3"


def test_a_mirror_that_is_away_is_said(tmp_path: Path) -> None:
    command = ["node", "bundle", "--kubernetes", "1.36.3", *ENOUGH, "--mirror", "http://127.0.0.1:9"]
    result = CliRunner().invoke(cli, [*command, "--to", str(tmp_path / "bundle")])
    assert result.exit_code == 3
    assert "cannot be fetched" in result.stderr
    assert nothing_written(tmp_path)


def test_without_cluster_and_flags_it_says_what_is_missing(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        cli, ["node", "bundle", "--kubeconfig", str(tmp_path / "none"), "--to", str(tmp_path / "bundle")]
    )
    assert result.exit_code == 2
    assert "none" in result.stderr
    assert nothing_written(tmp_path)


def test_every_command_of_the_group_is_there() -> None:
    for name, (_, help_text) in COMMANDS.items():
        result = CliRunner().invoke(cli, ["node", name, "--help"], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        assert help_text in CliRunner().invoke(cli, ["node", "--help"], terminal_width=200).output
