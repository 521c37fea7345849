"""Nobody may grant more than they hold: the check on writes of roles and bindings."""

from __future__ import annotations

from itertools import product
from typing import Any

from winready_sandbox.api.errors import forbidden
from winready_sandbox.api.identity import MASTERS, User
from winready_sandbox.api.rbac import RBAC, ROLE_KINDS, Authorizer, Request, Rule, rule_allows

ROLES = ("roles", "clusterroles")
BINDINGS = ("rolebindings", "clusterrolebindings")
ANY_NAME = ""


def check_grant(authorizer: Authorizer, user: User, plural: str, namespace: str, obj: dict[str, Any]) -> None:
    """Raise 403 when a role or binding that is about to be written hands out rights which its writer lacks."""
    if MASTERS in user.groups:
        return
    name = obj["metadata"].get("name", "")
    if plural in ROLES:
        if authorizer.allowed(user, Request("escalate", RBAC, plural, "", namespace, name)).allowed:
            return
        granted = obj.get("rules") or []
    elif plural in BINDINGS:
        reference = obj["roleRef"]
        role_plural = ROLE_KINDS[reference["kind"]]
        wish = Request("bind", RBAC, role_plural, "", namespace, reference["name"])
        if authorizer.allowed(user, wish).allowed:
            return
        granted = authorizer.role_rules(reference["kind"], reference["name"], namespace)
    else:
        return
    held = authorizer.rules(user, namespace)[0]
    missing = [rule for rule in granted if not _covered(rule, held)]
    if missing:
        groups = " ".join(f'"{group}"' for group in user.groups)
        texts = "\n".join(sorted({_compact(rule) for rule in missing}))
        text = f'user "{user.name}" (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:\n'
        raise forbidden(plural, RBAC, name, text + texts)


def _covered(rule: Rule, held: list[Rule]) -> bool:
    """Whether every single right in a rule is held."""
    verbs = rule.get("verbs") or []
    if urls := rule.get("nonResourceURLs"):
        wishes = [Request(verb, path=url) for verb, url in product(verbs, urls)]
    else:
        names = rule.get("resourceNames") or [ANY_NAME]
        wishes = []
        for verb, group, resource, name in product(
            verbs, rule.get("apiGroups") or [], rule.get("resources") or [], names
        ):
            plural, _, subresource = resource.partition("/")
            wishes.append(Request(verb, group, plural, subresource, name=name))
    return all(any(rule_allows(each, wish) for each in held) for wish in wishes)


def _compact(rule: Rule) -> str:
    titles = {
        "apiGroups": "APIGroups",
        "resources": "Resources",
        "nonResourceURLs": "NonResourceURLs",
        "resourceNames": "ResourceNames",
        "verbs": "Verbs",
    }
    parts = []
    for key, title in titles.items():
        if values := rule.get(key):
            parts.append(f"{title}:[" + " ".join(f'"{value}"' for value in values) + "]")
    return "{" + ", ".join(parts) + "}"
