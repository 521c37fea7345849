"""Cluster roles that are made of others: their rules follow the roles that their selectors pick by label."""

from __future__ import annotations

from winready_sandbox.api.objects import Object
from winready_sandbox.controllers.controller import Controller
from winready_sandbox.controllers.objects import Key
from winready_sandbox.controllers.selecting import label_selector


class ClusterRoleAggregator(Controller):
    """Keeps the rules of aggregated cluster roles; a change travels from role to role until nothing differs."""

    name = "clusterrole-aggregation-controller"
    kind = "ClusterRole"
    api_version = "rbac.authorization.k8s.io/v1"
    resource = "clusterroles"

    def watch(self) -> None:
        """Any role may be part of any aggregate, so each change is a reason to look at all of them."""
        self.roles = self.informers.of(self.resource)
        self.roles.add_handler(self._changed)

    def _changed(self, old: Object | None, new: Object | None) -> None:
        for role in self.roles:
            if role.get("aggregationRule"):
                self.queue.add(("", role["metadata"]["name"]))

    def sync(self, key: Key) -> None:
        """Gather the rules of the selected roles, in the order of their names."""
        role = self.roles.get(key)
        if role is None or not role.get("aggregationRule"):
            return
        selectors = [label_selector(each) for each in role["aggregationRule"].get("clusterRoleSelectors") or ()]
        rules: list[Object] = []
        for other in sorted(self.roles, key=lambda each: str(each["metadata"]["name"])):
            labels = other["metadata"].get("labels") or {}
            if other is not role and any(selects(labels) for selects in selectors):
                rules += [rule for rule in other.get("rules") or () if rule not in rules]
        if rules != (role.get("rules") or []):
            self.informers.update(self.resource, {**role, "rules": rules})
