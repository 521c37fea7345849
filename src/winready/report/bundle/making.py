"""Making a bundle: everything in it follows from the run's journal, the standard and the product's description."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

import msgspec
import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from winready.engine import journal
from winready.report import junit, record
from winready.report.bundle import signing
from winready.report.bundle.archive import pack
from winready.report.bundle.product import Product
from winready.report.html import certificate as sheet
from winready.report.html import page
from winready.report.record import Record
from winready.report.words import grouped

SCHEMA = "winready-bundle/1"
SUMS, SIGNATURE, SIGNER = "SHA256SUMS", "SHA256SUMS.sig", "signer.pem"
CERTIFICATE, PRODUCT, SPECIFICATION = "certificate.json", "product.yaml", "specification.yaml"


class Certificate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the bundle claims; `winready verify` computes it again."""

    schema: str
    draft: bool
    not_shown: list[str]
    """Why it is only a draft; empty for a certificate."""
    verdict: str
    scope: str
    run_id: str
    started: str
    tool: str
    spec_version: str
    spec_digest: str
    kubernetes: str
    windows_builds: list[str]
    product: Product
    not_judged: dict[str, str] = {}
    """Windows nodes that the claim says nothing about, and why."""
    linux_not_judged: dict[str, str] = {}
    """Linux nodes on which nothing of the run was, and why."""


def make_bundle(
    folder: Path, run: Record, product: Product, not_shown: Sequence[str], key: Ed25519PrivateKey | None
) -> bytes:
    """The bundle of a run as an archive."""
    signer = signing.fingerprint(key.public_key()) if key is not None else ""
    files = contents(run, journal.whole(folder / journal.NAME), product, not_shown, standard_text(), signer)
    if key is not None:
        files[SIGNER] = signing.public_pem(key)
    files[SUMS] = digests(files)
    if key is not None:
        files[SIGNATURE] = signing.sign(key, files[SUMS])
    return pack(files)


def contents(
    run: Record, story: bytes, product: Product, not_shown: Sequence[str], specification: bytes, signer: str = ""
) -> dict[str, bytes]:
    """All files but digests and signature; the same input always gives the same bytes."""
    claim = certificate(run, product, not_shown)
    evidence = hashlib.sha256(story).hexdigest()
    return {
        CERTIFICATE: msgspec.json.format(msgspec.json.encode(claim), indent=2) + b"\n",
        PRODUCT: yaml.safe_dump(msgspec.to_builtins(product), sort_keys=False, allow_unicode=True).encode(),
        SPECIFICATION: specification,
        record.NAME: record.encode(run),
        journal.NAME: story,
        junit.NAME: junit.render(run, draft=not_shown).encode(),
        page.NAME: page.render(run, draft=not_shown).encode(),
        sheet.NAME: sheet.render(run, product, not_shown, evidence=evidence, signer=signer).encode(),
        "README.txt": _readme(claim).encode(),
    }


def certificate(run: Record, product: Product, not_shown: Sequence[str]) -> Certificate:
    """The claim."""
    judged = run.coverage.judged
    nodes = [node for node in run.cluster.nodes if node.name in judged] if run.cluster else []
    return Certificate(
        schema=SCHEMA,
        draft=bool(not_shown),
        not_shown=list(not_shown),
        verdict=run.verdict_text,
        scope=run.scope,
        run_id=run.run_id,
        started=run.started,
        tool=run.tool,
        spec_version=run.spec.get("version", ""),
        spec_digest=run.spec.get("digest", ""),
        kubernetes=run.cluster.version if run.cluster else "",
        windows_builds=sorted({node.build for node in nodes}),
        product=product,
        not_judged=run.not_judged,
        linux_not_judged=run.linux_not_judged,
    )


def digests(files: Mapping[str, bytes]) -> bytes:
    """The digest list, in the format of sha256sum."""
    return b"".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n".encode() for name in sorted(files))


def standard_text() -> bytes:
    """The specification as it lies in the package."""
    return resources.files("winready.spec").joinpath("standard.yaml").read_bytes()


def _readme(claim: Certificate) -> str:
    product = claim.product
    lines = [
        f"{product.vendor}: {product.product_name} {product.product_version}",
        f"Windows operational readiness: {claim.verdict}",
        f"Kubernetes {claim.kubernetes}, Windows {', '.join(claim.windows_builds)}",
        f"run {claim.run_id} of {claim.started}, {claim.tool}",
        "",
    ]
    for why, names in (*grouped(claim.not_judged), *grouped(claim.linux_not_judged)):
        lines += [f"not judged: {', '.join(names)}: {why}", ""]
    if claim.draft:
        lines += ["DRAFT, NOT A CERTIFICATE:", *(f"- {reason}" for reason in claim.not_shown), ""]
    lines += [
        "certificate.html    what this bundle claims, for people: one page to print",
        "report.html         the run, for people",
        "certificate.json    what this bundle claims, for machines",
        "product.yaml        who claims it of what",
        "run.json            the whole record: cluster, plan, outcomes, evidence",
        "journal.jsonl       every event of the run, as it happened",
        "junit.xml           the outcomes, for machines",
        "specification.yaml  the standard that was followed",
        "SHA256SUMS          digests of all of these ('sha256sum -c SHA256SUMS')",
        "",
        "'winready verify FILE' computes the verdict again from the journal and checks every byte.",
        "",
    ]
    return "\n".join(lines)
