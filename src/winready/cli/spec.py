"""``winready spec``: the standard as it is implemented here."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from winready.cli.options import document_option, fail, print_document, say, table_option
from winready.cli.tables import listed, print_table, yes

if TYPE_CHECKING:
    from winready.spec.model import Requirement


@click.group()
def spec() -> None:
    """The standard as data: requirements, categories, rules.

    \b
    winready spec list
    winready spec show core.network.dns-internal
    winready spec coverage
    """


@spec.command("list")
@click.option("--category", "categories", multiple=True, metavar="C", help="Only this category, in any letter case.")
@table_option
def list_requirements(categories: tuple[str, ...], output: str) -> None:
    """List the requirements."""
    from winready.engine.selection import Selection, SelectionError, select
    from winready.spec.loader import load_standard

    standard = load_standard()
    try:
        found = select(standard, Selection(profile="full", categories=list(categories)))
    except SelectionError as error:
        fail(str(error))
    if output == "wide":
        heads = ("KEY", "ID", "LEVEL", "DISRUPTIVE", "VERSIONS", "NEEDS", "STATEMENT")
        print_table(heads, *(_wide(item, standard.level(item)) for item in found))
        return
    if output != "text":
        print_document(found, output)
        return
    category = ""
    for item in found:
        if item.category != category:
            category = item.category
            say(f"{category} ({standard.level(item)})")
        say(f"  {item.key:<4} {item.id}")
        say(f"       {item.statement}")


def _wide(item: Requirement, level: str) -> tuple[str, ...]:
    needs = [f"{item.needs.windows} Windows", f"{item.needs.linux} Linux", *item.needs.features]
    return item.key, item.id, level, yes(item.disruptive), str(item.versions), listed(needs), item.statement


@spec.command()
@click.argument("requirement")
@document_option
def show(requirement: str, output: str) -> None:
    """Show one requirement or rule."""
    from winready.engine.selection import Selection, SelectionError, select
    from winready.spec.loader import load_standard

    standard = load_standard()
    rule = next((item for item in standard.rules if item.id == requirement.casefold()), None)
    try:
        item: Any = rule or select(standard, Selection(requirements=[requirement]))[0]
    except SelectionError as error:
        fail(str(error))
    if output != "text":
        print_document(item, output)
        return
    import msgspec

    for key, value in msgspec.to_builtins(item).items():
        say(f"{key:<11} {_flat(value)}")


@spec.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
def validate(files: tuple[Path, ...]) -> None:
    """Check specification files; every mistake with file, line and a suggestion. Exit code 2 when there are some."""
    from winready.spec.loader import SpecificationError, load_file

    wrong = False
    for path in files:
        try:
            loaded = load_file(path)
        except SpecificationError as error:
            wrong = True
            say(str(error), err=True)
            continue
        say(f"{path}: {len(loaded.requirements)} requirements, {len(loaded.rules)} rules, {loaded.digest}")
    sys.exit(2 if wrong else 0)


@spec.command()
@click.option("--kubernetes", metavar="V", help="Upstream tests of this version (default: the newest that is mapped).")
@table_option
def coverage(kubernetes: str | None, output: str) -> None:
    """Say which check and which upstream tests verify each requirement, and where there is none yet."""
    from winready.checks.registry import load_checks
    from winready.spec.loader import load_standard
    from winready.spec.versions import Version
    from winready.upstream.mapping import load_mapping

    checks = load_checks()
    mapping = load_mapping()
    try:
        version = Version.parse(kubernetes or mapping.newest)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--kubernetes") from None
    rows: list[dict[str, Any]] = []
    for item in load_standard().requirements:
        choice = mapping.choose(item.id, version)
        rows.append(
            {
                "id": item.id,
                "category": item.category,
                "check": checks[item.id].run.__name__ if item.id in checks else None,
                "upstream": list(choice.tests),
                "upstream_proves": "all" if choice.full else "a part" if choice.tests else "nothing",
                "unproven": list(choice.unproven),
            }
        )
    verified = sum(1 for row in rows if row["check"] or row["upstream_proves"] == "all")
    if output not in ("text", "wide"):
        document = {"kubernetes": str(version), "requirements": rows, "covered": verified, "total": len(rows)}
        print_document(document, output)
        return
    if output == "wide":
        heads = ("REQUIREMENT", "CATEGORY", "CHECK", "UPSTREAM PROVES", "UPSTREAM TESTS", "UPSTREAM LEAVES OPEN")
        print_table(heads, *(_covered(row) for row in rows))
    for row in rows if output == "text" else ():
        tests = f"{row['upstream_proves']}: {', '.join(row['upstream'])}" if row["upstream"] else "none"
        say(f"{row['id']:<60} check: {row['check'] or 'none yet':<30} upstream: {tests}")
    say(f"\n{verified} of {len(rows)} requirements have a verifier that shows all of it (Kubernetes {version})")


def _covered(row: dict[str, Any]) -> tuple[str, ...]:
    tests, unproven = listed(row["upstream"]), listed(row["unproven"])
    return row["id"], row["category"], row["check"] or "none yet", row["upstream_proves"], tests, unproven


@spec.command()
@click.option(
    "--of",
    "what",
    type=click.Choice(["spec", "run", "journal", "doctor", "active-directory", "node", "api"]),
    default="spec",
    show_default=True,
    help="Of specification files, of run.json, of each line of journal.jsonl, of 'doctor -o json', of files for "
    "--active-directory, of node.json, or of answers of the dashboard's API.",
)
def schema(what: str) -> None:
    """Print a JSON Schema.

    \b
    winready spec schema                  of specification files
    winready spec schema --of run         of run.json
    winready spec schema --of journal     of each line of journal.jsonl
    winready spec schema --of doctor      of what 'winready doctor -o json' prints
    winready spec schema --of active-directory   of files for run --active-directory
    winready spec schema --of node              of node.json in a bundle for a Windows machine
    winready spec schema --of api               of every answer of the API of 'winready dashboard'
    """
    if what == "node":
        from winready.node.parameters import json_schema

        print_document(json_schema(), "json")
        return
    from winready.report.schemas import SCHEMAS

    print_document(SCHEMAS[what](), "json")


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_flat(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return str(value)
