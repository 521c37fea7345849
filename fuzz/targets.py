"""Every reader with what it may answer: a value, or one of its own errors."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from fuzz import archives, programs, streams
from fuzz.mutate import document, json_document, json_lines, tokens, torn, xml_document
from fuzz.seeding import Make, from_seeds, seeds

if TYPE_CHECKING:
    from winready.report.record import Record

Read = Callable[[bytes, Path], None]


@dataclass(frozen=True)
class Target:
    """A reader: how inputs are made for it, and how it is asked."""

    make: Make
    read: Read
    errors: tuple[type[BaseException], ...]
    """What it may raise."""


def _file(folder: Path, data: bytes, name: str = "input") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def kubeconfig(data: bytes, folder: Path) -> None:
    """Find the target and make its TLS context."""
    from winready.cluster.credentials import Credentials
    from winready.cluster.kubeconfig import find_target

    target = find_target(str(_file(folder, data)), None, {"HOME": str(folder)})
    if target.plugin is None:
        asyncio.run(Credentials(target).tls())


def specification(data: bytes, folder: Path) -> None:
    """Parse it."""
    from winready.spec.loader import parse

    parse(data, "input")


def op_readiness(data: bytes, folder: Path) -> None:
    """Read the folder, and match its expressions with a listing."""
    from winready.spec.versions import Version
    from winready.upstream.foreign import counted_twice, read_folder, resolve
    from winready.upstream.listing import Listing

    _file(folder, data, "spec.yaml")
    found = read_folder(folder, "local")
    listing = Listing("x", ("[sig-windows] should have stable networking for Linux and Windows pods", "a" * 60 + "!"))
    resolve(found.cases, listing, Version(1, 36))
    counted_twice(found.cases, listing)


def junit(data: bytes, folder: Path) -> None:
    """Read every case."""
    from winready.upstream.junit import read_cases

    for _ in read_cases(_file(folder, data)):
        pass


def sonobuoy(data: bytes, folder: Path) -> None:
    """Read a tarball of Sonobuoy, as a run and as a result of conformance."""
    from winready.engine.rules.conformance import ConformanceError, read_conformance
    from winready.report.sonobuoy_archive import choose, looks_like_one, read_archive
    from winready.spec.archives import ArchiveError

    path = _file(folder, data)
    with contextlib.suppress(ConformanceError):
        read_conformance(path)
    with contextlib.suppress(ArchiveError):
        if looks_like_one(path):
            choose(read_archive(path))


def journal(data: bytes, folder: Path) -> None:
    """Tell the run by its journal, and compute its verdict again."""
    from winready.engine import journal as events
    from winready.report import record
    from winready.report.bundle.verifying import verify_story

    _file(folder, data, events.NAME)
    verify_story(data, None)
    _show(record.read_story(folder), zlib.crc32(data))


def run(data: bytes, folder: Path) -> None:
    """Read the record of a run, show it in every form, and put it into the history."""
    from winready.report import record
    from winready.report.dashboard.grid import make_grid
    from winready.report.fleet import clusters, filters, requirements, trends
    from winready.report.history import History

    (folder / "261101-101500-ab12").mkdir(exist_ok=True)
    _file(folder / "261101-101500-ab12", data, record.NAME)
    with History(folder) as index:
        index.sync()
        make_grid(index, index.runs(200))
        every = filters.Filter()
        list(clusters.states(index, clusters.newest(index, every), 0.0))
        requirements.sums(index, every)
        requirements.flaky(index, every)
        trends.failures(index, every, [month.month for month in trends.months(index, every)])
    _show(record.read(folder / "261101-101500-ab12"), zlib.crc32(data))


def _show(found: Record, turn: int) -> None:
    """In one of the forms: which one, the input says."""
    import tempfile

    from winready.report import comparing, comparison_forms, formats, prow, sonobuoy
    from winready.report.html import page

    match turn % 6:
        case 0:
            formats.as_csv(found)
            formats.as_markdown(found)
        case 1:
            formats.as_yaml(found)
        case 2:
            sonobuoy.render(found)
        case 3:
            comparison_forms.as_html(comparing.compare(found, found))
        case 4:
            page.render(found)
        case _:
            with tempfile.TemporaryDirectory(dir=Path.cwd()) as place:
                prow.write(found, Path(place))


def bundle(data: bytes, folder: Path) -> None:
    """Verify it; what is wrong with it is never an error."""
    from winready.report.bundle.verifying import verify

    verify(data)


def manifests(data: bytes, folder: Path) -> None:
    """Lint a file in every form, and repair it."""
    from winready.lint.context import Profile
    from winready.lint.finding import Summary
    from winready.lint.fix import Repairs
    from winready.lint.output import github, junit, machine, sarif, text
    from winready.lint.run import Run, Settings

    path = str(_file(folder, data, "input.yaml"))
    turn = zlib.crc32(data)
    if turn % 2:
        repairs = Repairs(Profile())
        for _ in Run([path], Settings(), repairs).results():
            pass
        for change in repairs.changes:
            change.diff()
            change.write()
        return
    results = list(Run([path], Settings()).results())
    match turn // 2 % 6:
        case 0:
            form: Iterable[str] = sarif.render(results, Summary())
        case 1:
            form = junit.render(results, Summary(), "error")
        case 2:
            form = github.render(results, Summary())
        case 3:
            form = machine.render(results, Summary(), "1.36")
        case _:
            form = text.render(results, Summary(), True, lambda: 0)
    for _ in form:
        pass


def listing(data: bytes, folder: Path) -> None:
    """Parse the texts of specs."""
    from winready.upstream.listing import read_listing

    read_listing(_file(folder, data))


def node_bundle(data: bytes, folder: Path) -> None:
    """Open a bundle for Windows machines."""
    from winready.node.opened import open_bundle

    open_bundle(_file(folder, data))


def node_json(data: bytes, folder: Path) -> None:
    """Decode its parameters."""
    from winready.node.parameters import decode, encode

    encode(decode(data))


def active_directory(data: bytes, folder: Path) -> None:
    """Read the file about a domain."""
    from winready.cluster.directory import read_directory

    read_directory(_file(folder, data))


def lint_config(data: bytes, folder: Path) -> None:
    """Read a configuration of lint."""
    from winready.lint.config import load

    load(_file(folder, data))


def _node_bundle(random: Random) -> bytes:
    files = {"node.ps1": b"# script\n", "node.json": json_document(seeds("node")[0], random)}
    if random.random() < 0.5:
        files = archives.changed(files, random)
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in files.items())
    listed = sums.encode("utf-8", "replace")
    return archives.zipped({**files, "SHA256SUMS": torn(listed, random) if random.random() < 0.3 else listed}, random)


def _sonobuoy(random: Random) -> bytes:
    place = "plugins/winready/results/global"
    files = {
        "meta/config.json": b"{}",
        "plugins/winready/definition.json": b"{}",
        f"{place}/run.json": seeds("run")[0],
        f"{place}/journal.jsonl": seeds("journal")[0],
        "plugins/e2e/results/global/junit_01.xml": seeds("junit")[0],
        "plugins/e2e/sonobuoy_results.yaml": b"name: e2e\nstatus: passed\n",
        "serverversion.json": json.dumps({"gitVersion": "v1.36.0"}).encode(),
    }
    return archives.tarball(archives.changed(files, random), random)


def _bundle(random: Random) -> bytes:
    from winready.report.bundle.archive import pack

    files = archives.changed(archives.opened(random.choice(seeds("bundle"))), random)
    if random.random() < 0.5:
        return archives.tarball(files, random)
    return pack({name.encode("utf-8", "replace").decode()[:90]: data for name, data in files.items()})


def _targets() -> dict[str, Target]:
    from winready.cluster.directory import DirectoryError
    from winready.cluster.errors import ClusterError, ConfigError
    from winready.engine.journal import Unreadable
    from winready.lint.config import ConfigError as LintConfigError
    from winready.node.parameters import ParametersError
    from winready.spec.loader import SpecificationError
    from winready.upstream.junit import JunitError
    from winready.upstream.listing import ListingError

    return {
        "kubeconfig": Target(from_seeds("kubeconfig", document), kubeconfig, (ConfigError,)),
        "specification": Target(from_seeds("specification", document), specification, (SpecificationError,)),
        "op-readiness": Target(from_seeds("op-readiness", document), op_readiness, (SpecificationError,)),
        "junit": Target(from_seeds("junit", xml_document), junit, (JunitError,)),
        "sonobuoy": Target(_sonobuoy, sonobuoy, ()),
        "journal": Target(from_seeds("journal", json_lines), journal, (Unreadable,)),
        "run": Target(from_seeds("run", json_document), run, (Unreadable,)),
        "bundle": Target(_bundle, bundle, ()),
        "manifests": Target(from_seeds("manifests", _manifests), manifests, ()),
        "listing": Target(from_seeds("listing", json_lines), listing, (ListingError,)),
        "node-json": Target(from_seeds("node", json_document), node_json, (ParametersError,)),
        "node-bundle": Target(_node_bundle, node_bundle, (ParametersError,)),
        "active-directory": Target(from_seeds("active-directory", document), active_directory, (DirectoryError,)),
        "lint-config": Target(from_seeds("lint-config", document), lint_config, (LintConfigError,)),
        "exec": Target(from_seeds("exec", streams.frames), streams.execute, (ClusterError,)),
        "watch": Target(from_seeds("watch", streams.answer), streams.watch, (ClusterError,)),
        "scripts": Target(from_seeds("scripts", tokens), programs.run, ()),
    }


def _manifests(seed: bytes, random: Random) -> bytes:
    if seed.startswith(b"{"):
        return json_document(seed, random)
    parts = seed.split(b"---\n")
    at = random.randrange(len(parts))
    parts[at] = document(parts[at], random) + b"\n"
    return b"---\n".join(parts)


TARGETS = _targets()
