"""What a Deployment reports of itself: counts, and the conditions Progressing and Available."""

from __future__ import annotations

from typing import TYPE_CHECKING

from winready_sandbox.api.objects import Object, timestamp
from winready_sandbox.controllers.objects import Key, condition, key_of, resolve_percent, with_condition

if TYPE_CHECKING:
    from winready_sandbox.controllers.controller import Controller

NEVER = 2**31 - 1


def replicas(obj: Object) -> int:
    """How many replicas are asked for."""
    return int(obj["spec"].get("replicas", 1))


def surge_and_unavailable(deployment: Object) -> tuple[int, int]:
    """maxSurge and maxUnavailable as numbers; not both can be 0."""
    strategy = deployment["spec"].get("strategy") or {}
    if strategy.get("type") == "Recreate":
        return 0, 0
    rolling = strategy.get("rollingUpdate") or {}
    total = replicas(deployment)
    surge = resolve_percent(rolling.get("maxSurge", "25%"), total, up=True)
    unavailable = resolve_percent(rolling.get("maxUnavailable", "25%"), total, up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return surge, min(unavailable, total)


class DeploymentStatus:
    """Writes status and watches the progress deadline, whose clock it keeps in cluster seconds."""

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self._progress: dict[Key, float] = {}

    def forget(self, key: Key) -> None:
        """The deployment is gone."""
        self._progress.pop(key, None)

    def created(self, deployment: Object, rs: Object) -> None:
        """A new ReplicaSet is progress."""
        text = f'Created new replica set "{rs["metadata"]["name"]}"'
        self._set_progressing(deployment, "True", "NewReplicaSetCreated", text)

    def paused(self, deployment: Object) -> Object:
        """Note that a deployment was paused or resumed; neither may run into the deadline."""
        now = condition(deployment, "Progressing")
        if deployment["spec"].get("paused"):
            if now is None or now.get("reason") not in ("DeploymentPaused", "ProgressDeadlineExceeded"):
                return self._set_progressing(deployment, "Unknown", "DeploymentPaused", "Deployment is paused")
        elif now is not None and now.get("reason") == "DeploymentPaused":
            return self._set_progressing(deployment, "Unknown", "DeploymentResumed", "Deployment is resumed")
        return deployment

    def _set_progressing(self, deployment: Object, status: str, reason: str, message: str) -> Object:
        latest = self.controller.informers.of("deployments").get(key_of(deployment)) or deployment
        self._progress[key_of(deployment)] = self.controller.clock.now()
        old = latest.get("status") or {}
        conditions = _progressing(old.get("conditions") or [], status, reason, message)
        return self.controller.write_status(latest, {**old, "conditions": conditions})

    @staticmethod
    def complete(deployment: Object) -> bool:
        """Whether everything runs the present template and nothing old is left."""
        status, wanted = deployment.get("status") or {}, deployment["spec"].get("replicas", 1)
        counts = [status.get(name, 0) for name in ("updatedReplicas", "replicas", "availableReplicas")]
        generation = deployment["metadata"].get("generation", 1)
        return counts == [wanted] * 3 and status.get("observedGeneration", 0) >= generation

    def write(self, deployment: Object, sets: list[Object], new: Object | None) -> Object:
        """Report what the ReplicaSets report."""
        old = deployment.get("status") or {}
        total = {
            name: sum((rs.get("status") or {}).get(name, 0) for rs in sets)
            for name in ("replicas", "readyReplicas", "availableReplicas")
        }
        wanted = sum(rs["spec"].get("replicas", 1) for rs in sets)
        counts = {
            "replicas": total["replicas"],
            "updatedReplicas": (new.get("status") or {}).get("replicas", 0) if new else 0,
            "readyReplicas": total["readyReplicas"],
            "availableReplicas": total["availableReplicas"],
            "unavailableReplicas": max(0, wanted - total["availableReplicas"]),
        }
        status: Object = {"observedGeneration": deployment["metadata"].get("generation", 1)}
        status.update({name: count for name, count in counts.items() if count})
        if old.get("collisionCount"):
            status["collisionCount"] = old["collisionCount"]
        status["conditions"] = self._conditions(deployment, status, counts, sets, new)
        if not status["conditions"]:
            del status["conditions"]
        return self.controller.write_status(deployment, status)

    def _conditions(
        self, deployment: Object, status: Object, counts: dict[str, int], sets: list[Object], new: Object | None
    ) -> list[Object]:
        old = deployment.get("status") or {}
        conditions: list[Object] = list(old.get("conditions") or [])
        enough = counts["availableReplicas"] >= replicas(deployment) - surge_and_unavailable(deployment)[1]
        reason = "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable"
        text = f"Deployment {'has' if enough else 'does not have'} minimum availability."
        conditions = _timed(conditions, "Available", "True" if enough else "False", reason, text)
        if not deployment["spec"].get("paused") and deployment["spec"].get("progressDeadlineSeconds", 600) < NEVER:
            conditions = self._judge_progress(deployment, {**deployment, "status": status}, counts, conditions, new)
        failed = next((c for rs in sets for c in (rs.get("status") or {}).get("conditions") or ()), None)
        conditions = [c for c in conditions if c["type"] != "ReplicaFailure" or failed]
        if failed:
            conditions = _timed(
                conditions, "ReplicaFailure", "True", failed.get("reason", ""), failed.get("message", "")
            )
        return conditions

    def _judge_progress(
        self, deployment: Object, fresh: Object, counts: dict[str, int], conditions: list[Object], new: Object | None
    ) -> list[Object]:
        key, clock = key_of(deployment), self.controller.clock
        now = condition(deployment, "Progressing")
        name = f'ReplicaSet "{new["metadata"]["name"]}"' if new else f'Deployment "{deployment["metadata"]["name"]}"'
        was_complete = now is not None and now.get("reason") == "NewReplicaSetAvailable"
        stable = counts["replicas"] == counts["updatedReplicas"] and was_complete
        if new is not None and self.complete(fresh):
            self._progress[key] = clock.now()
            return _progressing(conditions, "True", "NewReplicaSetAvailable", f"{name} has successfully progressed.")
        if stable:
            return conditions
        if self._moved(deployment.get("status") or {}, counts) or key not in self._progress:
            self._progress[key] = clock.now()
            return _progressing(conditions, "True", "ReplicaSetUpdated", f"{name} is progressing.", touch=True)
        deadline = deployment["spec"].get("progressDeadlineSeconds", 600)
        left = self._progress[key] + deadline - clock.now()
        if left > 0:
            self.controller.queue.add_after(key, left + 0.1)
            return conditions
        return _progressing(conditions, "False", "ProgressDeadlineExceeded", f"{name} has timed out progressing.")

    @staticmethod
    def _moved(old: Object, counts: dict[str, int]) -> bool:
        def old_pods(status: dict[str, int] | Object) -> int:
            return int(status.get("replicas", 0)) - int(status.get("updatedReplicas", 0))

        grew = any(
            counts[name] > old.get(name, 0) for name in ("updatedReplicas", "readyReplicas", "availableReplicas")
        )
        return grew or old_pods(counts) < old_pods(old)


def _timed(
    conditions: list[Object], kind: str, status: str, reason: str, message: str, *, touch: bool = False
) -> list[Object]:
    """As ``with_condition``, with the update time that Deployments keep besides."""
    old = next((c for c in conditions if c["type"] == kind), None)
    if old and not touch and (old["status"], old.get("reason"), old.get("message")) == (status, reason, message):
        return conditions
    return with_condition(conditions, kind, status, lastUpdateTime=timestamp(), reason=reason, message=message)


def _progressing(
    conditions: list[Object], status: str, reason: str, message: str, *, touch: bool = False
) -> list[Object]:
    return _timed(conditions, "Progressing", status, reason, message, touch=touch)
