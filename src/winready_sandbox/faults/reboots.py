"""Faults that show after a reboot: what worked on a node and does not come back with it."""

from __future__ import annotations

from typing import Any

from winready_sandbox.faults.model import Fault


def _since_reboot(name: str, description: str, part: str, changes: dict[str, Any], fact: str) -> Fault:
    return Fault(f"reboot.windows.{name}", description, part, changes, after_reboot=True, fact=fact)


REBOOT_FAULTS = (
    _since_reboot(
        "service-proxy-dead",
        "After a reboot the service proxy of one Windows node programs nothing any more.",
        "network.proxy",
        {"not_programmed": True},
        "issue Azure/acs-engine#4001: after a reboot kube-proxy waits for an HNS network that nobody makes",
    ),
    _since_reboot(
        "nodeports-dead",
        "After a reboot NodePorts of one Windows node do not forward; its cluster IPs work.",
        "network.proxy",
        {"node_port_dead": True},
        "issue kubernetes/kubernetes#135802: load balancers that went away are not made again",
    ),
    _since_reboot(
        "backends-missing",
        "After a reboot the service proxy of one Windows node knows only half of the back-ends of services.",
        "network.proxy",
        {"partial_backends": True},
        "1.5: a service counts as done with a partial list of back-ends",
    ),
    _since_reboot(
        "second-ports-missing",
        "After a reboot one Windows node programs only the first port of services.",
        "network.proxy",
        {"first_port_only": True},
        "issue kubernetes/kubernetes#135802: load balancers that went away are not made again",
    ),
    _since_reboot(
        "nodeport-datagrams-dead",
        "After a reboot NodePorts of one Windows node forward connections and no datagrams.",
        "network.proxy",
        {"udp_node_port_dead": True},
        "1.5: supported flows are TCP and UDP",
    ),
    _since_reboot(
        "large-lost",
        "After a reboot packets above 1,300 bytes vanish on the way through services of one Windows node.",
        "network.proxy",
        {"max_payload": 1300},
        "brief N2: overlay MTU, connect ok, body hangs",
    ),
    _since_reboot(
        "dns-dead",
        "After a reboot pods of one Windows node get no answer from cluster DNS.",
        "network.dns",
        {"dead": True},
        "issue Azure/acs-engine#1903: after the reboot Windows pods resolve no name",
    ),
    _since_reboot(
        "search-path-lost",
        "After a reboot pods of one Windows node have no DNS suffixes.",
        "network.dns",
        {"no_suffix": True},
        "1.6: what the CNI configuration declares decides about suffixes",
    ),
    _since_reboot(
        "outside-names-lost",
        "After a reboot pods of one Windows node resolve no names outside the cluster.",
        "network.dns",
        {"external_dead": True},
        "issue Azure/acs-engine#1903: neither cluster names nor outside names",
    ),
    _since_reboot(
        "network-lost",
        "After a reboot no pod of one Windows node gets a network: HNS has lost it.",
        "node.runtime",
        {"sandboxes_fail": "all"},
        "issue Azure/azure-container-networking#283: pods start before the HNS network is there",
    ),
    _since_reboot(
        "new-pods-stuck",
        "After a reboot one Windows node starts the pods that it had, and no new one.",
        "node.runtime",
        {"sandboxes_fail": "new"},
        "issue Azure/AKS#1461: Ready, old pods run on, new ones stay in ContainerCreating",
    ),
    _since_reboot(
        "new-pods-without-services",
        "After a reboot pods that are new on one Windows node reach no service; those that it had before do.",
        "network.proxy",
        {"new_pods_left_out": True},
        "1.5: balancers are lost or late after a reboot; brief S6: a new pod passes the probes of services and pods",
    ),
    _since_reboot(
        "same-address-twice",
        "After a reboot pods of one Windows node share one address.",
        "network.link",
        {"duplicate_ip": True},
        "issue projectcalico/calico#13858: one address for two pods after a node restart",
    ),
    _since_reboot(
        "routes-stale",
        "After a reboot no other node finds the pods of one Windows node.",
        "network.link",
        {"stale_routes": "everywhere"},
        "issue flannel-io/flannel#1036: other machines keep the address of the old tunnel",
    ),
    _since_reboot(
        "routes-stale-on-windows",
        "After a reboot the other Windows nodes do not find the pods of one Windows node; Linux nodes do.",
        "network.link",
        {"stale_routes": "windows"},
        "issue flannel-io/flannel#1795: a node that was not told keeps the old entry",
    ),
    _since_reboot(
        "exec-dead",
        "After a reboot no command can be run in the containers of one Windows node.",
        "node.runtime",
        {"exec_broken": True},
        "issue moby/moby#39623: listed as running after the boot, and no command gets in",
    ),
    _since_reboot(
        "files-empty",
        "After a reboot config maps and secrets in pods of one Windows node have nothing in them.",
        "node.volumes",
        {"empty": True},
        "issue kubernetes/kubernetes#51982: pods run although their volumes were not mounted again",
    ),
    _since_reboot(
        "updates-stop",
        "After a reboot pods of one Windows node no longer see changes of config maps and secrets.",
        "node.volumes",
        {"updates_never_arrive": True},
        "brief S1: files follow their sources",
    ),
    _since_reboot(
        "disk-wiped",
        "A reboot leaves the disk of one Windows node as it was delivered: hostPath and emptyDir volumes are empty.",
        "machine",
        {"files_lost": True},
        "briefs S2 and S3: what is written to a hostPath stays on the node",
    ),
    _since_reboot(
        "memory-limit-lost",
        "After a reboot containers of one Windows node get more memory than their limit.",
        "machine",
        {"memory_limit_ignored": True},
        "1.8: memory limit is the job's commit limit",
    ),
    _since_reboot(
        "cpu-limit-lost",
        "After a reboot containers of one Windows node get more of the processor than their limit.",
        "machine",
        {"cpu_limit_ignored": True},
        "1.8: CPU limit is the job object's hard cap",
    ),
    _since_reboot(
        "memory-missing",
        "After a reboot one Windows node has half of the memory that it had.",
        "node.kubelet",
        {"memory_share": 0.5},
        "issue kubernetes/kubernetes#105613: with dynamic memory a kubelet takes what there is when it starts",
    ),
    _since_reboot(
        "taint-stays",
        "After a reboot one Windows node keeps the taint of a machine that is off.",
        "node.kubelet",
        {"shutdown_taint": True},
        "issue kubernetes-sigs/cloud-provider-azure#4428: the shutdown taint stays on a machine that is on",
    ),
    _since_reboot(
        "falls-again",
        "One Windows node comes back from a reboot, and goes down once more a minute and a half later.",
        "node.kubelet",
        {"reboots_again": 90.0},
        "brief S6: the node goes on taking part",
    ),
    Fault(
        "reboot.windows.slow",
        "A reboot of one Windows node takes eight minutes.",
        "node.kubelet",
        {"outage": 480.0},
        fact="1.9: a reboot may take as long as 15 minutes",
    ),
)
