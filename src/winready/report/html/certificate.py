"""``certificate.html``: what a bundle claims, on one sheet of paper for people; stamped when it is only a draft."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from winready.report import meaning
from winready.report.bundle.product import Product
from winready.report.folding import short
from winready.report.html.page import asset, digest, environment
from winready.report.record import Record

NAME = "certificate.html"
LINES, LONGEST = 6, 150
"""How many sentences of a kind a sheet has room for, and how long each may be; ``report.html`` has them all."""
CANNOT = "It cannot prove that the run happened as told, nor that the product is what its description says."


def render(run: Record, product: Product, not_shown: Sequence[str], *, evidence: str, signer: str) -> str:
    """The sheet. ``evidence``: the digest of the journal, ``signer``: the fingerprint of the key, if it is signed."""
    style = asset("base.css") + asset("certificate.css")
    told = meaning.explain(run)
    return (
        environment()
        .get_template("certificate.html")
        .render(
            record=run,
            product=product,
            headline=meaning.headline(run),
            good=run.verdict == "Pass" and meaning.has_verdict(run),
            draft=_few(not_shown, LINES - 2),
            sums=meaning.sums(run),
            core=meaning.core(run),
            builds=_few(meaning.builds(run)),
            does=_few(told.does),
            does_not=_few([CANNOT, *told.does_not]),
            profile=_profile(run),
            evidence=evidence,
            signer=signer,
            style=Markup(style),  # noqa: S704 - our own file, allowed by its digest
            policy=f"default-src 'none'; style-src {digest(style)}; base-uri 'none'; form-action 'none'",
        )
    )


def _few(lines: Sequence[str], most: int = LINES) -> list[str]:
    shown = [short(line, LONGEST) for line in lines]
    if len(shown) <= most:
        return shown
    return [*shown[: most - 1], f"{len(shown) - most + 1} more are in report.html"]


def _profile(run: Record) -> str:
    chosen = run.selection
    if chosen.categories or chosen.requirements or chosen.skip:
        return f"a selection of {len(run.requirements)} requirements"
    return f"{chosen.profile}, {len(run.requirements)} requirements"
