"""What the gMSA admission webhook answers to pods, as version 0.13.0 was seen to answer.

The real program and the embedded sandbox's model of it are held against the same table.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from winready_sandbox import directory
from winready_sandbox.machine.domain import new_domain

HOOK = "admission-webhook.windows-gmsa.sigs.k8s.io"
_SPEC = directory.credential_spec(new_domain(""))
SPEC: str = _SPEC["metadata"]["name"]
CONTENTS: dict[str, Any] = _SPEC["credspec"]
HOLLOW = {**_SPEC, "metadata": {"name": "hollow"}, "credspec": {}}
KEYLESS = {**{key: value for key, value in _SPEC.items() if key != "credspec"}, "metadata": {"name": "keyless"}}
NAMESPACE = "gmsa"
ALLOWED, EVERY, STRANGER = "web", "every", "stranger"
"""Service accounts: one may use the domain's spec, one every spec, one none."""
EVERY_ROLE = "every-gmsa-user"


def _binding(account: str, role: str) -> dict[str, Any]:
    return {
        "metadata": {"name": account},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}],
    }


_USE = {"apiGroups": ["windows.k8s.io"], "resources": ["gmsacredentialspecs"], "verbs": ["use"]}
GROUND: list[tuple[str, str, dict[str, Any]]] = [
    ("namespaces", "", {"metadata": {"name": NAMESPACE}}),
    *(("serviceaccounts", NAMESPACE, {"metadata": {"name": name}}) for name in (ALLOWED, EVERY, STRANGER)),
    ("gmsacredentialspecs", "", HOLLOW),
    ("gmsacredentialspecs", "", KEYLESS),
    ("clusterroles", "", {"metadata": {"name": EVERY_ROLE}, "rules": [_USE]}),
    ("rolebindings", NAMESPACE, _binding(ALLOWED, directory.ROLE)),
    ("rolebindings", NAMESPACE, _binding(EVERY, EVERY_ROLE)),
]
"""What the cases need beside what a sandbox with a domain has: resource, namespace, object."""
AGNHOST = "registry.k8s.io/e2e-test-images/agnhost:2.53"
OTHER_CONTENTS = {**CONTENTS, "DomainJoinConfig": {**CONTENTS["DomainJoinConfig"], "DnsName": "elsewhere.test"}}


@dataclass(frozen=True)
class Case:
    """A pod and what becomes of it."""

    pod: dict[str, Any] | None
    """The pod's ``windowsOptions``."""
    container: dict[str, Any] | None = None
    account: str = ALLOWED
    code: int = 201
    says: str = ""
    """Why it is refused; Go's own words about broken JSON, which end the sentence, are left out."""

    @property
    def message(self) -> str:
        """The same in the words of the API server."""
        return f'admission webhook "{HOOK}" denied the request: {self.says}'

    def agrees(self, message: str, name: str) -> bool:
        """Whether that is what it says of a pod of that name."""
        expected = self.message.replace("NAME", name)
        return message.startswith(expected) if expected.endswith(": ") else message == expected


def _named(name: str = SPEC, **more: Any) -> dict[str, Any]:
    return {"gmsaCredentialSpecName": name, **more}


def _inline(contents: Any) -> dict[str, str]:
    return {"gmsaCredentialSpec": contents if isinstance(contents, str) else json.dumps(contents)}


CASES = {
    "no gMSA": Case(None),
    "authorised": Case(_named()),
    "authorised, for a container": Case(None, _named()),
    "for the pod and a container": Case(_named(), _named()),
    "right contents given": Case(_named(**_inline(CONTENTS))),
    "right contents in another order": Case(_named(**_inline(dict(reversed(CONTENTS.items()))))),
    "another service account": Case(
        _named(),
        account=STRANGER,
        code=403,
        says=f'service account "{STRANGER}" is not authorized to `use` GMSA cred spec "{SPEC}"',
    ),
    "another service account, for a container": Case(
        None,
        _named(),
        account=STRANGER,
        code=403,
        says=f'service account "{STRANGER}" is not authorized to `use` GMSA cred spec "{SPEC}"',
    ),
    "unknown spec": Case(_named("nowhere"), code=404, says="cred spec nowhere does not exist"),
    "unknown spec, another service account": Case(
        _named("nowhere"), account=STRANGER, code=404, says="cred spec nowhere does not exist"
    ),
    "contents without a name": Case(
        _inline(CONTENTS),
        code=422,
        says='pod "NAME" has a GMSA cred spec set, but does not define the name of the corresponding resource',
    ),
    "contents without a name, for a container": Case(
        None,
        _inline(CONTENTS),
        code=422,
        says='container "main" has a GMSA cred spec set, but does not define the name of the corresponding resource',
    ),
    "other contents": Case(
        _named(**_inline(OTHER_CONTENTS)),
        code=422,
        says=f'the GMSA cred spec contents for pod "NAME" does not match the contents of GMSA resource "{SPEC}"',
    ),
    "contents that are no JSON": Case(
        _named(**_inline("{")),
        code=422,
        says=f'the GMSA cred spec contents for pod "NAME" does not match the contents of GMSA resource "{SPEC}": '
        'unable to parse "{" as a JSON object: ',
    ),
    "contents that are no object": Case(
        _named(**_inline("[]")),
        code=422,
        says=f'the GMSA cred spec contents for pod "NAME" does not match the contents of GMSA resource "{SPEC}": '
        'unable to parse "[]" as a JSON object: ',
    ),
    "a spec with empty contents": Case(_named("hollow"), account=EVERY),
    "a spec without contents": Case(_named("keyless"), code=417, says="cred spec keyless does not have a credspec key"),
}


def pod(case: Case, name: str, node: str = "") -> dict[str, Any]:
    """The pod of a case."""
    container: dict[str, Any] = {"name": "main", "image": AGNHOST, "args": ["pause"]}
    if case.container is not None:
        container["securityContext"] = {"windowsOptions": case.container}
    spec: dict[str, Any] = {
        "os": {"name": "windows"},
        "nodeSelector": {"kubernetes.io/os": "windows"},
        "serviceAccountName": case.account,
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
    }
    if case.pod is not None:
        spec["securityContext"] = {"windowsOptions": case.pod}
    if node:
        spec["nodeName"] = node
    return {"metadata": {"name": name}, "spec": spec}
