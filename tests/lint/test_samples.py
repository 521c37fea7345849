"""Whole manifests as people write them, and exactly the findings that they deserve."""

from __future__ import annotations

from pathlib import Path

from lint.manifests import ids, lint

IIS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: iis}
spec:
  selector: {matchLabels: {app: iis}}
  template:
    metadata: {labels: {app: iis}}
    spec:
      os: {name: windows}
      nodeSelector: {kubernetes.io/os: windows}
      tolerations: [{key: os, operator: Equal, value: windows, effect: NoSchedule}]
      securityContext:
        runAsNonRoot: true
        windowsOptions: {runAsUserName: ContainerUser}
      containers:
        - name: iis
          image: mcr.microsoft.com/windows/servercore/iis:windowsservercore-ltsc2022
          resources: {limits: {cpu: "1", memory: 800Mi}}
"""
COPIED = """
apiVersion: v1
kind: Pod
metadata: {name: copied}
spec:
  os: {name: windows}
  nodeSelector: {kubernetes.io/os: windows}
  securityContext: {fsGroup: 2000, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
  containers:
    - name: app
      image: example.org/app:1-ltsc2022
      resources: {limits: {cpu: "1", memory: 1Gi}}
      securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
"""
FIVE = ["sc-allow-privilege-escalation", "sc-capabilities", "sc-fsgroup", "sc-run-as-user", "sc-seccomp"]
AGENT = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers:
        - name: agent
          image: example.org/agent:2
          resources: {limits: {cpu: 100m, memory: 200Mi}}
          volumeMounts: [{name: log, mountPath: /run/log}]
      volumes: [{name: log, hostPath: {path: /run/log}}]
"""
PROXY = r"""
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: kube-proxy-windows, namespace: kube-system}
spec:
  selector: {matchLabels: {app: proxy}}
  template:
    metadata: {labels: {app: proxy}}
    spec:
      os: {name: windows}
      nodeSelector: {kubernetes.io/os: windows}
      tolerations: [{operator: Exists}]
      hostNetwork: true
      securityContext:
        windowsOptions: {hostProcess: true, runAsUserName: 'NT AUTHORITY\SYSTEM'}
      containers:
        - name: kube-proxy
          image: sigwindowstools/kube-proxy:v1.34.0-calico-hostprocess
          resources: {limits: {cpu: 500m, memory: 500Mi}}
          volumeMounts: [{name: config, mountPath: 'C:\var\lib\kube-proxy'}]
      volumes: [{name: config, configMap: {name: kube-proxy}}]
"""


def problems(folder: Path, manifest: str | list[str], kubernetes: str = "1.34") -> list[str]:
    return ids(lint(folder, manifest, kubernetes), "error", "warning")


def test_a_good_iis_deployment_has_no_problem(tmp_path: Path) -> None:
    assert problems(tmp_path, IIS) == []


def test_the_same_without_any_hint_of_its_os(tmp_path: Path) -> None:
    unpinned = "\n".join(
        line for line in IIS.splitlines() if not line.strip().startswith(("os:", "nodeSelector:", "tolerations:"))
    )
    assert problems(tmp_path, unpinned) == ["os-field-missing", "sched-windows-image-unpinned"]
    assert problems(tmp_path, unpinned, "1.23") == ["sched-windows-image-unpinned"]


def test_a_security_context_copied_from_linux_is_five_errors(tmp_path: Path) -> None:
    assert ids(lint(tmp_path, COPIED), "error") == FIVE
    assert ids(lint(tmp_path, COPIED), "warning") == []


def test_without_spec_os_the_same_fields_are_warnings(tmp_path: Path) -> None:
    undeclared = COPIED.replace("  os: {name: windows}\n", "")
    assert ids(lint(tmp_path, undeclared, "1.31"), "error") == []
    assert ids(lint(tmp_path, undeclared, "1.31"), "warning") == ["os-field-missing", *FIVE]
    assert ids(lint(tmp_path, undeclared, "1.30"), "error") == ["sc-run-as-user"]


def test_a_field_that_is_set_to_false_is_refused_too(tmp_path: Path) -> None:
    false = COPIED.replace(
        "  securityContext: {fsGroup: 2000, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}\n", ""
    )
    false = false.replace("{allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}", "{privileged: false}")
    assert problems(tmp_path, false) == ["sc-privileged"]


def test_a_log_agent_for_all_nodes(tmp_path: Path) -> None:
    assert problems(tmp_path, AGENT) == ["sched-daemonset-unpinned"]
    windows = AGENT.replace(
        "      containers:",
        "      os: {name: windows}\n      nodeSelector: {kubernetes.io/os: windows}\n      containers:",
    )
    assert problems(tmp_path, windows) == ["vol-hostpath-linux-path"]


def test_a_node_plugin_that_talks_to_csi_proxy(tmp_path: Path) -> None:
    plugin = PROXY.replace("hostProcess: true, ", "").replace("      hostNetwork: true\n", "")
    plugin = plugin.replace(
        "{name: config, configMap: {name: kube-proxy}}",
        r"{name: config, hostPath: {path: '\\.\pipe\csi-proxy-volume-v1', type: Socket}}",
    )
    findings = lint(tmp_path, plugin)
    assert ids(findings, "error", "warning") == ["vol-hostpath-type-socket"]
    assert "vol-hostpath-named-pipe" in ids(findings, "info")


def test_a_correct_host_process_daemonset(tmp_path: Path) -> None:
    findings = lint(tmp_path, PROXY)
    assert ids(findings, "error", "warning") == []
    assert {"hpc-gate", "hpc-volume-paths"} <= set(ids(findings, "info"))
    labels = "{pod-security.kubernetes.io/enforce: baseline}"
    level = f"{{apiVersion: v1, kind: Namespace, metadata: {{name: kube-system, labels: {labels}}}}}"
    assert problems(tmp_path, [PROXY, level]) == ["psa-host-process"]


def test_a_host_process_pod_with_everything_wrong(tmp_path: Path) -> None:
    wrong = PROXY.replace("      hostNetwork: true\n", "").replace(r", runAsUserName: 'NT AUTHORITY\SYSTEM'", "")
    wrong = wrong.replace(
        "      volumes:",
        "        - name: side\n          image: example.org/side:1\n"
        "          resources: {limits: {cpu: 1m, memory: 1Mi}}\n"
        "          securityContext: {windowsOptions: {hostProcess: false}}\n      volumes:",
    )
    assert problems(tmp_path, wrong) == ["hpc-all-containers", "hpc-host-network-required", "hpc-run-as-user-name"]


def test_a_host_process_pod_that_mounts_a_pipe(tmp_path: Path) -> None:
    pipe = PROXY.replace("configMap: {name: kube-proxy}", r"hostPath: {path: '\\.\pipe\containerd-containerd'}")
    pipe = pipe.replace("        windowsOptions:", "        runAsNonRoot: true\n        windowsOptions:")
    assert problems(tmp_path, pipe) == ["hpc-named-pipe-mount", "hpc-run-as-non-root"]


def test_a_stateful_set_on_block_devices_and_ext4(tmp_path: Path) -> None:
    stateful = (
        IIS.replace("kind: Deployment", "kind: StatefulSet").rstrip()
        + """
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {storageClassName: fast, volumeMode: Block, accessModes: [ReadWriteOnce]}
"""
    )
    storage = (
        "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: fast}\n"
        "provisioner: disk.csi.example.org\nparameters: {csi.storage.k8s.io/fstype: ext4}"
    )
    assert problems(tmp_path, [stateful, storage]) == ["vol-devices-block", "vol-fstype"]
    assert problems(tmp_path, storage) == []


JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec:
  template:
    spec:
      os: {name: windows}
      nodeSelector: {kubernetes.io/os: windows}
      restartPolicy: Never
      containers:
        - name: job
          image: mcr.microsoft.com/windows/nanoserver:ltsc2022
          command: [/bin/sh, -c, echo hello]
          resources: {limits: {cpu: "1", memory: 100Mi}}
          lifecycle: {preStop: {exec: {command: [powershell.exe, -Command, Start-Sleep 5]}}}
"""


def test_a_job_with_linux_commands_on_nano_server(tmp_path: Path) -> None:
    assert problems(tmp_path, JOB) == ["cmd-linux-shell", "img-nanoserver-powershell"]


def test_a_cron_job_pinned_to_a_build_that_its_image_does_not_fit(tmp_path: Path) -> None:
    cron = """
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "@daily"
  jobTemplate:
    spec:
      template:
        spec:
          os: {name: windows}
          nodeSelector: {kubernetes.io/os: windows, node.kubernetes.io/windows-build: 10.0.20348}
          restartPolicy: Never
          containers:
            - name: job
              image: mcr.microsoft.com/windows/servercore:ltsc2019
              resources: {limits: {cpu: "1", memory: 1Gi}}
"""
    assert problems(tmp_path, cron, "1.35") == ["img-os-build-mismatch", "img-unsupported-server-release"]
    assert problems(tmp_path, cron, "1.34") == ["img-os-build-mismatch"]


def test_a_redis_chart_with_linux_tuning(tmp_path: Path) -> None:
    redis = """
apiVersion: v1
kind: Pod
metadata: {name: redis}
spec:
  os: {name: windows}
  nodeSelector: {kubernetes.io/os: windows}
  securityContext: {sysctls: [{name: net.core.somaxconn, value: "1024"}]}
  containers:
    - name: redis
      image: example.org/redis:7-ltsc2022
      resources: {limits: {cpu: "1", memory: 1Gi, hugepages-2Mi: 64Mi}}
      volumeMounts: [{name: cache, mountPath: 'C:\\cache'}]
  volumes: [{name: cache, emptyDir: {medium: Memory}}]
"""
    assert problems(tmp_path, redis) == ["res-hugepages", "sc-sysctls", "vol-emptydir-memory"]
