"""Deployments: one ReplicaSet per pod template, and a way from the old to the new that keeps enough pods available."""

from __future__ import annotations

from winready_sandbox.api.errors import ApiError
from winready_sandbox.api.objects import Object, fresh
from winready_sandbox.controllers.controller import Controller
from winready_sandbox.controllers.deployment_status import DeploymentStatus, replicas, surge_and_unavailable
from winready_sandbox.controllers.objects import (
    Key,
    deleting,
    key_of,
    namespaces,
    orphan_namespaces,
    owner_reference,
    owner_uids,
    pod_finished,
    template_hash,
    uid_of,
)
from winready_sandbox.controllers.pods import claim, selects

HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"
NOT_COPIED = {"kubectl.kubernetes.io/last-applied-configuration", REVISION, HISTORY, DESIRED, MAXIMUM}


def revision(obj: Object) -> int:
    """The revision a ReplicaSet or Deployment carries."""
    return int((obj["metadata"].get("annotations") or {}).get(REVISION) or 0)


def same_template(one: Object, other: Object) -> bool:
    """Whether two pod templates are equal but for the hash label."""
    return _without_hash(one) == _without_hash(other)


def _without_hash(template: Object) -> Object:
    meta = template.get("metadata") or {}
    labels = {key: value for key, value in (meta.get("labels") or {}).items() if key != HASH}
    rest = {key: value for key, value in meta.items() if key not in ("labels", "creationTimestamp")}
    return {"metadata": {**rest, "labels": labels}, "spec": template["spec"]}


class DeploymentController(Controller):
    """Rolls ReplicaSets of Deployments."""

    name = "deployment-controller"
    kind = "Deployment"
    api_version = "apps/v1"
    resource = "deployments"

    def watch(self) -> None:
        """Follow Deployments, ReplicaSets, and the last pods of old ReplicaSets for Recreate."""
        self.deployments = self.informers.of(self.resource)
        self.deployments.add_index("namespace", namespaces)
        self.sets = self.informers.of("replicasets")
        self.sets.add_index("owner", owner_uids)
        self.sets.add_index("orphans", orphan_namespaces)
        self.pods = self.context.pods
        self.status = DeploymentStatus(self)
        self.deployments.add_handler(self.enqueue)
        self.sets.add_handler(self.enqueue_owner)
        self.sets.add_handler(self.enqueue_adopters(selects))
        self.pods.add_handler(self._pod_gone)

    def _pod_gone(self, old: Object | None, new: Object | None) -> None:
        """Recreate waits for the last old pod: its ReplicaSet's status may not change any more when it goes."""
        if new is not None or old is None:
            return
        for uid in owner_uids(old):
            for owner in self.sets.by("namespace", old["metadata"]["namespace"]):
                if uid_of(owner) == uid:
                    self.enqueue_owner(None, owner)

    def sync(self, key: Key) -> None:
        """One step of the rollout."""
        deployment = self.deployments.get(key)
        if deployment is None:
            self.status.forget(key)
            return
        sets = claim(self, deployment, "replicasets")
        new = self._find_new(deployment, sets)
        if deleting(deployment):
            self.status.write(deployment, sets, new)
            return
        deployment = self.status.paused(deployment)
        if deployment["spec"].get("paused") or self._scaling(deployment, sets):
            self._scale(deployment, sets, new)
        elif (deployment["spec"].get("strategy") or {}).get("type") == "Recreate":
            self._recreate(deployment, sets, new)
        else:
            self._roll(deployment, sets, new)
        deployment = self.deployments.get(key) or deployment
        sets = self.sets.by("owner", uid_of(deployment))
        new = self._find_new(deployment, sets)
        deployment = self.status.write(deployment, sets, new)
        if self.status.complete(deployment):
            self._clean_up(deployment, [rs for rs in sets if new is None or uid_of(rs) != uid_of(new)])

    def _find_new(self, deployment: Object, sets: list[Object]) -> Object | None:
        template = deployment["spec"]["template"]
        matching = [rs for rs in sets if same_template(rs["spec"]["template"], template)]
        return min(matching, key=_age, default=None)

    def _ensure_new(self, deployment: Object, sets: list[Object], new: Object | None) -> tuple[Object, Object]:
        """The ReplicaSet of the present template, made if missing, with its revision; and the deployment with it."""
        newest = max((revision(rs) for rs in sets if new is None or uid_of(rs) != uid_of(new)), default=0) + 1
        if new is None:
            new = self._create(deployment, sets, newest)
        number = max(revision(new), newest)
        annotations = self._annotations(deployment, new, number)
        calm = deployment["spec"].get("minReadySeconds") or 0
        changed = calm != (new["spec"].get("minReadySeconds") or 0)
        if changed or annotations != (new["metadata"].get("annotations") or {}):
            patch = {"metadata": {"annotations": annotations}, "spec": {"minReadySeconds": calm}}
            new = self.informers.patch("replicasets", new["metadata"]["name"], patch, key_of(new)[0])
        if revision(deployment) != number:
            patch = {"metadata": {"annotations": {REVISION: str(number)}}}
            deployment = self.informers.patch(
                self.resource, deployment["metadata"]["name"], patch, key_of(deployment)[0]
            )
        return deployment, new

    def _annotations(self, deployment: Object, rs: Object, number: int) -> dict[str, str]:
        annotations = dict(rs["metadata"].get("annotations") or {})
        own = deployment["metadata"].get("annotations") or {}
        annotations.update({key: value for key, value in own.items() if key not in NOT_COPIED})
        before = annotations.get(REVISION)
        if before and before != str(number):
            history = [entry for entry in annotations.get(HISTORY, "").split(",") if entry]
            annotations[HISTORY] = ",".join([*history, before])
        annotations[REVISION] = str(number)
        annotations.setdefault(DESIRED, str(replicas(deployment)))
        annotations.setdefault(MAXIMUM, str(replicas(deployment) + surge_and_unavailable(deployment)[0]))
        return annotations

    def _create(self, deployment: Object, sets: list[Object], number: int) -> Object:
        template = fresh(deployment["spec"]["template"])
        salt = (deployment.get("status") or {}).get("collisionCount")
        name_hash = template_hash(_without_hash(template), salt)
        template.setdefault("metadata", {}).setdefault("labels", {})[HASH] = name_hash
        selector = fresh(deployment["spec"]["selector"])
        selector.setdefault("matchLabels", {})[HASH] = name_hash
        namespace, name = key_of(deployment)
        rs: Object = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": f"{name}-{name_hash}",
                "namespace": namespace,
                "labels": dict(template["metadata"]["labels"]),
                "ownerReferences": [owner_reference(self.api_version, self.kind, deployment)],
            },
            "spec": {"replicas": 0, "selector": selector, "template": template},
        }
        if deployment["spec"].get("minReadySeconds"):
            rs["spec"]["minReadySeconds"] = deployment["spec"]["minReadySeconds"]
        rs["spec"]["replicas"] = count = self._wanted(deployment, sets, rs)
        rs["metadata"]["annotations"] = self._annotations(deployment, rs, number)
        try:
            created = self.informers.create("replicasets", rs, namespace)
        except ApiError as error:
            if error.reason == "AlreadyExists":
                status = {**(deployment.get("status") or {}), "collisionCount": (salt or 0) + 1}
                self.write_status(deployment, status)
            raise
        if count:
            message = f"Scaled up replica set {created['metadata']['name']} from 0 to {count}"
            self.tell(deployment, "ScalingReplicaSet", message)
        self.status.created(deployment, created)
        return created

    def _wanted(self, deployment: Object, sets: list[Object], new: Object) -> int:
        """How large the new ReplicaSet may be now."""
        if (deployment["spec"].get("strategy") or {}).get("type") == "Recreate":
            return replicas(deployment)
        others = sum(replicas(rs) for rs in sets if rs["metadata"]["name"] != new["metadata"]["name"])
        ceiling = replicas(deployment) + surge_and_unavailable(deployment)[0]
        current = others + replicas(new)
        if current >= ceiling:
            return replicas(new)
        return replicas(new) + min(ceiling - current, replicas(deployment) - replicas(new))

    def _resize(self, deployment: Object, rs: Object, count: int) -> Object:
        """Set a ReplicaSet's size and note what the deployment wanted at that time."""
        surge, _ = surge_and_unavailable(deployment)
        noted = {DESIRED: str(replicas(deployment)), MAXIMUM: str(replicas(deployment) + surge)}
        annotations = rs["metadata"].get("annotations") or {}
        before = replicas(rs)
        if before == count and all(annotations.get(key) == value for key, value in noted.items()):
            return rs
        patch = {"metadata": {"annotations": noted}, "spec": {"replicas": count}}
        rs = self.informers.patch("replicasets", rs["metadata"]["name"], patch, key_of(rs)[0])
        if before != count:
            direction = "up" if count > before else "down"
            message = f"Scaled {direction} replica set {rs['metadata']['name']} from {before} to {count}"
            self.tell(deployment, "ScalingReplicaSet", message)
        return rs

    def _scaling(self, deployment: Object, sets: list[Object]) -> bool:
        wanted = str(replicas(deployment))
        return any(
            replicas(rs) > 0 and (rs["metadata"].get("annotations") or {}).get(DESIRED, wanted) != wanted for rs in sets
        )

    def _scale(self, deployment: Object, sets: list[Object], new: Object | None) -> None:
        """Follow a change of the replica count, in proportion while a rollout is under way."""
        active = [rs for rs in sets if replicas(rs) > 0]
        if len(active) <= 1:
            only = active[0] if active else new or max(sets, key=revision, default=None)
            if only is not None:
                self._resize(deployment, only, replicas(deployment))
            return
        if new is not None and self._saturated(deployment, new):
            for rs in active:
                if uid_of(rs) != uid_of(new):
                    self._resize(deployment, rs, 0)
            return
        surge, _ = surge_and_unavailable(deployment)
        allowed = replicas(deployment) + surge if replicas(deployment) else 0
        change = allowed - sum(replicas(rs) for rs in active)
        active.sort(key=lambda rs: (-replicas(rs), _age(rs)) if change > 0 else (-replicas(rs), (-revision(rs),)))
        sizes, left = {}, change
        for rs in active:
            before = int((rs["metadata"].get("annotations") or {}).get(MAXIMUM) or allowed) or 1
            share = round(replicas(rs) * allowed / before) - replicas(rs)
            share = min(share, left) if change > 0 else max(share, left)
            sizes[uid_of(rs)] = replicas(rs) + share
            left -= share
        for position, rs in enumerate(active):
            rest = left if position == 0 else 0
            self._resize(deployment, rs, max(0, sizes[uid_of(rs)] + rest))

    @staticmethod
    def _saturated(deployment: Object, new: Object) -> bool:
        available = (new.get("status") or {}).get("availableReplicas", 0)
        return bool(replicas(new) == replicas(deployment) == available)

    def _recreate(self, deployment: Object, sets: list[Object], new: Object | None) -> None:
        """Stop everything old, and only when its last pod is gone start the new."""
        old = [rs for rs in sets if new is None or uid_of(rs) != uid_of(new)]
        shrinking = [rs for rs in old if replicas(rs) > 0]
        for rs in shrinking:
            self._resize(deployment, rs, 0)
        left = [pod for rs in old for pod in self.pods.by("owner", uid_of(rs)) if not pod_finished(pod)]
        if shrinking or left:
            return
        deployment, new = self._ensure_new(deployment, sets, new)
        self._resize(deployment, new, replicas(deployment))

    def _roll(self, deployment: Object, sets: list[Object], new: Object | None) -> None:
        """Grow the new as far as the surge allows, else shrink the old as far as availability allows."""
        deployment, new = self._ensure_new(deployment, sets, new)
        old = sorted((rs for rs in sets if uid_of(rs) != uid_of(new)), key=_age)
        size = replicas(new)
        wanted = min(self._wanted(deployment, [*old, new], new), replicas(deployment))
        new = self._resize(deployment, new, wanted)
        if replicas(new) == size:
            self._shrink_old(deployment, [rs for rs in old if replicas(rs) > 0], new)

    def _shrink_old(self, deployment: Object, old: list[Object], new: Object) -> None:
        _, unavailable = surge_and_unavailable(deployment)
        floor = replicas(deployment) - unavailable
        new_unavailable = replicas(new) - _available(new)
        budget = sum(map(replicas, old)) + replicas(new) - floor - new_unavailable
        if budget <= 0:
            return
        for position, rs in enumerate(old):
            broken = min(budget, replicas(rs) - _available(rs))
            if broken > 0:
                old[position] = self._resize(deployment, rs, replicas(rs) - broken)
                budget -= broken
        spare = sum(min(_available(rs), replicas(rs)) for rs in old) + _available(new) - floor
        for rs in old:
            count = min(replicas(rs), spare)
            if count > 0:
                self._resize(deployment, rs, replicas(rs) - count)
                spare -= count

    def _clean_up(self, deployment: Object, old: list[Object]) -> None:
        """Keep as many old ReplicaSets as the history limit says."""
        limit = deployment["spec"].get("revisionHistoryLimit", 10)
        empty = [
            rs for rs in old if not replicas(rs) and not (rs.get("status") or {}).get("replicas") and not deleting(rs)
        ]
        for rs in sorted(empty, key=revision)[: max(0, len(old) - limit)]:
            self.informers.delete("replicasets", rs)


def _available(rs: Object) -> int:
    return int((rs.get("status") or {}).get("availableReplicas", 0))


def _age(rs: Object) -> tuple[str, str]:
    return rs["metadata"].get("creationTimestamp") or "", rs["metadata"]["name"]
