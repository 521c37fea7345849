"""``winready verify``: check a bundle again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from winready.cli.options import fail, print_document, say

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

MOST_BYTES = 256 << 20


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
    """
    from winready.report.bundle import verifying

    path = Path(bundle)
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
        for sign, lines in (("✓", checked.holds), ("✗", checked.broken), ("?", checked.cannot_tell)):
            for line in lines:
                say(f"{sign} {'cannot tell ' if sign == '?' else ''}{line}")
        if not checked.intact:
            click.echo("Refused")
        elif claim is not None and claim.draft:
            click.echo("Intact, but a draft and no certificate:")
            for reason in claim.not_shown:
                say(f"  - {reason}")
        else:
            click.echo("Intact")
    sys.exit(1 if not checked.intact or claim is None else 3 if claim.draft else 0)


def _key(path: str) -> Ed25519PublicKey:
    from winready.report.bundle import signing

    try:
        return signing.public_key(Path(path).read_bytes(), path)
    except OSError as error:
        fail(f"{path} cannot be read: {error.strerror}", "give another file with --key")
    except signing.KeyProblem as error:
        fail(str(error), "'openssl pkey -in signing.pem -pubout' prints the public half of a key")
