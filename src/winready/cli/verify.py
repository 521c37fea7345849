"""``winready verify``: check a bundle again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from winready.cli.options import fail, print_document, say
from winready.cli.places import opened, place_elsewhere, reading_run, told

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    from winready.report.bundle.verifying import Checked

MOST_BYTES = 256 << 20
BUNDLES = (".tar.gz", ".tgz")


@click.command()
@click.argument("bundle", type=click.Path())
@click.option("--key", metavar="FILE", help="It must be signed by the owner of this Ed25519 public key (PEM).")
@click.option("-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True)
def verify(bundle: str, key: str | None, output: str) -> None:
    """Compute the verdict of a bundle again, check every byte of it, and say what that proves and what it cannot.

    Exit code 0: an intact certificate. 1: refused. 3: an intact draft, which is no certificate.

    \b
    winready verify shop-1.4.tar.gz
    winready verify shop-1.4.tar.gz --key shop.pub
    winready verify 202611171201_sonobuoy_2f0c.tar.gz      a run in a tarball of Sonobuoy; never a certificate
    winready verify s3://shop-runs/fleet/261115-101500-ab12   a run in a store; never a certificate
    winready verify s3://shop-runs/bundles/shop-1.4.tar.gz
    """
    from winready.report.bundle import verifying
    from winready.report.sonobuoy_archive import looks_like_one

    path = _fetched(bundle, output, signed=key is not None)
    if looks_like_one(path):
        _verify_tarball(path, output, signed=key is not None)
    try:
        if path.exists() and not path.is_file():
            fail(f"{bundle} is no file", "name the bundle that 'winready certify' wrote")
        if path.stat().st_size > MOST_BYTES:
            fail(f"{bundle} is larger than {MOST_BYTES >> 20} MB; no bundle is", code=1)
        data = path.read_bytes()
    except OSError as error:
        fail(f"{bundle} cannot be read: {error.strerror}")
    checked = verifying.verify(data, _key(key) if key else None)
    claim = checked.certificate
    if output != "text":
        document = {
            "intact": checked.intact,
            "certificate": claim,
            "holds": checked.holds,
            "broken": checked.broken,
            "cannot_tell": checked.cannot_tell,
        }
        print_document(document, output)
    else:
        if checked.intact and claim is not None:
            product = claim.product
            say(f"{product.vendor}: {product.product_name} {product.product_version}")
            say(f"{claim.verdict}, Kubernetes {claim.kubernetes}, run {claim.run_id}")
        _tell(checked)
        if not checked.intact:
            click.echo("Refused")
        elif claim is not None and claim.draft:
            click.echo("Intact, but a draft and no certificate:")
            for reason in claim.not_shown:
                say(f"  - {reason}")
        else:
            click.echo("Intact")
    sys.exit(1 if not checked.intact or claim is None else 3 if claim.draft else 0)


def _tell(checked: Checked) -> None:
    for sign, lines in (("✓", checked.holds), ("✗", checked.broken), ("?", checked.cannot_tell)):
        for line in lines:
            say(f"{sign} {'cannot tell ' if sign == '?' else ''}{line}")


def _fetched(bundle: str, output: str, *, signed: bool) -> Path:
    """The file to verify; one in a store is brought here, and a run there is verified as it is."""
    place = place_elsewhere(bundle)
    if place is None:
        return Path(bundle)
    upper, name = place.above()
    if not name.endswith(BUNDLES):
        if signed:
            fail(f"{bundle} is a run, which nobody signs", "leave --key out", code=1)
        run, base = reading_run(bundle, None)
        _verify_run(base / str(run), output)
    import tempfile

    with told():
        data = opened(upper).read(name, MOST_BYTES).data
        folder = Path(click.get_current_context().with_resource(tempfile.TemporaryDirectory(prefix="winready-")))
        (folder / name).write_bytes(data)
    return folder / name


def _verify_tarball(path: Path, output: str, *, signed: bool) -> NoReturn:
    """A tarball of Sonobuoy holds a run and no certificate."""
    from winready.cli.runs import folder_in_archive

    if signed:
        fail(f"{path} is a tarball of Sonobuoy, which nobody signs", "leave --key out", code=1)
    _verify_run(folder_in_archive(path), output)


def _verify_run(folder: Path, output: str) -> NoReturn:
    """The files of a run and no certificate: it can be consistent, never more."""
    from winready.engine import journal
    from winready.report import record
    from winready.report.bundle.verifying import verify_story

    written = folder / record.NAME
    story = (folder / journal.NAME).read_bytes() if (folder / journal.NAME).exists() else b""
    checked, run = verify_story(story, written.read_bytes() if written.exists() else None)
    if output != "text":
        parts = {"holds": checked.holds, "broken": checked.broken, "cannot_tell": checked.cannot_tell}
        print_document({"intact": not checked.broken, "certificate": None, **parts}, output)
    else:
        _tell(checked)
        end = "Consistent, but no certificate: 'winready certify' makes one of a run that can carry it"
        click.echo("Refused" if checked.broken else end)
    sys.exit(1 if checked.broken or run is None else 3)


def _key(path: str) -> Ed25519PublicKey:
    from winready.report.bundle import signing

    try:
        return signing.public_key(Path(path).read_bytes(), path)
    except OSError as error:
        fail(f"{path} cannot be read: {error.strerror}", "give another file with --key")
    except signing.KeyProblem as error:
        fail(str(error), "'openssl pkey -in signing.pem -pubout' prints the public half of a key")
