"""Bundles for a table of versions and options: each holds together, and none carries what its version does not know."""

from __future__ import annotations

import itertools
import json
import re
import tomllib
from pathlib import Path

import jsonschema
import pytest
import yaml

from node.conftest import Bundle
from node.mirror import Mirror
from winready.node.opened import open_bundle
from winready.node.parameters import json_schema
from winready.node.skew import REMOVED_FLAGS
from winready.spec.versions import Version

VERSIONS = ("1.26.15", "1.30.4", "1.33.0", "1.34.2", "1.35.1", "1.36.3", "1.37.0-rc.1")
CONTAINERD = ("1.7.29", "2.1.5", "none")
NETWORKS = (("flannel", "overlay"), ("flannel", "l2bridge"), ("none", "overlay"))
EVERY = itertools.product(VERSIONS, NETWORKS)
TABLE = [(version, CONTAINERD[place % 2], network) for place, (version, network) in enumerate(EVERY)]
TABLE += [("1.36.3", "none", network) for network in NETWORKS]
"""Every version with every network, the runtimes in turn."""
VALIDATOR = jsonschema.Draft202012Validator(json_schema())


@pytest.mark.parametrize(
    ("version", "containerd", "network"),
    TABLE,
)
def test_a_bundle_holds_together(
    bundle: Bundle, mirror: Mirror, tmp_path: Path, version: str, containerd: str, network: tuple[str, str]
) -> None:
    mirror.release(version, containerd if containerd != "none" else "2.1.5")
    cni, mode = network
    result = bundle("--kubernetes", version, "--containerd", containerd, "--cni", cni, "--mode", mode)
    assert result.exit_code == 0, result.output
    folder = tmp_path / "bundle"
    opened = open_bundle(folder)
    assert opened.digest in result.output
    VALIDATOR.validate(json.loads((folder / "node.json").read_bytes()))
    parameters = opened.parameters
    minor = Version.parse(version).minor
    known = {flag.lstrip("-").partition("=")[0] for flag in parameters.kubelet.flags}
    assert not known & {name for since, names in REMOVED_FLAGS.items() if since <= minor for name in names}
    assert parameters.network.name == ("cbr0" if mode == "l2bridge" else "flannel.4096")
    names = {file.name for file in parameters.files}
    assert ("containerd" in names) == (containerd != "none") == (folder / "config/containerd.toml").exists()
    assert ("flanneld" in names) == (cni == "flannel")
    if containerd != "none":
        tomllib.loads((folder / "config/containerd.toml").read_text())
    for path in folder.glob("manifests/*.yaml"):
        documents = list(yaml.safe_load_all(path.read_text()))
        assert all(document["kind"] for document in documents)
        # Gates are decided on the node, by the version of the program there.
        assert not any(
            "feature-gates" in (document.get("data") or {}).get("kube-proxy.args", "") for document in documents
        )
    for path in (folder / "node.json", *folder.glob("manifests/*"), *folder.glob("config/*")):
        assert not re.search(r"TODO|CHANGEME|<[a-z-]+>|\{\{", path.read_text()), path


def test_two_machines_in_different_places_make_the_same_bundle(bundle: Bundle, tmp_path: Path) -> None:
    digests = set()
    for place in ("here", "there/below"):
        result = bundle("-o", "json", to=f"{place}/bundle")
        digests.add(json.loads(result.stdout)["digest"])
    assert len(digests) == 1
    assert str(tmp_path).encode() not in (tmp_path / "here/bundle/node.json").read_bytes()
