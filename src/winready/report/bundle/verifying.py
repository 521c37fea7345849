"""Checking a bundle again, from the bytes up: what holds, what does not, and what nobody could tell from a file."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from winready import __version__
from winready.engine import events, journal
from winready.report import record
from winready.report.bundle import making, signing
from winready.report.bundle.archive import BundleError, unpack
from winready.report.bundle.making import Certificate
from winready.report.bundle.recomputing import JournalError, recompute, refusals
from winready.report.html import certificate as sheet
from winready.report.record import Record
from winready.spec.loader import SpecificationError, load_standard, parse
from winready.spec.model import Specification

BASIC = {
    making.CERTIFICATE, making.PRODUCT, making.SPECIFICATION, record.NAME, journal.NAME, "junit.xml", "report.html",
    "README.txt", making.SUMS,
}  # fmt: skip
LATER = {sheet.NAME}
"""What bundles of earlier versions do not have."""
SIGNED = {making.SIGNER, making.SIGNATURE}


@dataclass
class Checked:
    """What came out."""

    holds: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    cannot_tell: list[str] = field(default_factory=list)
    certificate: Certificate | None = None

    @property
    def intact(self) -> bool:
        """Whether nothing was found wrong."""
        return not self.broken and self.certificate is not None


def verify(data: bytes, key: Ed25519PublicKey | None = None) -> Checked:
    """Check a bundle; with ``key``, it must be signed by its owner."""
    checked = Checked()
    try:
        files = unpack(data)
        _verify(files, checked, key)
    except (BundleError, JournalError) as error:
        checked.broken.append(str(error))
    except RecursionError:
        checked.broken.append("something in it is nested deeper than anything that winready writes")
    return checked


def verify_story(story: bytes, written: bytes | None) -> tuple[Checked, Record | None]:
    """Check a run that nobody vouches for: whether its journal, its verdict and its record fit each other."""
    checked = Checked()
    try:
        happened = _story(story)
        run = record.from_events(happened)
        _recompute(load_standard(), happened, run, checked)
        if written is not None and record.encode(run) != written and _older(record.encode(run), written) != written:
            raise BundleError(f"{record.NAME} does not follow from the journal")
        checked.holds.append(f"{record.NAME} follows from the journal" if written else "the journal is whole")
    except (BundleError, JournalError) as error:
        checked.broken.append(str(error))
        return checked, None
    checked.cannot_tell += [
        "whether anything was changed since: nothing vouches for the bytes of a tarball",
        "whether the run happened as the journal tells: whoever has a cluster can run it again",
    ]
    return checked, run


def read_run(data: bytes) -> Record:
    """The run in a bundle, for comparing; raises `BundleError` unless it is intact."""
    return read_claim(data)[1]


def read_claim(data: bytes) -> tuple[Certificate, Record]:
    """Who claims what in a bundle, and the run in it; raises `BundleError` unless it is intact."""
    checked = verify(data)
    if checked.certificate is None or not checked.intact:
        raise BundleError("; ".join(checked.broken))
    return checked.certificate, record.from_events(_story(unpack(data)[journal.NAME]))


def _verify(files: dict[str, bytes], checked: Checked, key: Ed25519PublicKey | None) -> None:
    names = set(files)
    if names - LATER not in (BASIC, BASIC | SIGNED):
        odd = ", ".join(sorted((names - LATER) ^ BASIC))
        raise BundleError(f"some files are missing or do not belong into a bundle: {odd}")
    listed = {name: content for name, content in files.items() if name not in (making.SUMS, making.SIGNATURE)}
    if making.digests(listed) != files[making.SUMS]:
        raise BundleError("the digest list does not fit the files")
    checked.holds.append(f"all {len(listed)} files have the digests that the list gives")
    _signature(files, checked, key)
    specification = _specification(files[making.SPECIFICATION])
    story = _story(files[journal.NAME])
    run = record.from_events(story)
    rules = _recompute(specification, story, run, checked)
    claim = _claim(files[making.CERTIFICATE])
    standard = load_standard().digest
    if run.spec.get("digest") == standard == specification.digest:
        checked.holds.append(f"it follows version {run.spec.get('version')} of the standard, unmodified")
    elif specification.digest != standard:
        checked.cannot_tell.append("whether its specification was ever published: this winready has another one")
    # Pages are compared with what this very winready would have made of the journal.
    ours = run.tool == f"winready {__version__}" and rules > 0
    _claims(files, checked, run, specification, claim, ours=ours)
    checked.certificate = claim
    checked.cannot_tell += [
        "whether the run happened as the journal tells: whoever has a cluster can run it again",
        "whether the product is what its description says",
    ]


def _recompute(specification: Specification, story: list[events.AnyEvent], run: Record, checked: Checked) -> int:
    """Rules and verdict follow from the journal; how many rules could be judged again."""
    recomputed = recompute(specification, story)
    verdict = recomputed.verdict
    if str(verdict) != run.verdict_text or verdict.exit_code != run.exit_code:
        raise JournalError(f"by the rules the verdict is {verdict}, the journal says {run.verdict_text}")
    count = len(run.requirements)
    gives = f"give the verdict {verdict}" if verdict.verdict else "are no verdict: it was interrupted"
    checked.holds.append(f"by the rules, the {count} outcomes in the journal {gives}")
    checked.cannot_tell += recomputed.cannot_tell
    if recomputed.rules:
        checked.holds.append(f"by the facts in the journal, {recomputed.rules} rules have the outcomes that it tells")
    return recomputed.rules


def _claims(
    files: dict[str, bytes],
    checked: Checked,
    run: Record,
    specification: Specification,
    claim: Certificate,
    *,
    ours: bool,
) -> None:
    """Everything else in the bundle must follow from the journal."""
    reasons = refusals(run, specification)
    if reasons and not claim.draft:
        raise BundleError(f"it is no draft, but no certificate can rest on this run: {'; '.join(reasons)}")
    if reasons != claim.not_shown:
        raise BundleError("what the draft says that it is not does not follow from the run")
    signer = signing.fingerprint(_signer(files)) if making.SIGNER in files else ""
    told = files[making.SPECIFICATION]
    made = making.contents(run, files[journal.NAME], claim.product, claim.not_shown, told, signer)
    pages = {"report.html", "junit.xml", "README.txt", *LATER}
    for name in sorted(made):
        if name in LATER and name not in files:
            continue
        if made[name] == files[name] or (name == record.NAME and _older(made[name], files[name]) == files[name]):
            continue
        if name in pages and not ours:
            checked.cannot_tell.append(f"whether {name} shows what the journal tells: {run.tool} made it")
        else:
            raise BundleError(f"{name} does not follow from the journal")
    checked.holds.append("record, claim and pages follow from the journal")


def _older(made: bytes, written: bytes) -> bytes:
    """A record as a version wrote it that did not know all fields: those that say nothing were not there."""
    try:
        known = msgspec.json.decode(written, type=dict[str, msgspec.Raw])
    except journal.NOT_JSON:
        return made
    nothing = msgspec.json.decode(record.encode(Record()))
    fields = msgspec.json.decode(made)
    kept = {name: value for name, value in fields.items() if name in known or value != nothing[name]}
    for name in ("cluster", "plan"):
        if isinstance(kept.get(name), dict) and isinstance(written_part := msgspec.json.decode(known[name]), dict):
            kept[name] = {key: value for key, value in kept[name].items() if key in written_part or value}
    return msgspec.json.format(msgspec.json.encode(kept), indent=2) + b"\n"


def _signature(files: dict[str, bytes], checked: Checked, key: Ed25519PublicKey | None) -> None:
    if making.SIGNATURE not in files:
        if key is not None:
            raise BundleError("it is not signed, and --key asks for a signature")
        checked.cannot_tell.append("who made it: it is not signed")
        return
    signer = _signer(files)
    if not signing.signed_by(signer, files[making.SUMS], files[making.SIGNATURE]):
        raise BundleError("the signature does not fit the digest list")
    name = signing.fingerprint(signer)
    if key is None:
        checked.holds.append(f"it is signed by the key {name}")
        checked.cannot_tell.append("whose key that is: compare it, or give the key that you trust with --key")
    elif signing.fingerprint(key) != name:
        raise BundleError(f"it is signed by the key {name}, not by the one given")
    else:
        checked.holds.append("it is signed by the key that you gave")


def _signer(files: dict[str, bytes]) -> Ed25519PublicKey:
    try:
        return signing.public_key(files[making.SIGNER], making.SIGNER)
    except signing.KeyProblem as error:
        raise BundleError(str(error)) from None


def _specification(data: bytes) -> Specification:
    try:
        return parse(data, making.SPECIFICATION)
    except SpecificationError as error:
        raise BundleError(f"the specification in the bundle is broken: {error.mistakes[0]}") from None


def _story(data: bytes) -> list[events.AnyEvent]:
    try:
        return journal.parse(data, "the journal")
    except journal.Unreadable as error:
        raise JournalError(f"the journal cannot be read: {error}") from None


def _claim(data: bytes) -> Certificate:
    try:
        return msgspec.json.decode(data, type=Certificate)
    except journal.NOT_JSON as error:
        raise BundleError(f"{making.CERTIFICATE} cannot be read: {error}") from None
