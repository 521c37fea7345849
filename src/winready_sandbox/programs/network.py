"""The network programs of the catalogue, by the names under which images carry them."""

from __future__ import annotations

from winready_sandbox.machine.process import Program
from winready_sandbox.programs.agnhost import agnhost
from winready_sandbox.programs.coredns import coredns
from winready_sandbox.programs.curl import curl
from winready_sandbox.programs.dns_tools import dig, getent, nslookup, windows_nslookup
from winready_sandbox.programs.etcd import etcd
from winready_sandbox.programs.flannel import flanneld, host_local
from winready_sandbox.programs.nc import nc
from winready_sandbox.programs.nginx import nginx
from winready_sandbox.programs.node_agents import calico_node, kube_proxy
from winready_sandbox.programs.ping import ping
from winready_sandbox.programs.sample_apiserver import sample_apiserver
from winready_sandbox.programs.wget import wget
from winready_sandbox.programs.wincat import wincat

NETWORK_PROGRAMS: dict[str, Program] = {
    "agnhost": agnhost,
    "calico-node": calico_node,
    "coredns": coredns,
    "curl": curl,
    "dig": dig,
    "etcd": etcd,
    "flanneld": flanneld,
    "getent": getent,
    "host-local": host_local,
    "kube-proxy": kube_proxy,
    "nc": nc,
    "nginx": nginx,
    "nslookup": nslookup,
    "nslookup.exe": windows_nslookup,
    "ping": ping,
    "sample-apiserver": sample_apiserver,
    "wget": wget,
    "wincat": wincat,
}
