"""Resource use as the kubelet reports it: ``/stats/summary`` and the resource metrics."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from winready_sandbox.nodes.times import stamp

if TYPE_CHECKING:
    from winready_sandbox.machine.container import Container
    from winready_sandbox.nodes.kubelet import Kubelet
    from winready_sandbox.nodes.pods import PodWorker

Object = dict[str, Any]
_CPU = ("usageNanoCores", "usageCoreNanoSeconds")
_MEMORY = ("usageBytes", "workingSetBytes")


class Statistics:
    """Reads the meters of one node; rates are computed between two reads, as the runtime does it."""

    def __init__(self, node: Kubelet) -> None:
        self._node = node
        self._last: dict[str, tuple[float, int]] = {}

    def read(self) -> None:
        """Read every meter, as the node does every ten seconds for its own sake; whoever asks then gets a rate."""
        for worker in self._node.workers.values():
            if worker.facts.sandbox:
                self._pod(worker, stamp())
        self._forget()

    def _forget(self) -> None:
        """Meters of what is gone: pods are many in a node's life."""
        known = {"node", *self._node.workers, *self._node.machine.containers}
        self._last = {key: value for key, value in self._last.items() if key in known}

    def summary(self) -> Object:
        """The answer to ``/stats/summary``."""
        node, now = self._node, stamp()
        machine = node.machine
        pods = [self._pod(worker, now) for worker in node.workers.values() if worker.facts.sandbox]
        used = machine.memory.used
        return {
            "node": {
                "nodeName": node.name,
                "systemContainers": self._system_containers(pods, now),
                "startTime": stamp(datetime.fromtimestamp(machine.booted_at, UTC)),
                "cpu": self._cpu("node", machine.processor.core_nanoseconds(), now),
                "memory": {
                    "time": now,
                    "availableBytes": machine.memory_bytes - used,
                    "usageBytes": used,
                    "workingSetBytes": machine.memory.working_set,
                    "rssBytes": 0,
                    "pageFaults": 0,
                    "majorPageFaults": 0,
                },
                "network": _network(now),
                "fs": _disk(now),
                "runtime": {"imageFs": _disk(now)},
            },
            "pods": pods,
        }

    def _system_containers(self, pods: list[Object], now: str) -> list[Object]:
        """All pods together, and on Windows the commit charge of the machine, which evictions go by."""
        together: Object = {
            "name": "pods",
            "startTime": now,
            "cpu": {"time": now} | {key: sum(pod["cpu"][key] for pod in pods) for key in _CPU},
            "memory": {"time": now} | {key: sum(pod["memory"][key] for pod in pods) for key in _MEMORY},
        }
        if self._node.machine.os == "linux":
            return [together]
        used = self._node.machine.memory.used
        free = self._node.machine.memory_bytes - used
        commit = {"time": now, "availableBytes": free, "usageBytes": used}
        return [together, {"name": "windows-global-commit-memory", "startTime": now, "memory": commit}]

    def _pod(self, worker: PodWorker, now: str) -> Object:
        metadata = worker.pod["metadata"]
        containers = []
        cpu = used = working = 0
        for run in worker.runs.values():
            if run.instance is None or (container := run.instance.metered) is None:
                continue
            containers.append(self._container(run.name, run.instance.started_at, container, now))
            cpu += container.cpu.core_nanoseconds()
            used += container.memory.used
            working += container.memory.working_set
        reference = {"name": metadata["name"], "namespace": metadata["namespace"], "uid": worker.uid}
        return {
            "podRef": reference,
            "startTime": worker.facts.started_at,
            "containers": containers,
            "cpu": self._cpu(worker.uid, cpu, now),
            "memory": {"time": now, "usageBytes": used, "workingSetBytes": working},
            "network": _network(now),
            "volume": [
                {"time": now, "name": volume["name"], "usedBytes": worker.volumes.size(volume["name"])}
                for volume in worker.pod["spec"].get("volumes") or []
                if "emptyDir" in volume
            ],
        }

    def _container(self, name: str, started: str, container: Container, now: str) -> Object:
        memory: Object = {
            "time": now,
            "usageBytes": container.memory.used,
            "workingSetBytes": container.memory.working_set,
        }
        if container.memory.limit is not None:
            memory["availableBytes"] = max(container.memory.limit - container.memory.used, 0)
        return {
            "name": name,
            "startTime": started,
            "cpu": self._cpu(container.id, container.cpu.core_nanoseconds(), now),
            "memory": memory,
            "rootfs": _disk(now),
            "logs": _disk(now),
        }

    def _cpu(self, key: str, total: int, now: str) -> Object:
        # Of the very moment that the meter was read at: on a busy machine now may be much later.
        moment = self._node.machine.processor.settled
        last = self._last.get(key)
        self._last[key] = (moment, total)
        rate = 0
        if last is not None and moment > last[0]:
            rate = int((total - last[1]) / (moment - last[0]))
        return {"time": now, "usageNanoCores": max(rate, 0), "usageCoreNanoSeconds": total}

    def metrics(self) -> str:
        """The answer to ``/metrics/resource``."""
        node = self._node
        lines = [
            "# HELP node_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the node in core-seconds",
            "# TYPE node_cpu_usage_seconds_total counter",
            f"node_cpu_usage_seconds_total {node.machine.processor.core_nanoseconds() / 1e9:.6f}",
            "# HELP node_memory_working_set_bytes [STABLE] Current working set of the node in bytes",
            "# TYPE node_memory_working_set_bytes gauge",
            f"node_memory_working_set_bytes {node.machine.memory.working_set}",
            "# HELP container_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the container",
            "# TYPE container_cpu_usage_seconds_total counter",
        ]
        memory = [
            "# HELP container_memory_working_set_bytes [STABLE] Current working set of the container in bytes",
            "# TYPE container_memory_working_set_bytes gauge",
        ]
        for worker in node.workers.values():
            metadata = worker.pod["metadata"]
            for run in worker.runs.values():
                if run.instance is None or (container := run.instance.metered) is None:
                    continue
                where = f'{{container="{run.name}",namespace="{metadata["namespace"]}",pod="{metadata["name"]}"}}'
                seconds = container.cpu.core_nanoseconds() / 1e9
                lines.append(f"container_cpu_usage_seconds_total{where} {seconds:.6f}")
                memory.append(f"container_memory_working_set_bytes{where} {container.memory.working_set}")
        return "\n".join([*lines, *memory]) + "\n"


def _disk(now: str) -> Object:
    return {"time": now, "availableBytes": 96 * 2**30, "capacityBytes": 128 * 2**30, "usedBytes": 32 * 2**30}


def _network(now: str) -> Object:
    return {"time": now, "name": "", "rxBytes": 0, "txBytes": 0, "interfaces": []}
