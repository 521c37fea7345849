"""The admission webhook for group managed service accounts, as github.com/kubernetes-sigs/windows-gmsa answers.

It fills in the contents of the credential specs that pods name, and refuses pods whose service account may not ``use``
them. What it is asked about is said by webhook configurations, as for every other webhook.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from winready_sandbox.api.identity import SERVICE_ACCOUNT_PREFIX, SERVICE_ACCOUNTS, User
from winready_sandbox.api.objects import Object
from winready_sandbox.api.policing.hooks import Denied
from winready_sandbox.api.rbac import Authorizer, Request
from winready_sandbox.api.registry import Admission, Registry

GROUP, PLURAL = "windows.k8s.io", "gmsacredentialspecs"
NAME, CONTENTS = "gmsaCredentialSpecName", "gmsaCredentialSpec"


@dataclass
class WebhookDefects:
    """Ways in which the webhook can be broken."""

    anybody_may_use: bool = False
    """It does not ask whether a service account may use a credential spec."""
    contents_left_out: bool = False
    """It lets pods pass as they are."""


class CredentialSpecs:
    """What the webhook answers at its two paths."""

    def __init__(self, registry: Registry, authorizer: Authorizer) -> None:
        self._registry = registry
        self._authorizer = authorizer
        self.defects = WebhookDefects()

    def mutate(self, admission: Admission) -> str:
        """Fill in what is only named."""
        for _, _, options in _windows_options(admission.obj):
            if options.get(NAME) is not None and options.get(CONTENTS) is None and not self.defects.contents_left_out:
                options[CONTENTS] = self._contents(options[NAME])
        return ""

    def validate(self, admission: Admission) -> str:
        """Refuse what a service account may not use, what is not what it is called, and changes."""
        if admission.operation == "UPDATE":
            return _unchanged(admission.obj, admission.old or {})
        account = admission.obj["spec"].get("serviceAccountName") or ""
        for kind, name, options in _windows_options(admission.obj):
            named, contents = options.get(NAME), options.get(CONTENTS)
            if named is not None:
                self._require_use(account, admission.namespace, named)
                if contents is not None and (why := _differs(contents, self._contents(named))) is not None:
                    words = f'the GMSA cred spec contents for {kind} "{name}" does not match the contents of GMSA '
                    raise Denied(422, f'{words}resource "{named}"{why}')
            elif contents is not None:
                words = f'{kind} "{name}" has a GMSA cred spec set, but does not define the name of the corresponding '
                raise Denied(422, f"{words}resource")
        return ""

    def _require_use(self, account: str, namespace: str, name: str) -> None:
        # It leaves out the group of everybody who is known, which the real one does, too.
        groups = (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}")
        user = User(f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{account}", groups)
        decision = self._authorizer.allowed(user, Request("use", GROUP, PLURAL, "", namespace, name))
        if not decision.allowed and not self.defects.anybody_may_use:
            reason = f', reason: "{decision.reason}"' if decision.reason else ""
            words = f'service account "{account}" is not authorized to `use` GMSA cred spec "{name}"'
            raise Denied(403, words + reason)

    def _contents(self, name: str) -> str:
        entry = self._registry.store.bucket((GROUP, PLURAL)).get(("", name))
        if entry is None:
            raise Denied(404, f"cred spec {name} does not exist")
        if "credspec" not in entry.obj:
            raise Denied(417, f"cred spec {name} does not have a credspec key")
        return json.dumps(entry.obj["credspec"], sort_keys=True, separators=(",", ":"))


def _windows_options(pod: Object) -> Iterator[tuple[str, str, Object]]:
    """The Windows options of a pod and of its containers, with the kind and the name of their owner."""
    spec = pod.get("spec") or {}
    owners = [("pod", (pod.get("metadata") or {}).get("name") or "", spec)]
    owners += [("container", each["name"], each) for each in spec.get("containers") or ()]
    for kind, name, owner in owners:
        if options := (owner.get("securityContext") or {}).get("windowsOptions"):
            yield kind, name, options


def _differs(contents: str, expected: str) -> str | None:
    """Nothing if both are the same, else what there is to add to that."""
    if contents == expected:
        return None
    try:
        given = json.loads(contents)
        problem = "" if isinstance(given, dict) else "json: cannot unmarshal it into Go value of type map"
    except ValueError:
        problem = "unexpected end of JSON input"
    if problem:
        return f": unable to parse {json.dumps(contents)} as a JSON object: {problem}"
    return None if given == json.loads(expected) else ""


def _unchanged(new: Object, old: Object) -> str:
    before = {(kind, name): options for kind, name, options in _windows_options(old)}
    for kind, name, options in _windows_options(new):
        earlier = before.get((kind, name), {})
        words = {NAME: "name", CONTENTS: "contents"}
        if changed := [word for field, word in words.items() if options.get(field) != earlier.get(field)]:
            what = f'GMSA {" and ".join(changed)} modified on {kind} "{name}"'
            raise Denied(403, f"cannot update an existing pod's GMSA settings ({what})")
    return ""
