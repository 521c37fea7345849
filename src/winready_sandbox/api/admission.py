"""What the real API server adds to or refuses of pods and nodes on their way in, from what the cluster holds."""

from __future__ import annotations

from winready_sandbox.api.admission_services import ServiceAddresses
from winready_sandbox.api.errors import ApiError, forbidden
from winready_sandbox.api.objects import Object, fresh, generated_name
from winready_sandbox.api.pod_defaults import tolerate_node_trouble
from winready_sandbox.api.registry import Admission, Registry

CREDENTIALS_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
MIRROR = "kubernetes.io/config.mirror"
NOT_READY: Object = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


def install(registry: Registry, service_networks: tuple[str, ...] = ("10.96.0.0/16",)) -> None:
    """Let a cluster treat pods, nodes and services as a real one does."""
    pods = PodAdmission(registry)
    services = ServiceAddresses(service_networks)
    registry.admission += [pods.admit, taint_new_node, services.admit, DefaultStorageClass(registry).admit]
    registry.committed.append(services.committed)


def taint_new_node(admission: Admission) -> None:
    """A node gets no pods before the node lifecycle controller has seen it ready."""
    if admission.operation != "CREATE" or admission.resource.storage != ("", "nodes"):
        return
    spec = admission.obj.setdefault("spec", {})
    taints = spec.get("taints") or []
    if not any(taint.get("key") == NOT_READY["key"] for taint in taints):
        spec["taints"] = [*taints, dict(NOT_READY)]


class DefaultStorageClass:
    """Claims that name no class get the default one, the youngest if there are several."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def admit(self, admission: Admission) -> None:
        """Complete a new claim."""
        spec = admission.obj.get("spec")
        if admission.operation != "CREATE" or admission.resource.storage != ("", "persistentvolumeclaims") or not spec:
            return
        old_name = "volume.beta.kubernetes.io/storage-class"
        if spec.get("storageClassName") is not None or old_name in (admission.obj["metadata"].get("annotations") or {}):
            return
        bucket = self._registry.bucket(self._registry.resources.find("storageclasses"))
        classes = [entry.obj["metadata"] for entry in bucket.select()]
        default = [each for each in classes if (each.get("annotations") or {}).get(DEFAULT_CLASS) == "true"]
        if default:
            default.sort(key=lambda each: each["name"])
            spec["storageClassName"] = max(default, key=lambda each: str(each["creationTimestamp"]))["name"]


class RuntimeClasses:
    """What a pod gets of its runtime class, and may not have without one."""

    def __init__(self, registry: Registry) -> None:
        self._classes = registry.bucket(registry.resources.find("runtimeclasses"))

    def _class(self, name: str, spec: Object) -> Object | None:
        wanted = spec.get("runtimeClassName")
        if wanted is None:
            return None
        found = self._classes.get(("", wanted))
        if found is None:
            raise forbidden("pods", "", name, f'pod rejected: RuntimeClass "{wanted}" not found')
        return found.obj

    def complete(self, name: str, spec: Object) -> None:
        """Give a new pod the overhead and the placement of its class."""
        chosen = self._class(name, spec)
        if chosen is None:
            return
        overhead = (chosen.get("overhead") or {}).get("podFixed")
        if overhead:
            if spec.get("overhead") not in (None, {}, overhead):
                detail = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
                raise forbidden("pods", "", name, detail)
            spec["overhead"] = fresh(overhead)
        scheduling = chosen.get("scheduling") or {}
        selector = spec.get("nodeSelector") or {}
        for key, value in (scheduling.get("nodeSelector") or {}).items():
            if selector.setdefault(key, value) != value:
                detail = f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                raise forbidden("pods", "", name, f"{detail}pod.spec.nodeSelector[{key}] = {selector[key]}")
        if selector:
            spec["nodeSelector"] = selector
        own = spec.get("tolerations") or []
        more = [fresh(entry) for entry in scheduling.get("tolerations") or () if entry not in own]
        if more:
            spec["tolerations"] = [*own, *more]

    def validate(self, admission: Admission) -> None:
        """Refuse a new pod with an overhead that is not that of its class."""
        if admission.operation != "CREATE" or admission.resource.storage != ("", "pods") or admission.subresource:
            return
        spec = admission.obj["spec"]
        chosen = self._class(admission.name, spec) or {}
        if not chosen.get("overhead") and spec.get("overhead") is not None:
            detail = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
            raise forbidden("pods", "", admission.name, detail)


class PodAdmission:
    """Service account, priority and runtime class of new pods."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._classes = RuntimeClasses(registry)

    def admit(self, admission: Admission) -> None:
        """Complete a new pod, or refuse it."""
        pod = admission.obj
        if admission.resource.storage != ("", "pods") or not pod.get("spec"):
            return
        if admission.operation == "UPDATE" and not admission.subresource:
            tolerate_node_trouble(pod)
        if admission.operation != "CREATE":
            return
        self._priority(admission.name, pod["spec"])
        self._classes.complete(admission.name, pod["spec"])
        tolerate_node_trouble(pod)
        if MIRROR not in (pod["metadata"].get("annotations") or {}):
            self._service_account(admission, pod["spec"])

    def _find(self, resource: str, name: str, namespace: str = "") -> Object | None:
        try:
            return self._registry.get(self._registry.resources.find(resource), name, namespace).obj
        except ApiError as error:
            if error.code != 404:
                raise
            return None

    def _priority(self, name: str, spec: Object) -> None:
        wanted = spec.get("priorityClassName")
        if wanted:
            chosen = self._find("priorityclasses", wanted)
            if chosen is None:
                raise forbidden("pods", "", name, f"no PriorityClass with name {wanted} was found")
        else:
            chosen = self._default_priority()
            if chosen is not None:
                spec["priorityClassName"] = chosen["metadata"]["name"]
        value = chosen["value"] if chosen else 0
        if spec.get("priority") not in (None, value):
            detail = f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
            detail += f"priority admission controller computed {value} from the given PriorityClass name"
            raise forbidden("pods", "", name, detail)
        spec["priority"] = value
        spec.setdefault("preemptionPolicy", (chosen or {}).get("preemptionPolicy", "PreemptLowerPriority"))

    def _default_priority(self) -> Object | None:
        bucket = self._registry.bucket(self._registry.resources.find("priorityclasses"))
        return next((entry.obj for entry in bucket.select() if entry.obj.get("globalDefault")), None)

    def _service_account(self, admission: Admission, spec: Object) -> None:
        account_name = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
        spec["serviceAccountName"] = spec["serviceAccount"] = account_name
        account = self._find("serviceaccounts", account_name, admission.namespace)
        if account is None:
            where = f"{admission.namespace}/{account_name}"
            detail = f'error looking up service account {where}: serviceaccount "{account_name}" not found'
            raise forbidden("pods", "", admission.name, detail)
        mounted = spec.get("automountServiceAccountToken")
        if mounted is None:
            mounted = account.get("automountServiceAccountToken")
        if mounted is not False:
            _mount_token(spec)
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = fresh(account["imagePullSecrets"])


def _mount_token(spec: Object) -> None:
    """Give every container that mounts nothing there the token, the CA certificate and the namespace."""
    containers = [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]
    lacking = [
        container
        for container in containers
        if all(mount.get("mountPath") != CREDENTIALS_PATH for mount in container.get("volumeMounts") or ())
    ]
    if not lacking:
        return
    volumes = spec.get("volumes") or []
    name = next((volume["name"] for volume in volumes if volume["name"].startswith("kube-api-access-")), "")
    if not name:
        name = generated_name("kube-api-access-")
        spec["volumes"] = [*volumes, {"name": name, "projected": _token_projection()}]
    for container in lacking:
        mount = {"name": name, "readOnly": True, "mountPath": CREDENTIALS_PATH}
        container["volumeMounts"] = [*(container.get("volumeMounts") or []), mount]


def _token_projection() -> Object:
    field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    certificate = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": certificate},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}},
        ],
        "defaultMode": 420,
    }
