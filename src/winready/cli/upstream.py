"""``winready upstream``: Kubernetes' own e2e.test, its specs, and whether our mapping still fits them."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from winready.cli.options import apply, fail, print_document, say, table_option
from winready.cli.tables import WIDE, listed, print_table

if TYPE_CHECKING:
    from winready.spec.versions import Version
    from winready.upstream.drift import Finding
    from winready.upstream.listing import Listing

source_options = apply(
    click.option("--e2e-binary", type=click.Path(path_type=Path), metavar="F", help="The e2e.test to ask."),
    click.option("--specs", type=click.Path(path_type=Path), metavar="FILE",
                 help="A saved listing instead, gzipped or not: one text per line, --list-tests, or a spec dump."),
    click.option("--kubernetes", metavar="V", help="Version of the listing, or of the fetched e2e.test to use."),
)  # fmt: skip


@click.group()
def upstream() -> None:
    """Kubernetes' own e2e.test: its specs, and whether the mapping to requirements still fits them."""


@upstream.command("list")
@source_options
@click.option("--grep", metavar="TEXT", default="", help="Only specs that contain this, any letter case.")
@click.option("--mapped", is_flag=True, help="Only specs that verify a requirement, with the requirements.")
@table_option
def list_command(
    e2e_binary: Path | None, specs: Path | None, kubernetes: str | None, grep: str, mapped: bool, output: str
) -> None:
    """Show the specs of an e2e.test, or of a saved listing.

    \b
    winready upstream list --e2e-binary ./e2e.test --grep sig-windows
    winready upstream list --specs v1.36.0.txt.gz --kubernetes 1.36 --mapped
    """
    from winready.upstream.drift import compare
    from winready.upstream.mapping import load_mapping

    listing, version = _source(e2e_binary, specs, kubernetes, need_version=mapped or output == WIDE)
    rows: list[dict[str, Any]] = [{"text": text} for text in listing.texts]
    if mapped or output == WIDE:
        users = {item.found: item for item in compare(load_mapping(), listing, _known(version)) if item.found}
        rows = [
            {"text": text, "test": users[text].test, "requirements": users[text].requirements}
            if text in users
            else {"text": text, "test": "", "requirements": []}
            for text in listing.texts
            if text in users or not mapped
        ]
    rows = [row for row in rows if grep.casefold() in row["text"].casefold()]
    if output == WIDE:
        cells = [(row["test"], listed(row["requirements"]), row["text"]) for row in rows]
        print_table(("TEST", "VERIFIES", "SPEC"), *cells)
    elif output != "text":
        print_document({"source": listing.source, "specs": rows}, output)
        return
    for row in rows if output == "text" else ():
        say(row["text"])
        for requirement in row.get("requirements", []):
            say(f"    {requirement}")
    say(f"{len(rows)} specs", err=True)


@upstream.command()
@source_options
@click.option("--all", "everything", is_flag=True, help="Also show what did not change.")
@table_option
def drift(e2e_binary: Path | None, specs: Path | None, kubernetes: str | None, everything: bool, output: str) -> None:
    """Say for every mapped test whether it selects exactly the spec it should, and what changed.

    Exit code: 0 nothing drifted, 1 something drifted, 2 wrong usage.

    \b
    winready upstream drift --e2e-binary ./e2e.test
    winready upstream drift --specs v1.36.0.txt.gz --kubernetes 1.36 -o json
    """
    from winready.upstream.drift import compare
    from winready.upstream.mapping import load_mapping

    listing, found_version = _source(e2e_binary, specs, kubernetes, need_version=True)
    version = _known(found_version)
    mapping = load_mapping()
    findings = compare(mapping, listing, version)
    drifted = [item for item in findings if item.drifted]
    note = "" if version in mapping.versions else f"the mapping was made for Kubernetes {mapping.kubernetes}"
    if output not in ("text", WIDE):
        import msgspec

        document = {
            "kubernetes": str(version),
            "source": listing.source,
            "specs": len(listing.texts),
            "note": note,
            "drifted": len(drifted),
            "tests": [{**msgspec.to_builtins(item), "drifted": item.drifted} for item in findings],
        }
        print_document(document, output)
        sys.exit(1 if drifted else 0)
    shown = findings if everything else drifted
    if output == WIDE:
        heads = ("STATE", "TEST", "VERIFIES", "DETAIL", "EXPECTED", "FOUND", "NEAREST")
        print_table(heads, *(_wide(item) for item in shown))
    for item in shown if output == "text" else ():
        _print_finding(item)
    counts = Counter(item.state for item in findings)
    states = ", ".join(f"{count} {state}" for state, count in counts.most_common())
    say(f"Kubernetes {version}: {len(listing.texts)} specs, {len(findings)} mapped tests: {states}")
    if note:
        say(note)
    sys.exit(1 if drifted else 0)


@upstream.command()
@click.option("--kubernetes", metavar="V", required=True, help="Release such as 1.36.3, or 1.36 for its newest patch.")
@click.option("--mirror", metavar="URL", help="Where releases are (default: the project's own download site).")
@click.option("--again", is_flag=True, help="Fetch it even if it is there already.")
def fetch(kubernetes: str, mirror: str | None, again: bool) -> None:
    """Get the e2e.test of a release: resumed where it broke off, checksum verified, kept in a cache.

    Prints where it is; 'winready run --engine upstream' finds it there.

    \b
    winready upstream fetch --kubernetes 1.36
    winready upstream fetch --kubernetes 1.36.3 --mirror https://mirror.example.com/kubernetes
    """
    from winready.upstream.binary import BinaryError
    from winready.upstream.fetch import RELEASES
    from winready.upstream.fetch import fetch as fetch_release

    shown = -1

    def progress(done: int, total: int | None) -> None:
        nonlocal shown
        step = done * 20 // total if total else done >> 25
        if step != shown:
            shown = step
            of = f" of {total / 1e6:.0f}" if total else ""
            say(f"{done / 1e6:.0f}{of} MB", err=True)

    try:
        path = asyncio.run(fetch_release(kubernetes, mirror or RELEASES, progress, again=again))
    except BinaryError as error:
        fail(error.message, error.remedy)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--kubernetes") from None
    except OSError as error:
        fail(f"{error.filename or 'the cache'} cannot be written: {error.strerror}")
    say(str(path))


def _wide(item: Finding) -> tuple[str, ...]:
    verifies, nearest = listed(item.requirements), "; ".join(item.nearest)
    return item.state, item.test, verifies, item.detail, item.expected, item.found, nearest


def _print_finding(item: Finding) -> None:
    say(f"{item.state:<10} {item.test}: {item.detail or item.found}")
    if item.state not in ("exact", "unused"):
        say(f"    expected: {item.expected}")
    if item.found and item.found != item.expected:
        say(f"    found:    {item.found}")
    for near in item.nearest:
        say(f"    nearest:  {near}")
    if item.drifted:
        say(f"    verifies: {', '.join(item.requirements)}")


def _source(
    e2e_binary: Path | None, specs: Path | None, kubernetes: str | None, *, need_version: bool
) -> tuple[Listing, Version | None]:
    """The listing to look at and its version, from whatever the user gave."""
    from winready.spec.versions import Version
    from winready.upstream.binary import BinaryError, inspect, list_specs
    from winready.upstream.listing import ListingError, read_listing

    if e2e_binary and specs:
        raise click.UsageError("--e2e-binary and --specs exclude each other")
    try:
        version = Version.parse(kubernetes) if kubernetes else None
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--kubernetes") from None
    if specs:
        if version is None and need_version:
            raise click.UsageError("--specs needs --kubernetes: a listing does not say its version")
        try:
            return read_listing(specs), version
        except ListingError as error:
            fail(str(error))

    async def ask(path: Path) -> tuple[Listing, Version]:
        binary = await inspect(path)
        return await list_specs(binary), binary.version

    if e2e_binary is None:
        from winready.upstream.fetch import cached

        e2e_binary = cached(version)
    if e2e_binary is None:
        raise click.UsageError("give --e2e-binary F, or --specs FILE with --kubernetes V")
    try:
        return asyncio.run(ask(e2e_binary))
    except BinaryError as error:
        fail(error.message, error.remedy)


def _known(version: Version | None) -> Version:
    if version is None:
        raise click.UsageError("--kubernetes is needed")
    return version
