"""Differences between the embedded API server and the real one that stay, each by what it is and why it may.

docs/sandbox.md tells users of them. One that no longer occurs fails the comparison that names it, so that nobody
believes in a difference that is gone, and no other one hides behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

ANY = object()
"""Whatever the answer says there."""
OWNERS = r"\.answer\.metadata\.managedFields\[0\]\.fieldsV1"
GENERATED = r"(batch\.kubernetes\.io/)?(controller-uid|job-name)"


@dataclass(frozen=True)
class Difference:
    """A part of the answer to a request that is not the same."""

    request: str
    """Method, path and body."""
    part: str
    embedded: Any
    real: Any


@dataclass(frozen=True)
class Accepted:
    """A difference that stays. Everything it says must occur, in every comparison that it names."""

    what: str
    why: str
    where: tuple[str, ...]
    """Comparisons: scenarios, and kinds with names of good objects."""
    request: str
    """A pattern of the requests."""
    parts: dict[str, tuple[Any, Any]]
    """Patterns of parts of the answers, and what the embedded and the real server say there."""

    def explained(self, found: Difference) -> str:
        """The pattern that a difference fits, if it does."""
        if not re.search(self.request, found.request):
            return ""
        for pattern, (embedded, real) in self.parts.items():
            if re.fullmatch(pattern, found.part) and embedded in (ANY, found.embedded) and real in (ANY, found.real):
                return pattern
        return ""


def refused(embedded: tuple[int, str], real: tuple[int, str | None], **more: tuple[Any, Any]) -> dict[str, Any]:
    """The parts of two refusals: codes, reasons and what else."""
    return {
        r"\.status": (embedded[0], real[0]),
        r"\.answer\.code": (embedded[0], real[0]),
        r"\.answer\.reason": (embedded[1], real[1]),
        **{rf"\.answer\.{part}": answers for part, answers in more.items()},
    }


def complaints(comparison: str, found: Iterable[Difference]) -> list[str]:
    """What nobody accepted, and what was accepted and is not there."""
    accepted = [entry for entry in ACCEPTED if comparison in entry.where]
    missing = {(entry.what, pattern) for entry in accepted for pattern in entry.parts}
    said = []
    for each in found:
        reasons = {(entry.what, pattern) for entry in accepted if (pattern := entry.explained(each))}
        missing -= reasons
        if not reasons:
            said.append(f"{each.request[:300]}\n  {each.part}: embedded {each.embedded!r}, real {each.real!r}")
    return [*said, *(f"accepted, but no longer so: {what} ({pattern})" for what, pattern in sorted(missing))]


ACCEPTED = [
    Accepted(
        "the version names no build",
        "there is none: the embedded server stands for a version",
        ("access",),
        r"^GET /version ",
        {
            r"\.answer\.git(Version|Commit)": (ANY, ANY),
            r"\.answer\.goVersion": ("", ANY),
            r"\.answer\.emulation(Major|Minor)": (None, ANY),
            r"\.answer\.minCompatibility(Major|Minor)": (None, ANY),
        },
    ),
    Accepted(
        "some groups are not served",
        "nothing that runs on Windows nodes uses them",
        ("access",),
        r"^GET /apis ",
        {
            r"\.answer\.groups\.apiregistration\.k8s\.io\..*": (None, ANY),
            r"\.answer\.groups\.flowcontrol\.apiserver\.k8s\.io\..*": (None, ANY),
            r"\.answer\.groups\.resource\.k8s\.io\..*": (None, ANY),
        },
    ),
    Accepted(
        "access reviews have no owners of fields",
        "they are answered, not stored",
        ("access",),
        r"^POST /apis/authorization\.k8s\.io/v1/(self)?subjectaccessreviews ",
        {r"\.answer\.metadata\.managedFields": ([], ANY)},
    ),
    Accepted(
        "token reviews and requests have no owners of fields",
        "they are answered, not stored",
        ("access", "subresources"),
        r"^POST .*/(tokenreviews|token) ",
        {r"\.answer\.metadata\.managedFields": ([], ANY)},
    ),
    Accepted(
        "the refusal of an empty access review names its kind",
        "it is refused either way",
        ("access",),
        r'subjectaccessreviews \{"spec": \{\}\}',
        {r"\.answer\.about\.kind": ("SubjectAccessReview", None)},
    ),
    Accepted(
        "a token that is none is refused by two authenticators, and in so many words",
        "the real one has only one that looks at tokens without dots",
        ("access",),
        r"/tokenreviews ",
        {
            r"\.answer\.status\.authenticated": (False, None),
            r"\.answer\.status\.error": ("[invalid bearer token, invalid bearer token]", "invalid bearer token"),
        },
    ),
    Accepted(
        "versions that no group has are unknown paths",
        "no client asks for them",
        ("paths",),
        r"^GET (/api/v2|/apis/apps/v9/deployments) ",
        {r"\.answer": ("404 page not found\n", ANY)},
    ),
    Accepted(
        "a name that is not that of the path is noticed before a conflict",
        "the request is refused either way",
        ("apply",),
        r'^PATCH .*fieldManager=one .*"name": "other"',
        refused((400, "BadRequest"), (409, "Conflict"), causes=([], [(".data.a", "FieldManagerConflict")])),
    ),
    Accepted(
        "an update from a resource version that is no number is a conflict",
        "the request is refused either way",
        ("updates",),
        r'^PUT .*"resourceVersion": "x"',
        {
            **refused((409, "Conflict"), (500, None)),
            r"\.answer\.about\.(kind|name)": (ANY, None),
        },
    ),
    Accepted(
        "a watch from a resource version that is no number is a bad request",
        "the request is refused either way",
        ("lists",),
        r"^GET .*watch=true&resourceVersion=x&",
        refused((400, "BadRequest"), (500, None)),
    ),
    Accepted(
        "replicas that are no number are a bad request",
        "the request is refused either way",
        ("subresources",),
        r'^PATCH .*/scale .*"x"',
        refused((400, "BadRequest"), (422, "Invalid"), causes=([], [("patch", "FieldValueInvalid")])),
    ),
    Accepted(
        "a pod that no node has is gone at once, without a last generation",
        "nobody can have seen it",
        ("pod-plain", "pod-windows", "pod-host", "pod-silent", "pod-rich"),
        r"^DELETE .*dryRun=All ",
        {r"\.answer\.metadata\.generation": (1, 2)},
    ),
    Accepted(
        "claims are not protected from deletion",
        "no controller would take the finalizer off",
        ("persistentvolumeclaim-claim",),
        r"/persistentvolumeclaims",
        {r"\.answer\.metadata\.finalizers": (None, ["kubernetes.io/pvc-protection"])},
    ),
    Accepted(
        "annotations are no new generation of a deployment",
        "nothing reads it",
        ("deployment-plain", "deployment-recreated"),
        r'^(GET|PATCH .*"/metadata/annotations")',
        {r"\.answer\.metadata\.generation": (1, 2)},
    ),
    Accepted(
        "whoever makes a job owns the labels and the selector that it generates",
        "nobody applies jobs",
        ("job-plain",),
        r"/jobs",
        {
            rf"{OWNERS}\.f:metadata\.f:labels\.f:{GENERATED}": ({}, None),
            rf"{OWNERS}\.f:spec\.f:template\.f:metadata\.f:labels\.f:{GENERATED}": ({}, None),
            rf"{OWNERS}\.f:spec\.f:selector": ({}, None),
        },
    ),
    Accepted(
        "jobs orphan their pods only when asked to",
        "kubectl and all current clients say what they want",
        ("job-plain",),
        r"^DELETE .*dryRun=All ",
        {r"\.answer\.kind": ("Status", "Job")},
    ),
    Accepted(
        "structures that were given empty, or hold what has owners, have an owner",
        "nobody applies these kinds",
        ("cronjob-plain",),
        r"/cronjobs",
        {rf"{OWNERS}\.f:spec\.f:jobTemplate(\..*)?": ({}, None)},
    ),
    Accepted(
        "an empty selector has an owner",
        "nobody applies network policies",
        ("networkpolicy-plain",),
        r"/networkpolicies",
        {rf"{OWNERS}\.f:spec\.f:podSelector": ({}, None)},
    ),
    Accepted(
        "the resources of a claim have an owner beside that of what is in them",
        "nobody applies claims",
        ("persistentvolumeclaim-claim",),
        r"/persistentvolumeclaims",
        {rf"{OWNERS}\.f:spec\.f:resources\.\.": ({}, None)},
    ),
    Accepted(
        "an empty service name has an owner",
        "nobody applies stateful sets",
        ("refused",),
        r"/statefulsets",
        {rf"{OWNERS}\.f:spec\.f:serviceName": ({}, None)},
    ),
    Accepted(
        "an address that is none is refused when it is allocated",
        "the request is refused either way",
        ("refused",),
        r'/services.*"clusterIP": "wat"',
        {
            r"\.answer\.causes\[0\]": (
                ("spec.clusterIPs", "FieldValueInvalid"),
                ("spec.clusterIPs[0]", "FieldValueInvalid"),
            )
        },
    ),
    Accepted(
        "a deadline of a pod that is put off is not the only mistake that is told",
        "the request is refused either way; the real server looks no further",
        ("refused",),
        r'^PUT .*/pods/.*"activeDeadlineSeconds": 6',
        {
            r"\.answer\.causes": (
                [("spec", "FieldValueForbidden"), ("spec.activeDeadlineSeconds", "FieldValueInvalid")],
                [("spec.activeDeadlineSeconds", "FieldValueInvalid")],
            )
        },
    ),
    Accepted(
        "volumes and claims are not protected from deletion",
        "no controller would take the finalizer off",
        ("lint-data", "lint-data-older"),
        r"/persistentvolume",
        {r"\.answer\.metadata\.finalizers": (None, ANY)},
    ),
    Accepted(
        "an empty list is one, not nothing",
        "readers take both for the same",
        ("lint-data", "lint-data-older"),
        r'"(sources|limits)": \[\]',
        {r"\.answer\..*\.(sources|limits)": ([], None)},
    ),
    Accepted(
        "what is empty in an ephemeral container does not count as set",
        "the request is refused either way",
        ("lint-data", "lint-data-older"),
        r'"ephemeralContainers".*("requests": \{\}|"resizePolicy": \[\]|"claims": \[\])',
        {r"\.answer\.causes|\.message": (ANY, ANY)},
    ),
    Accepted(
        "a driver without a name has no name that is wrong as well",
        "the request is refused either way",
        ("lint-data-older",),
        r'"driver": ""|"csi": \{\}|"csi": \{"fsType"',
        {r"\.answer\.causes(\[\d\])?": (ANY, ANY)},
    ),
    Accepted(
        "a handler without a name is missing, not wrong",
        "the request is refused either way",
        ("lint-data-older",),
        r'"handler": ""',
        {r"\.answer\.causes\[0\]": (ANY, ANY)},
    ),
    Accepted(
        "what a template that nobody looks into lacks stays away",
        "before 1.34 a stateful set takes any template, and no pod comes of these",
        ("lint-data-older",),
        r"/statefulsets",
        {r"\.answer\.spec\.template\.spec\..*": (None, ANY)},
    ),
    Accepted(
        "a condition without a status means a true one in the jobs of cron jobs, too",
        "later servers see it so",
        ("beyond-data-older",),
        r'/cronjobs.*"type": "DisruptionTarget"\}',
        {r"\.answer\.causes": (ANY, ANY)},
    ),
    Accepted(
        "daemon sets keep their deprecated template generation when all annotations are taken away",
        "nothing reads it",
        ("daemonset-plain",),
        r"^GET ",
        {r"\.answer\.metadata\.annotations\.deprecated\.daemonset\.template\.generation": ("1", None)},
    ),
]
