"""Who refused an object on its way into the cluster: read from the API server's words, which name nothing else.

A refusal is a decision of the cluster's operators. It says nothing about Windows, and no right of ours would change it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

OURS = "app.kubernetes.io/managed-by=winready"
"""What operators can recognise our namespaces and pods by, to exempt them."""
_EXEMPT = f"namespaces with the label {OURS}"
_WEBHOOKS = "'kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations'"


@dataclass(frozen=True)
class Refusal:
    """Who refused, in which words, and what can be done about it."""

    by: str
    """The refusing object: its kind and name."""
    words: str
    next_step: str

    def __str__(self) -> str:
        return f"{self.by} refuses it: {self.words}"


_FORMS: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (
        re.compile(r"exceeded quota: (?P<name>[^,]+), (?P<words>requested: .*)"),
        "ResourceQuota {name}",
        f"raise ResourceQuota {{name}}, or keep whatever writes it out of {_EXEMPT}",
    ),
    (
        re.compile(r"failed quota: (?P<name>[^:]+): (?P<words>.*)"),
        "ResourceQuota {name}",
        f"put a LimitRange with defaults beside ResourceQuota {{name}}, or keep both out of {_EXEMPT}",
    ),
    (
        re.compile(r"status unknown for quota: (?P<name>[^,]+), (?P<words>.*)"),
        "ResourceQuota {name}",
        "look at the controller manager: it has not counted yet what ResourceQuota {name} limits",
    ),
    (
        re.compile(
            r"forbidden: (?P<words>\[?(?:(?:max|min)imum \S+ usage per \w+ is |\S+ max limit to request ratio per ).*)"
        ),
        "a LimitRange",
        f"widen it, or keep whatever writes it out of {_EXEMPT}",
    ),
    (
        re.compile(r"(?P<words>must be less than or equal to \S+ limit of .*)"),
        "the default limit of a LimitRange",
        f"raise that default, or keep whatever writes it out of {_EXEMPT}",
    ),
    (
        re.compile(r'violates PodSecurity "(?P<name>[^"]+)": (?P<words>.*)'),
        "Pod Security {name}",
        f"let {_EXEMPT} keep their own label pod-security.kubernetes.io/enforce=privileged",
    ),
    (
        re.compile(
            r"ValidatingAdmissionPolicy '(?P<name>[^']+)' with binding '(?P<binding>[^']+)' denied request: "
            r"(?P<words>.*)"
        ),
        "ValidatingAdmissionPolicy {name} (binding {binding})",
        f"exempt {_EXEMPT} in ValidatingAdmissionPolicyBinding {{binding}}, or ask who owns it",
    ),
    (
        re.compile(r'admission webhook "(?P<name>[^"]+)" denied the request:? ?(?P<words>.*)'),
        "admission webhook {name}",
        f"exempt {_EXEMPT} from webhook {{name}}, or ask who owns it: {_WEBHOOKS}",
    ),
    (
        re.compile(r'failed calling webhook "(?P<name>[^"]+)": (?P<words>.*)'),
        "admission webhook {name}, which does not answer,",
        f"look at the service behind webhook {{name}}: {_WEBHOOKS} names it",
    ),
    (
        re.compile(r"(?P<words>unable to validate against any security context constraint: .*)"),
        "OpenShift's security context constraints",
        "let the service accounts of our namespaces use the constraint 'privileged'",
    ),
    (
        re.compile(r"(?P<words>image policy webhook backend denied .*)"),
        "the image policy webhook",
        "let it allow winready's images, or name a registry that it allows with --image-registry",
    ),
)


def read_refusal(message: str) -> Refusal | None:
    """Who refused, if the message of an API error is about a refusal by admission."""
    for form, by, next_step in _FORMS:
        if found := form.search(message):
            named = found.groupdict()
            words = named.pop("words").strip() or "without explanation"
            return Refusal(by.format(**named), words, next_step.format(**named))
    return None
