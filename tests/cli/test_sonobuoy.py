"""The plugin file, and tarballs of Sonobuoy as runs."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from report import samples
from report.tarballs import member, of_run, tarball
from winready.cli.main import cli
from winready.cli.run import run as run_command
from winready.engine import journal

PRODUCT = ("--vendor", "v", "--product-name", "p", "--product-version", "1", "--contact", "c@d")
DOMAIN = r"""domain: shop.example
credential_spec: web
allowed_share: \\files.shop.example\allowed
denied_share: \\files.shop.example\denied
"""


def winready(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def plugin(*arguments: str) -> dict[str, Any]:
    result = winready("sonobuoy", "plugin", *arguments)
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = yaml.safe_load(result.stdout)
    return document


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return samples.write_run(tmp_path / "runs")


@pytest.fixture
def archive(tmp_path: Path, run: Path) -> str:
    return str(of_run(tmp_path / "202611171201_sonobuoy_1.tar.gz", run))


def test_the_plugin_file_is_safe_on_a_mixed_cluster() -> None:
    document = plugin("--image", "registry.example/winready:1.0")
    config, pod, container = document["sonobuoy-config"], document["podSpec"], document["spec"]
    assert config["driver"] == "Job"
    assert config["result-format"] == "manual"
    assert config["result-files"] == ["sonobuoy_results.yaml"]
    assert pod["serviceAccountName"] == "sonobuoy-serviceaccount"
    assert pod["restartPolicy"] == "Never"
    assert pod["nodeSelector"] == {"kubernetes.io/os": "linux"}
    tolerated = {item["key"] for item in pod["tolerations"]}
    assert tolerated == {"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"}
    assert container["image"] == "registry.example/winready:1.0"
    assert container["command"] == ["winready", "sonobuoy", "run"]
    assert container["args"] == ["--timeout", "5h"]
    assert container["volumeMounts"] == [{"name": "results", "mountPath": "/tmp/sonobuoy/results"}]
    assert container["securityContext"]["runAsNonRoot"] is True


def test_deploy_prints_the_same_plugin() -> None:
    words = ("--image", "registry.example/winready:1.0", "--category", "core.network")
    deployed = winready("deploy", "sonobuoy", *words)
    assert deployed.exit_code == 0, deployed.output
    assert yaml.safe_load(deployed.stdout) == plugin(*words)


def test_the_selection_travels_and_means_the_same_in_the_pod() -> None:
    given = ["--category", "CORE.network", "--skip", "N1", "--nodes", "all", "--node-selector", "pool=win"]
    given += ["--tolerate", "os=windows:NoSchedule", "--image-registry", "mirror.example", "--air-gapped"]
    given += ["--allow-disruptive", "--windows-builds", "current", "--parallel", "4", "--time-scale", "2"]
    arguments = plugin(*given, "--timeout", "90m")["spec"]["args"]
    wanted = run_command.make_context("run", [*given, "--timeout", "90m"])
    assert run_command.make_context("run", list(arguments)).params == wanted.params


@pytest.mark.parametrize(
    ("flags", "categories"),
    [
        (["--mode", "windows-conformance"], []),
        (["--mode", "Windows-Conformance", "--windows.hostProcess"], ["hostProcess"]),
        (["--WINDOWS.HOSTPROCESS", "--windows.activedirectory"], ["hostProcess", "activeDirectory"]),
        (["--windows.networkPolicy", "--windows.serviceProxy"], ["networkPolicy", "serviceProxy"]),
    ],
)
def test_the_names_of_the_drafts_are_understood(flags: list[str], categories: list[str]) -> None:
    arguments = plugin(*flags)["spec"]["args"]
    chosen = [value for flag, value in itertools.pairwise(arguments) if flag == "--category"]
    core = ["Core.Network", "Core.Storage", "Core.Scheduling", "Core.Concurrent"] if categories else []
    assert chosen == [*core, *categories]


def test_mode_full_is_everything() -> None:
    assert plugin("--mode", "full", "--windows.hostProcess")["spec"]["args"][:2] == ["--profile", "full"]


def test_files_travel_inside_the_plugin_file(tmp_path: Path) -> None:
    domain = tmp_path / "domain.yaml"
    domain.write_text(DOMAIN)
    junit = tmp_path / "junit_01.xml"
    junit.write_text(
        "<testsuite><testcase name='[sig-x] &lt;a&gt; [Conformance]'/><testcase name='other'/>"
        "<testcase name='b [Conformance]'><failure>no</failure></testcase></testsuite>"
    )
    e2e = tarball(tmp_path / "e2e.tar.gz", member("plugins/e2e/results/global/junit_01.xml", junit.read_bytes()))
    for conformance in (junit, e2e):
        document = plugin("--active-directory", str(domain), "--linux-conformance", str(conformance))
        files = document["config-map"]
        own = winready("sonobuoy", "plugin", "--active-directory", str(domain), "--service-account", "w").stdout
        assert "'winready rbac --name w --namespace sonobuoy --active-directory FILE'" in own
        assert files["active-directory.yaml"] == DOMAIN
        assert files["linux-conformance.xml"].count("<testcase") == 2
        assert files["linux-conformance.xml"].count("<failure/>") == 1
        arguments = document["spec"]["args"]
        assert "/tmp/sonobuoy/config/active-directory.yaml" in arguments
        assert "/tmp/sonobuoy/config/linux-conformance.xml" in arguments


def test_an_own_account_and_own_places_are_written_down(tmp_path: Path) -> None:
    file = tmp_path / "plugin.yaml"
    flags = ["--service-account", "winready", "--pod-node-selector", "pool=tools", "--pod-tolerate", "dedicated=ci"]
    result = winready("sonobuoy", "plugin", *flags, "--name", "win-core", "--timeout", "7h", "--to", str(file))
    assert result.exit_code == 0, result.output
    text = file.read_text()
    assert "'winready rbac --name winready --namespace sonobuoy'" in text
    assert "--timeout 25810" in text
    pod = yaml.safe_load(text)["podSpec"]
    assert pod["serviceAccountName"] == "winready"
    assert pod["nodeSelector"] == {"kubernetes.io/os": "linux", "pool": "tools"}
    assert pod["tolerations"][-1]["key"] == "dedicated"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--category", "core.netwrk"], "unknown category 'core.netwrk'; did you mean 'Core.Network'?"),
        (["--requirement", "N1", "--skip", "N1"], "the selection is empty"),
        (["--name", "sonobuoy"], "is no name for a plugin"),
        (["--name", "Win_Core"], "is no name for a plugin"),
        (["--timeout", "soon"], "is not a duration"),
        (["--nodes", "some"], "neither a number from 1 nor 'all'"),
        (["--tolerate", "=x"], "--tolerate"),
        (["--pod-tolerate", "=x"], "--pod-tolerate"),
        (["--active-directory", "/no/such/file"], "/no/such/file"),
        (["--linux-conformance", "/no/such/file"], "/no/such/file cannot be read"),
        (["--to", "/no/such/folder/x.yaml"], "cannot be written"),
    ],
)
def test_mistakes_are_told_before_anything_runs(flags: list[str], words: str) -> None:
    result = winready("sonobuoy", "plugin", *flags)
    assert result.exit_code == 2
    assert words in result.stderr
    assert "sonobuoy-config" not in result.stdout


def test_a_file_that_fits_into_no_config_map_is_refused(tmp_path: Path) -> None:
    junit = tmp_path / "junit.xml"
    cases = "".join(f"<testcase name='{number} {'x' * 800} [Conformance]'/>" for number in range(1000))
    junit.write_text(f"<testsuite>{cases}</testsuite>")
    result = winready("sonobuoy", "plugin", "--linux-conformance", str(junit))
    assert result.exit_code == 2
    assert "a config map holds about" in result.stderr


def test_results_tells_the_verdict_with_its_exit_code(tmp_path: Path) -> None:
    run = samples.write_run(tmp_path / "runs", outcomes={"core.network.dns-internal": "blocked"})
    archive = str(of_run(tmp_path / "t.tar.gz", run))
    result = winready("sonobuoy", "results", archive)
    assert result.exit_code == 3
    assert "■ core.network.dns-internal" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("Fail")
    as_json = winready("sonobuoy", "results", archive, "-o", "json")
    assert as_json.exit_code == 3
    assert json.loads(as_json.stdout) == json.loads((run / "run.json").read_text())


def test_a_tarball_is_a_run_for_every_command(tmp_path: Path, archive: str, run: Path) -> None:
    status = winready("status", archive)
    assert (status.exit_code, status.stdout) == (0, "Pass\n")
    assert winready("report", archive, "--format", "json").stdout == (run / "run.json").read_text()
    compared = winready("compare", archive, str(run), "-o", "json")
    assert compared.exit_code == 0, compared.output
    bundle = str(tmp_path / "bundle.tar.gz")
    certified = winready("certify", archive, "--output", bundle, *PRODUCT)
    assert certified.exit_code == 0, certified.output
    assert winready("verify", bundle).exit_code == 0
    verified = winready("verify", archive)
    assert verified.exit_code == 3
    assert "give the verdict Pass" in verified.stdout
    assert verified.stdout.splitlines()[-1].startswith("Consistent, but no certificate")
    assert json.loads(winready("verify", archive, "-o", "json").stdout)["certificate"] is None


def test_verify_refuses_a_tarball_whose_record_was_changed(tmp_path: Path, run: Path) -> None:
    (run / "run.json").write_text((run / "run.json").read_text().replace("windows-1", "windows-9"))
    refused = winready("verify", str(of_run(tmp_path / "t.tar.gz", run)))
    assert refused.exit_code == 1
    assert "✗ run.json does not follow from the journal" in refused.stdout
    (run / journal.NAME).write_bytes((run / journal.NAME).read_bytes()[:5000])
    (run / "run.json").unlink()
    assert winready("verify", str(of_run(tmp_path / "u.tar.gz", run))).exit_code == 1


def test_a_run_that_was_cut_off_is_told_as_far_as_it_came(tmp_path: Path, run: Path) -> None:
    (run / "run.json").unlink()
    lines = (run / journal.NAME).read_bytes().splitlines(keepends=True)
    (run / journal.NAME).write_bytes(b"".join(lines[:5]))
    result = winready("sonobuoy", "results", str(of_run(tmp_path / "t.tar.gz", run)))
    assert result.exit_code == 3
    assert "was cut off" in result.stderr
    assert "not judged: " in result.stdout
    assert result.stdout.splitlines()[-1] == "Fail (unfinished)"


@pytest.mark.parametrize("command", [["sonobuoy", "results"], ["status"], ["report"], ["verify"]])
def test_a_hostile_tarball_is_refused_with_one_sentence(tmp_path: Path, command: list[str]) -> None:
    path = str(tarball(tmp_path / "t.tar.gz", member("../../evil", b"x")))
    result = winready(*command, path)
    assert result.exit_code == 2
    assert result.stderr == f"error: {path} holds '../../evil', which leads out of the archive\n"
    assert not list(tmp_path.rglob("evil"))


def test_of_several_plugins_one_is_chosen(tmp_path: Path, run: Path) -> None:
    story = (run / journal.NAME).read_bytes()
    places = [f"plugins/{name}/results/global/{journal.NAME}" for name in ("core", "full")]
    path = str(tarball(tmp_path / "t.tar.gz", *(member(place, story) for place in places)))
    result = winready("sonobuoy", "results", path)
    assert result.exit_code == 2
    assert "holds runs of several plugins: core, full" in result.stderr
    assert "--plugin NAME" in result.stderr
    assert winready("sonobuoy", "results", path, "--plugin", "core").stdout.endswith("Pass\n")


def test_what_failed_in_a_tarball_is_verified_again(command_line: Any, kubeconfig: str, tmp_path: Path) -> None:
    run = samples.write_run(tmp_path / "runs", outcomes={"core.network.dns-internal": "failed"})
    archive = str(of_run(tmp_path / "t.tar.gz", run))
    result = command_line("run", "--kubeconfig", kubeconfig, "--rerun-failed", archive, "--dry-run", "-o", "json")
    assert result.returncode == 0, result.stderr
    assert [item["id"] for item in json.loads(result.stdout)["requirements"]] == ["core.network.dns-internal"]
