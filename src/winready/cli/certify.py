"""``winready certify``: the bundle that a vendor hands in."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from winready.cli.options import fail, say
from winready.cli.runs import find_run, report_dir_option


@click.command()
@click.argument("run", required=False)
@click.option("--to", metavar="FILE.tar.gz", help="Where the bundle goes.")
@click.option("--output", hidden=True)
@click.option("--vendor", help="Who hands it in.")
@click.option("--product-name", help="What runs the cluster.")
@click.option("--product-version", help="Its version.")
@click.option("--contact", help="Whom to ask, as an e-mail address.")
@click.option("--website", help="Where the product is described.")
@click.option("--documentation", help="Where it is documented.")
@click.option("--description", help="The product in a sentence.")
@click.option("--product-file", metavar="FILE", help="The same as YAML; options win.")
@click.option("--key", metavar="FILE", help="Sign with this Ed25519 private key (PEM).")
@click.option("--draft", is_flag=True, help="Make a bundle all the same, which says on every page what it is not.")
@report_dir_option
def certify(run: str | None, to: str | None, output: str | None, report_dir: str | None, **given: Any) -> None:
    """Make a bundle of the last run, or of RUN, that anyone can check again with 'winready verify'.

    A run that is partial, left out usable Windows nodes, was time-scaled or on a sandbox, followed a modified
    specification or comes without Linux conformance is refused with the reasons (exit code 1).

    \b
    winready certify --vendor Shop --product-name "Shop K8s" --product-version 1.4 --contact k8s@shop.example \
                     --to shop-1.4.tar.gz
    winready certify RUN --product-file product.yaml --key signing.pem --to shop-1.4.tar.gz
    winready certify --draft --product-file product.yaml --to try.tar.gz
    """
    from winready.engine import journal
    from winready.report import record
    from winready.report.bundle import making, signing
    from winready.report.bundle.product import ProductError
    from winready.report.bundle.recomputing import JournalError, recompute, refusals
    from winready.spec.loader import load_standard

    target = to or output
    if target is None:
        raise click.UsageError("Missing option '--to': where does the bundle go?")
    folder, _ = find_run(run, report_dir)
    standard = load_standard()
    try:
        happened = journal.read(folder)
        found = record.from_events(happened)
        not_shown = refusals(found, standard)
        if not not_shown or given["draft"]:
            recompute(standard, happened)
    except (journal.Unreadable, JournalError) as error:
        fail(f"the journal of {folder} cannot carry a bundle: {error}", code=1)
    if not_shown and not given["draft"]:
        say(f"run {found.run_id} cannot be certified:", err=True)
        for reason in not_shown:
            say(f"  - {reason}", err=True)
        click.echo("--draft makes a bundle all the same, marked as what it is", err=True)
        sys.exit(1)
    try:
        key = signing.private_key(_read(given["key"], "--key"), given["key"]) if given["key"] else None
        product = _product(given)
    except (signing.KeyProblem, ProductError) as error:
        fail(str(error))
    data = making.make_bundle(folder, found, product, not_shown, key)
    try:
        Path(target).write_bytes(data)
    except OSError as error:
        fail(f"{target} cannot be written: {error.strerror}", "choose another place with --to")
    kind = "draft" if not_shown else "certificate"
    say(f"{kind} of run {found.run_id}, {found.verdict_text}: {target}")
    for reason in not_shown:
        say(f"  not shown: {reason}")


def _product(given: dict[str, Any]) -> Any:
    from winready.report.bundle.product import OPTIONAL, REQUIRED, make_product, read_product

    file = given["product_file"]
    fields = read_product(_read(file, "--product-file"), file) if file else {}
    fields |= {name: given[name] for name in (*REQUIRED, *OPTIONAL) if given[name]}
    if sys.stdin.isatty():
        for name in REQUIRED:
            if not fields.get(name):
                fields[name] = click.prompt(name.replace("_", " ").capitalize(), err=True)
    return make_product(fields)


def _read(path: str, option: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        fail(f"{path} cannot be read: {error.strerror}", f"give another file with {option}")
