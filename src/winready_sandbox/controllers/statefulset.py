"""StatefulSets: pods with names that last, made and replaced one after the other."""

from __future__ import annotations

import re

from winready_sandbox.api.errors import ApiError
from winready_sandbox.api.objects import Object, fresh
from winready_sandbox.controllers.controller import Controller
from winready_sandbox.controllers.objects import (
    Key,
    deleting,
    key_of,
    labels_of,
    namespaces,
    phase,
    pod_finished,
    pod_ready,
    uid_of,
)
from winready_sandbox.controllers.pods import claim, create_pod, delete_pod, pod_from_template, selects
from winready_sandbox.controllers.revisions import HASH, Revisions, template_of

POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"


def ordinal(owner: Object, pod: Object) -> int:
    """The number at the end of a pod's name; -1 when it is none of the set's names."""
    match = re.fullmatch(re.escape(owner["metadata"]["name"]) + r"-(\d+)", pod["metadata"]["name"])
    return int(match.group(1)) if match else -1


class StatefulSetController(Controller):
    """Creates, replaces and deletes pods of StatefulSets."""

    name = "statefulset-controller"
    kind = "StatefulSet"
    api_version = "apps/v1"
    resource = "statefulsets"

    def watch(self) -> None:
        """Follow StatefulSets, their pods and their revisions."""
        self.sets = self.informers.of(self.resource)
        self.sets.add_index("namespace", namespaces)
        self.revisions = Revisions(self)
        self.sets.add_handler(self.enqueue)
        self.context.pods.add_handler(self.enqueue_owner)
        self.context.pods.add_handler(self.enqueue_adopters(lambda s, pod: selects(s, pod) and ordinal(s, pod) >= 0))

    def sync(self, key: Key) -> None:
        """One step towards the wanted pods, then report."""
        found = self.sets.get(key)
        if found is None:
            return
        owner = found
        pods = claim(self, owner, "pods", lambda pod: ordinal(found, pod) >= 0)
        if deleting(owner):
            return
        update, history = self.revisions.update(owner)
        current = self._current(owner, update, history)
        try:
            self._step(owner, {ordinal(owner, pod): pod for pod in pods}, current, update)
        finally:
            left = self.context.pods.by("owner", uid_of(owner))
            owner = self._report(owner, left, current, update)
        live = {labels_of(pod).get(HASH, "") for pod in left} | {_name(current), _name(update)}
        self.revisions.prune(owner, history, live)

    def _current(self, owner: Object, update: Object, history: list[Object]) -> Object:
        """The revision that pods had before the update under way."""
        name = (owner.get("status") or {}).get("currentRevision")
        return next((entry for entry in history if _name(entry) == name), update)

    def _step(self, owner: Object, pods: dict[int, Object], current: Object, update: Object) -> None:
        spec = owner["spec"]
        start = (spec.get("ordinals") or {}).get("start", 0)
        wanted = range(start, start + spec.get("replicas", 1))
        ordered = spec.get("podManagementPolicy", "OrderedReady") != "Parallel"
        for number in wanted:
            if not self._ensure(owner, pods, number, current, update) and ordered:
                return
        for number in sorted((n for n in pods if n not in wanted), reverse=True):
            pod = pods[number]
            if not deleting(pod):
                delete_pod(self, owner, pod)
            if ordered:
                return
        self._replace(owner, pods, wanted, update)

    def _ensure(self, owner: Object, pods: dict[int, Object], number: int, current: Object, update: Object) -> bool:
        """Make sure that one pod is there; whether the next may follow."""
        pod = pods.get(number)
        if pod is not None and pod_finished(pod) and not deleting(pod):
            self.informers.delete("pods", pod)
            pod = self.context.pods.get(key_of(pod))
        if pod is None:
            pods[number] = self._create(owner, number, self._revision_for(owner, number, current, update))
            return False
        return not deleting(pod) and self._available(owner, pod)

    def _revision_for(self, owner: Object, number: int, current: Object, update: Object) -> Object:
        """Pods below the partition, or not yet reached by the update, come back as they were."""
        strategy = owner["spec"].get("updateStrategy") or {}
        if strategy.get("type") == "OnDelete":
            return update
        partition = (strategy.get("rollingUpdate") or {}).get("partition") or 0
        start = (owner["spec"].get("ordinals") or {}).get("start", 0)
        return current if number < start + partition else update

    def _create(self, owner: Object, number: int, revision: Object) -> Object:
        set_name = owner["metadata"]["name"]
        pod = pod_from_template(self, owner, template_of(revision))
        name = f"{set_name}-{number}"
        pod["metadata"]["name"] = name
        pod["metadata"]["labels"].update({POD_NAME: name, POD_INDEX: str(number), HASH: _name(revision)})
        pod["spec"]["hostname"] = name
        if owner["spec"].get("serviceName"):
            pod["spec"]["subdomain"] = owner["spec"]["serviceName"]
        volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
        for template in owner["spec"].get("volumeClaimTemplates") or ():
            claim_name = self._claim(owner, template, name)
            reference = {"claimName": claim_name}
            volumes[template["metadata"]["name"]] = {
                "name": template["metadata"]["name"],
                "persistentVolumeClaim": reference,
            }
        if volumes:
            pod["spec"]["volumes"] = list(volumes.values())
        return create_pod(self, owner, pod)

    def _claim(self, owner: Object, template: Object, pod_name: str) -> str:
        """The claim of a pod, which outlives it."""
        namespace = owner["metadata"]["namespace"]
        name = f"{template['metadata']['name']}-{pod_name}"
        labels = {**(template["metadata"].get("labels") or {}), **(owner["spec"]["selector"].get("matchLabels") or {})}
        wanted: Object = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "spec": fresh(template["spec"]),
        }
        try:
            self.informers.create("persistentvolumeclaims", wanted, namespace)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            return name
        message = f"create Claim {name} Pod {pod_name} in StatefulSet {owner['metadata']['name']} success"
        self.tell(owner, "SuccessfulCreate", message)
        return name

    def _replace(self, owner: Object, pods: dict[int, Object], wanted: range, update: Object) -> None:
        """Rolling update from the last pod down to the partition, each only when those after it are available."""
        strategy = owner["spec"].get("updateStrategy") or {}
        if strategy.get("type") == "OnDelete":
            return
        partition = (strategy.get("rollingUpdate") or {}).get("partition") or 0
        for number in reversed(wanted):
            if number < wanted.start + partition:
                return
            pod = pods[number]
            if deleting(pod):
                return
            if labels_of(pod).get(HASH) != _name(update):
                delete_pod(self, owner, pod)
                return
            if not self._available(owner, pod):
                return

    def _available(self, owner: Object, pod: Object) -> bool:
        wait = self.context.readiness.wait(pod, owner["spec"].get("minReadySeconds") or 0)
        if phase(pod) != "Running" or not pod_ready(pod):
            return False
        if wait > 0:
            self.queue.add_after(key_of(owner), wait)
        return wait == 0

    def _report(self, owner: Object, pods: list[Object], current: Object, update: Object) -> Object:
        living = [pod for pod in pods if not pod_finished(pod)]
        on = {
            revision: sum(labels_of(pod).get(HASH) == revision and not deleting(pod) for pod in living)
            for revision in (_name(current), _name(update))
        }
        ready = [pod for pod in living if phase(pod) == "Running" and pod_ready(pod)]
        available = sum(self._available(owner, pod) for pod in ready)
        replicas = owner["spec"].get("replicas", 1)
        complete = on[_name(update)] == replicas == len(living) == len(ready)
        rolling = (owner["spec"].get("updateStrategy") or {}).get("type") != "OnDelete"
        settled = complete and rolling
        name = _name(update) if settled else _name(current)
        status: Object = {
            "observedGeneration": owner["metadata"].get("generation", 1),
            "replicas": len(living),
            "currentRevision": name,
            "updateRevision": _name(update),
            "collisionCount": (owner.get("status") or {}).get("collisionCount", 0),
            "availableReplicas": available,
        }
        counts = {"readyReplicas": len(ready), "currentReplicas": on[name], "updatedReplicas": on[_name(update)]}
        status.update({field: count for field, count in counts.items() if count})
        return self.write_status(owner, status)


def _name(revision: Object) -> str:
    return str(revision["metadata"]["name"])
