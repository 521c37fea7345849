"""Faults of container runtimes."""

from __future__ import annotations

from winready_sandbox.faults.model import Fault

RUNTIME_FAULTS = (
    Fault(
        "lcow.windows-pods-run-linux",
        "One Windows node runs the Linux image of Windows pods (LCOW).",
        "node.runtime",
        {"linux_for_windows": True},
        fact="1.1: Running plus spec.os does not prove a Windows container",
    ),
    Fault(
        "runtime.windows.pulls-fail",
        "One Windows node can pull no image.",
        "node.runtime",
        {"pulls_fail": True},
        fact="1.10: an image that is not there makes blocked",
    ),
    Fault(
        "runtime.windows.wrong-image",
        "One Windows node runs a stale image: agnhost 2.56, whatever version the pod asked for.",
        "node.runtime",
        {"stale_tag": "2.56"},
        fact="run-level rules: images; the container status tells what runs",
    ),
    Fault(
        "runtime.windows.hostprocess-own-address",
        "HostProcess pods of one Windows node get a pod address instead of the node's network.",
        "node.runtime",
        {"host_process_own_address": True},
        fact="briefs P3 and P6",
    ),
    Fault(
        "runtime.windows.hostprocess-unprivileged",
        "HostProcess containers of one Windows node run as an ordinary user, whatever user they ask for.",
        "node.runtime",
        {"host_process_unprivileged": True},
        fact="1.4: HostProcess runs as the user that runAsUserName names",
    ),
    Fault(
        "runtime.windows.wrong-image-beside",
        "One Windows node runs the right image in the first container of a pod, and agnhost 2.56 in the others.",
        "node.runtime",
        {"stale_tag_later": "2.56"},
        fact="run-level rules: images; every container status tells what runs",
    ),
    Fault(
        "runtime.windows.tag-moved",
        "One Windows node runs other content under the same tag from the second container on.",
        "node.runtime",
        {"tag_moved": True},
        fact="run-level rules: images; the digest of each container tells what runs",
    ),
    Fault(
        "runtime.windows.hostprocess-always-system",
        "HostProcess containers of one Windows node run as SYSTEM, whatever user they ask for.",
        "node.runtime",
        {"host_process_as_system": True},
        fact="1.4: HostProcess runs as the user that runAsUserName names; pull request containerd/nerdctl#795: without "
        "a user it inherits that of containerd",
    ),
    Fault(
        "runtime.windows.hostprocess-no-volumes",
        "Volumes, and with them service account tokens, do not appear in HostProcess containers of one Windows node.",
        "node.runtime",
        {"host_process_no_volumes": True},
        fact="issue kubernetes/kubernetes#104562: a HostProcess container does not find its token",
    ),
)
