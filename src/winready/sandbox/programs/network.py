"""The network programs of the catalogue, by the names under which images carry them."""

from __future__ import annotations

from winready.sandbox.machine.process import Program
from winready.sandbox.programs.agnhost import agnhost
from winready.sandbox.programs.coredns import coredns
from winready.sandbox.programs.curl import curl
from winready.sandbox.programs.dns_tools import busybox_nslookup, dig, getent, nslookup, windows_nslookup
from winready.sandbox.programs.nc import nc
from winready.sandbox.programs.nginx import nginx
from winready.sandbox.programs.node_agents import calico_node, kube_proxy
from winready.sandbox.programs.ping import ping
from winready.sandbox.programs.wget import wget
from winready.sandbox.programs.wincat import wincat

NETWORK_PROGRAMS: dict[str, Program] = {
    "agnhost": agnhost,
    "calico-node": calico_node,
    "coredns": coredns,
    "curl": curl,
    "dig": dig,
    "getent": getent,
    "kube-proxy": kube_proxy,
    "nc": nc,
    "nginx": nginx,
    "nslookup": nslookup,
    "nslookup.exe": windows_nslookup,
    "busybox-nslookup": busybox_nslookup,
    "ping": ping,
    "ping.exe": ping,
    "wget": wget,
    "wincat": wincat,
}
