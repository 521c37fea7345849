"""Requests for the differential test, in scenarios whose calls follow each other."""

from __future__ import annotations

from typing import Any

from real.api import Call

CORE, APPS = "/api/v1/namespaces/NAMESPACE", "/apis/apps/v1/namespaces/NAMESPACE"
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
JSON_PATCH, APPLY = "application/json-patch+json", "application/apply-patch+yaml"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
JANE = {"Impersonate-User": "jane"}


def config_map(name: str, **more: Any) -> dict[str, Any]:
    """A small object that no controller touches."""
    metadata = {"name": name, **more.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1", "b": "2"}, **more}


def template(**spec: Any) -> dict[str, Any]:
    """A pod template that no node takes."""
    containers = [{"name": "c", "image": "registry.k8s.io/pause:3.10"}]
    return {
        "metadata": {"labels": {"app": "x"}},
        "spec": {"containers": containers, "nodeSelector": {"no": "node"}, **spec},
    }


def workload(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    """A workload without replicas."""
    selector = {"matchLabels": {"app": "x"}}
    base = {"replicas": 0} if kind != "DaemonSet" else {}
    whole = {**base, "selector": selector, "template": template(), **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": whole}


def obj(group: str, kind: str, name: str, **fields: Any) -> dict[str, Any]:
    """Any object."""
    metadata = {"name": name, **fields.pop("metadata", {})}
    return {"apiVersion": group, "kind": kind, "metadata": metadata, **fields}


def pod(name: str, **spec: Any) -> dict[str, Any]:
    """A pod that no node takes."""
    return obj("v1", "Pod", name, spec=template(**spec)["spec"], metadata={"labels": {"app": "x"}})


RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]
ROLE_REF = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
SUBJECTS = [{"kind": "User", "name": "somebody", "apiGroup": "rbac.authorization.k8s.io"}]
GOOD: list[tuple[str, dict[str, Any]]] = [
    (f"{CORE}/configmaps", config_map("good", binaryData={"x": "AAE="})),
    (f"{CORE}/configmaps", config_map("fixed", immutable=True)),
    (f"{CORE}/secrets", obj("v1", "Secret", "plain", stringData={"a": "b"})),
    (f"{CORE}/secrets", obj("v1", "Secret", "basic", type="kubernetes.io/basic-auth", stringData={"username": "u"})),
    (f"{CORE}/serviceaccounts", obj("v1", "ServiceAccount", "robot")),
    (f"{CORE}/services", obj("v1", "Service", "plain", spec={"ports": [{"port": 80}], "selector": {"a": "b"}})),
    (f"{CORE}/services", obj("v1", "Service", "headless", spec={"clusterIP": "None", "ports": [{"port": 80}]})),
    (f"{CORE}/services", obj("v1", "Service", "outside", spec={"type": "ExternalName", "externalName": "example.com"})),
    (
        f"{CORE}/services",
        obj("v1", "Service", "ported", spec={"type": "NodePort", "ports": [{"port": 80, "targetPort": "web"}]}),
    ),
    (
        f"{CORE}/services",
        obj(
            "v1", "Service", "sticky", spec={"sessionAffinity": "ClientIP", "ports": [{"port": 53, "protocol": "UDP"}]}
        ),
    ),
    (
        f"{CORE}/services",
        obj(
            "v1",
            "Service",
            "balanced",
            spec={
                "type": "LoadBalancer",
                "ports": [
                    {"port": 80},
                ],
            },
        ),
    ),
    (f"{CORE}/pods", pod("plain")),
    (
        f"{CORE}/pods",
        pod("windows", os={"name": "windows"}, securityContext={"windowsOptions": {"runAsUserName": "u"}}),
    ),
    (f"{CORE}/pods", pod("host", hostNetwork=True, restartPolicy="Never", terminationGracePeriodSeconds=0)),
    (f"{CORE}/pods", pod("silent", automountServiceAccountToken=False, enableServiceLinks=False)),
    (
        f"{CORE}/pods",
        pod(
            "rich",
            initContainers=[{"name": "i", "image": "i:latest", "restartPolicy": "Always"}],
            containers=[
                {
                    "name": "c",
                    "image": "i:latest",
                    "ports": [{"containerPort": 80}],
                    "env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
                    "resources": {"limits": {"cpu": "1500m", "memory": "1024Mi"}},
                    "livenessProbe": {"httpGet": {"port": 80}},
                    "readinessProbe": {"exec": {"command": ["true"]}},
                    "lifecycle": {"preStop": {"exec": {"command": ["true"]}}},
                    "volumeMounts": [{"name": "e", "mountPath": "/e"}],
                }
            ],
            volumes=[
                {"name": "e", "emptyDir": {}},
                {"name": "c", "configMap": {"name": "good"}},
                {"name": "s", "secret": {"secretName": "plain"}},
                {"name": "h", "hostPath": {"path": "/h"}},
                {"name": "p", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
                {"name": "d", "downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            ],
        ),
    ),
    (
        f"{CORE}/persistentvolumeclaims",
        obj(
            "v1",
            "PersistentVolumeClaim",
            "claim",
            spec={
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "none",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        ),
    ),
    (f"{CORE}/resourcequotas", obj("v1", "ResourceQuota", "quota", spec={"hard": {"pods": "90", "cpu": "1500m"}})),
    (
        f"{CORE}/endpoints",
        obj("v1", "Endpoints", "manual", subsets=[{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}]),
    ),
    (f"{APPS}/deployments", workload("Deployment", "plain")),
    (f"{APPS}/deployments", workload("Deployment", "recreated", strategy={"type": "Recreate"}, paused=True)),
    (f"{APPS}/statefulsets", workload("StatefulSet", "plain", serviceName="headless")),
    (f"{APPS}/daemonsets", workload("DaemonSet", "plain")),
    (f"{APPS}/replicasets", workload("ReplicaSet", "plain")),
    (
        "/apis/batch/v1/namespaces/NAMESPACE/jobs",
        obj("batch/v1", "Job", "plain", spec={"suspend": True, "template": template(restartPolicy="Never")}),
    ),
    (
        "/apis/batch/v1/namespaces/NAMESPACE/cronjobs",
        obj(
            "batch/v1",
            "CronJob",
            "plain",
            spec={
                "schedule": "1 2 3 4 *",
                "suspend": True,
                "jobTemplate": {"spec": {"template": template(restartPolicy="OnFailure")}},
            },
        ),
    ),
    (
        "/apis/networking.k8s.io/v1/namespaces/NAMESPACE/networkpolicies",
        obj(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            "plain",
            spec={"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]},
        ),
    ),
    (
        "/apis/discovery.k8s.io/v1/namespaces/NAMESPACE/endpointslices",
        obj(
            "discovery.k8s.io/v1",
            "EndpointSlice",
            "plain",
            addressType="IPv4",
            endpoints=[{"addresses": ["10.1.2.3"]}],
            ports=[{"port": 80}],
        ),
    ),
    (
        "/apis/coordination.k8s.io/v1/namespaces/NAMESPACE/leases",
        obj("coordination.k8s.io/v1", "Lease", "plain", spec={"holderIdentity": "me", "leaseDurationSeconds": 10}),
    ),
    (
        "/apis/policy/v1/namespaces/NAMESPACE/poddisruptionbudgets",
        obj(
            "policy/v1",
            "PodDisruptionBudget",
            "plain",
            spec={"minAvailable": 1, "selector": {"matchLabels": {"q": "r"}}},
        ),
    ),
    (f"{RBAC}/namespaces/NAMESPACE/roles", obj("rbac.authorization.k8s.io/v1", "Role", "plain", rules=RULES)),
    (
        f"{RBAC}/namespaces/NAMESPACE/rolebindings",
        obj("rbac.authorization.k8s.io/v1", "RoleBinding", "plain", roleRef=ROLE_REF, subjects=SUBJECTS),
    ),
    (f"{RBAC}/clusterroles", obj("rbac.authorization.k8s.io/v1", "ClusterRole", "NAMESPACE", rules=RULES)),
    (
        f"{RBAC}/clusterrolebindings",
        obj("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "NAMESPACE", roleRef=ROLE_REF, subjects=SUBJECTS),
    ),
    ("/apis/node.k8s.io/v1/runtimeclasses", obj("node.k8s.io/v1", "RuntimeClass", "NAMESPACE", handler="runhcs")),
    ("/apis/scheduling.k8s.io/v1/priorityclasses", obj("scheduling.k8s.io/v1", "PriorityClass", "NAMESPACE", value=7)),
    (
        "/apis/storage.k8s.io/v1/storageclasses",
        obj("storage.k8s.io/v1", "StorageClass", "NAMESPACE", provisioner="x/y"),
    ),
]


def created(path: str, body: dict[str, Any]) -> list[Call]:
    """Create an object, patch its labels and annotations in three ways, read its metadata, and delete it."""
    one = f"{path}/{body['metadata']['name']}"
    label = {"metadata": {"labels": {"l": "1"}}}
    return [
        Call("POST", f"{path}?dryRun=All", body),
        Call("POST", path, body),
        Call("POST", path, body),
        Call("PATCH", one, label, MERGE),
        Call("PATCH", one, {"metadata": {"labels": {"l": None, "m": "2"}}}, STRATEGIC),
        Call("PATCH", one, [{"op": "add", "path": "/metadata/annotations", "value": {"k": "v"}}], JSON_PATCH),
        Call("GET", one, headers={"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}),
        Call("DELETE", f"{one}?dryRun=All"),
        Call("DELETE", one, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}),
    ]


ONE = f"{CORE}/configmaps/one"
DEPLOYMENT = f"{APPS}/deployments/web"
BOUNDS = [
    {
        "type": "Container",
        "max": {"cpu": "2", "memory": "2Gi"},
        "min": {"cpu": "10m"},
        "default": {"cpu": "500m", "memory": "256Mi"},
        "defaultRequest": {"cpu": "100m"},
        "maxLimitRequestRatio": {"memory": "4"},
    },
    {"type": "Pod", "max": {"memory": "3Gi"}},
]


def sized(name: str, count: int = 1, **resources: Any) -> dict[str, Any]:
    """A pod whose containers ask for this."""
    image = "registry.k8s.io/pause:3.10"
    containers = [{"name": f"c{n}", "image": image, "resources": resources} for n in range(count)]
    return pod(name, containers=containers)


HOST_PROCESS: dict[str, Any] = {
    "os": {"name": "windows"},
    "hostNetwork": True,
    "securityContext": {"windowsOptions": {"hostProcess": True, "runAsUserName": "NT AUTHORITY\\SYSTEM"}},
    "volumes": [{"name": "h", "hostPath": {"path": "C:\\x"}}],
}
AMOUNTS = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}
PSA = "pod-security.kubernetes.io"


def resized(name: str, resources: dict[str, Any]) -> Call:
    """A resize of a pod's first container."""
    container = {"name": "c", "resources": resources}
    return Call("PATCH", f"{CORE}/pods/{name}/resize", {"spec": {"containers": [container]}}, STRATEGIC)


SCENARIOS: dict[str, list[Call]] = {
    "resizes": [
        *(
            Call(
                "POST",
                f"{CORE}/pods",
                pod(name, **system, containers=[{"name": "c", "image": "i", "resources": AMOUNTS}]),
            )
            for name, system in (("one", {}), ("windows", {"os": {"name": "windows"}}))
        ),
        resized("one", {"requests": {"cpu": "2"}}),
        resized("one", {"requests": {"cpu": None}}),
        resized("one", {"requests": {"ephemeral-storage": "1Gi"}}),
        resized("one", {"limits": {"cpu": "2", "memory": "1Gi"}}),
        resized("one", {"requests": {"cpu": "4"}, "limits": {"cpu": "3"}}),
        resized("windows", {"requests": {"cpu": "2"}}),
        resized("nobody", {"requests": {"cpu": "2"}}),
        Call("GET", f"{CORE}/pods/one/resize"),
    ],
    "pod-security": [
        Call("POST", f"{CORE}/pods", pod("host", hostNetwork=True)),
        Call("PATCH", "/api/v1/namespaces/NAMESPACE", {"metadata": {"labels": {f"{PSA}/enforce": "high"}}}, MERGE),
        Call("PATCH", "/api/v1/namespaces/NAMESPACE", {"metadata": {"labels": {f"{PSA}/enforce": "baseline"}}}, MERGE),
        Call("PATCH", f"{CORE}/pods/host", {"metadata": {"labels": {"a": "b"}}}, MERGE),
        Call("PATCH", f"{CORE}/pods/host", {"spec": {"containers": [{"name": "c", "image": "other"}]}}, STRATEGIC),
    ],
    "json-patches": [
        Call("POST", f"{CORE}/configmaps", config_map("one")),
        *(
            Call("PATCH", ONE, operations, JSON_PATCH)
            for operations in (
                [{"op": "replace", "path": "/data/a", "value": "3"}],
                [{"op": "test", "path": "/data/a", "value": "9"}],
                [{"op": "remove", "path": "/data/nope"}],
                [
                    {"op": "copy", "from": "/data/a", "path": "/data/c"},
                    {"op": "move", "from": "/data/b", "path": "/data/d"},
                ],
                [{"op": "replace", "path": "/metadata/name", "value": "two"}],
                [{"op": "add", "path": "/data/x", "value": 5}],
                [{"op": "dance", "path": "/data/x"}],
                {"op": "add"},
                [{"op": "add", "path": "/metadata/labels", "value": {"bad key": "x"}}],
            )
        ),
    ],
    "merge-patches": [
        Call("POST", f"{CORE}/configmaps", config_map("one")),
        Call("PATCH", ONE, {"data": {"a": None, "z": "26"}}, MERGE),
        Call("PATCH", ONE, {"data": None}, MERGE),
        Call("PATCH", ONE, {"data": "text"}, MERGE),
        Call("PATCH", ONE, {"metadata": {"resourceVersion": "1"}}, MERGE),
        Call("PATCH", ONE, {"metadata": {"uid": "x"}}, MERGE),
        Call("PATCH", ONE, "{not json", MERGE),
        Call("PATCH", f"{CORE}/configmaps/nope", {}, MERGE),
        Call("PATCH", ONE, {}, "text/plain"),
        Call("PATCH", f"{ONE}?fieldValidation=Strict", {"wrong": 1}, MERGE),
    ],
    "strategic-patches": [
        Call("POST", f"{APPS}/deployments", workload("Deployment", "web")),
        *(
            Call("PATCH", DEPLOYMENT, {"spec": {"template": {"spec": spec}}}, STRATEGIC)
            for spec in (
                {"containers": [{"name": "c", "env": [{"name": "A", "value": "1"}]}]},
                {
                    "containers": [{"name": "d", "image": "i"}],
                    "$setElementOrder/containers": [{"name": "d"}, {"name": "c"}],
                },
                {"containers": [{"name": "d", "$patch": "delete"}]},
                {"tolerations": [{"key": "a", "operator": "Exists"}]},
                {"containers": [{"name": "c", "image": ""}]},
                {"nodeSelector": {"$patch": "replace", "other": "node"}},
                {"containers": [{"image": "nameless"}]},
            )
        ),
        Call("PATCH", DEPLOYMENT, {"spec": {"selector": {"matchLabels": {"app": "y"}}}}, STRATEGIC),
        Call("PATCH", DEPLOYMENT, {"spec": {"replicas": "two"}}, STRATEGIC),
    ],
    "apply": [
        Call("PATCH", f"{ONE}?fieldManager=one", config_map("one"), APPLY),
        Call("PATCH", f"{ONE}?fieldManager=one", config_map("one"), APPLY),
        Call("PATCH", f"{ONE}?fieldManager=two", config_map("one", data={"a": "9"}), APPLY),
        Call("PATCH", f"{ONE}?fieldManager=two&force=true", config_map("one", data={"a": "9"}), APPLY),
        Call("PATCH", f"{ONE}?fieldManager=one", config_map("one", data={"b": "2"}), APPLY),
        Call("PATCH", ONE, config_map("one"), APPLY),
        Call("PATCH", f"{ONE}?fieldManager=one", config_map("other"), APPLY),
        Call("PATCH", f"{ONE}?fieldManager=one", {"data": {}}, APPLY),
        Call("PATCH", f"{DEPLOYMENT}?fieldManager=one", workload("Deployment", "web"), APPLY),
        Call("PATCH", f"{DEPLOYMENT}?fieldManager=two", workload("Deployment", "web", replicas=3), APPLY),
        Call(
            "PUT",
            f"{DEPLOYMENT}/scale",
            {"spec": {"replicas": 0}, "metadata": {"name": "web", "namespace": "NAMESPACE"}},
        ),
    ],
    "lists": [
        *(
            Call(
                "POST", f"{CORE}/configmaps", config_map(f"c{n}", metadata={"labels": {"n": str(n), "odd": str(n % 2)}})
            )
            for n in range(5)
        ),
        *(
            Call("GET", f"{CORE}/configmaps?{query}")
            for query in (
                "labelSelector=odd%3D1",
                "labelSelector=odd%21%3D1",
                "labelSelector=n+in+(1,2)",
                "labelSelector=n+notin+(1,2)",
                "labelSelector=%21n",
                "labelSelector=n%3E2",
                "labelSelector=n",
                "labelSelector=,,",
                "labelSelector=a+in+()",
                "labelSelector=bad+key%3Dx",
                "fieldSelector=metadata.name%3Dc1",
                "fieldSelector=metadata.name%21%3Dc1&labelSelector=odd",
                "fieldSelector=data.a%3D1",
                "fieldSelector=nonsense",
                "limit=2&labelSelector=odd",
                "limit=-1",
                "limit=x",
                "limit=2&continue=garbage",
                "resourceVersion=0&labelSelector=odd",
                "resourceVersion=x",
                "resourceVersion=0&resourceVersionMatch=Exact",
                "resourceVersionMatch=NotOlderThan",
                "resourceVersion=999999999&resourceVersionMatch=NotOlderThan",
                "watch=true&resourceVersion=x&timeoutSeconds=1",
                "timeoutSeconds=x",
            )
        ),
        Call("GET", f"{CORE}/pods?fieldSelector=spec.nodeName%3Dx,status.phase%3DRunning"),
        Call("GET", f"{CORE}/pods?fieldSelector=spec.image%3Dx"),
        Call("DELETE", f"{CORE}/configmaps?labelSelector=odd%3D1"),
        Call("GET", f"{CORE}/configmaps?labelSelector=odd"),
    ],
    "updates": [
        Call("POST", f"{CORE}/configmaps", config_map("one")),
        Call("PUT", ONE, config_map("one", data={"x": "y"})),
        Call("PUT", ONE, config_map("two")),
        Call("PUT", f"{CORE}/configmaps/none", config_map("none")),
        Call("PUT", ONE, config_map("one", metadata={"resourceVersion": "1"})),
        Call("PUT", ONE, config_map("one", metadata={"resourceVersion": "x"})),
        Call("PUT", ONE, config_map("one", metadata={"uid": "other"})),
        Call("PUT", ONE, config_map("one", metadata={"namespace": "other"})),
        Call("PUT", ONE, {**config_map("one"), "kind": "Secret"}),
        Call("PUT", ONE, {**config_map("one"), "apiVersion": "v2"}),
        Call("PUT", ONE, "[]"),
        Call("PUT", ONE, ""),
        Call("PUT", f"{ONE}?dryRun=Some", config_map("one")),
        Call("PUT", f"{ONE}?fieldValidation=Loud", config_map("one")),
        Call("PUT", f"{ONE}?fieldManager={'x' * 200}", config_map("one")),
        Call("POST", f"{CORE}/configmaps", config_map("three", metadata={"namespace": "other"})),
        Call("POST", f"{CORE}/configmaps", config_map("", metadata={"generateName": "made-"})),
        Call("POST", f"{CORE}/configmaps", {"apiVersion": "v1", "kind": "ConfigMap"}),
        Call("POST", f"{CORE}/configmaps", config_map("four"), "text/html"),
        Call("POST", f"{CORE}/configmaps?fieldValidation=Strict", config_map("five", wrong=1)),
        Call("POST", "/api/v1/namespaces/nowhere/configmaps", config_map("one")),
        Call("POST", ONE, config_map("one")),
    ],
    "deletes": [
        Call("POST", f"{CORE}/configmaps", config_map("one", metadata={"finalizers": ["example.com/hold"]})),
        Call("DELETE", ONE, {"preconditions": {"uid": "wrong"}}),
        Call("DELETE", ONE, {"preconditions": {"resourceVersion": "1"}}),
        Call("DELETE", ONE, {"propagationPolicy": "Sideways"}),
        Call("DELETE", ONE, {"propagationPolicy": "Orphan", "orphanDependents": True}),
        Call("DELETE", ONE, {"kind": "Pod", "apiVersion": "v1"}),
        Call("DELETE", ONE),
        Call("PATCH", ONE, {"metadata": {"finalizers": ["example.com/other"]}}, MERGE),
        Call("PATCH", ONE, {"metadata": {"finalizers": None}}, MERGE),
        Call("GET", ONE),
        *(
            call
            for policy in ("Foreground", "Background", "Orphan")
            for call in (
                # Names of their own: how long a garbage collector takes is not compared.
                Call("POST", f"{CORE}/configmaps", config_map(f"two-{policy.lower()}")),
                Call("DELETE", f"{CORE}/configmaps/two-{policy.lower()}", {"propagationPolicy": policy}),
            )
        ),
        Call("DELETE", f"{CORE}/configmaps/none"),
        Call("POST", f"{CORE}/pods", pod("p")),
        Call("DELETE", f"{CORE}/pods/p", {"gracePeriodSeconds": -1}),
        Call("DELETE", f"{CORE}/pods/p?gracePeriodSeconds=x"),
        Call("DELETE", f"{CORE}/pods/p"),
    ],
    "subresources": [
        Call("POST", f"{APPS}/deployments", workload("Deployment", "web")),
        Call("GET", f"{DEPLOYMENT}/scale"),
        Call("PATCH", f"{DEPLOYMENT}/scale", {"spec": {"replicas": -1}}, MERGE),
        Call("PATCH", f"{DEPLOYMENT}/scale", {"spec": {"replicas": "x"}}, MERGE),
        Call("PATCH", f"{DEPLOYMENT}/status", {"spec": {"replicas": 5}}, MERGE),
        Call("GET", f"{DEPLOYMENT}/nonsense"),
        Call("POST", f"{CORE}/pods", pod("p")),
        Call("PATCH", f"{CORE}/pods/p/status", {"status": {"phase": "Dancing"}}, MERGE),
        Call("PATCH", f"{CORE}/pods/p", {"spec": {"containers": [{"name": "c", "image": "other"}]}}, STRATEGIC),
        Call("PATCH", f"{CORE}/pods/p", {"spec": {"hostNetwork": True}}, MERGE),
        Call("PATCH", f"{CORE}/pods/p", {"spec": {"nodeName": "linux-1"}}, MERGE),
        Call("PATCH", f"{CORE}/pods/p", {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}}, MERGE),
        Call("GET", f"{CORE}/pods/p/log"),
        Call("GET", f"{CORE}/pods/p/log?container=no"),
        Call("GET", f"{CORE}/pods/p/log?tailLines=-1"),
        Call("GET", f"{CORE}/pods/none/log"),
        Call("POST", f"{CORE}/pods/p/exec?command=true&stdout=true"),
        Call("POST", f"{CORE}/pods/p/exec"),
        Call("GET", f"{CORE}/pods/p/proxy/"),
        Call("POST", f"{CORE}/pods/none/eviction", obj("policy/v1", "Eviction", "none")),
        Call("POST", f"{CORE}/pods/p/eviction", obj("policy/v1", "Eviction", "p")),
        Call("POST", f"{CORE}/serviceaccounts/default/token", {"spec": {"expirationSeconds": 1}}),
        Call("POST", f"{CORE}/serviceaccounts/default/token", {"spec": {"expirationSeconds": 600}}),
        Call("POST", f"{CORE}/serviceaccounts/none/token", {"spec": {}}),
        Call("GET", "/api/v1/nodes/none/proxy/stats/summary"),
    ],
    "access": [
        Call("GET", "/api/v1/namespaces", anonymous=True),
        Call("GET", "/version", anonymous=True),
        Call("GET", "/healthz", anonymous=True),
        Call("GET", "/api", anonymous=True),
        Call("GET", "/api/v1/pods", anonymous=True, headers={"Authorization": "Bearer nonsense"}),
        *(
            Call(method, path, body, headers=JANE)
            for method, path, body in (
                ("GET", f"{CORE}/pods", None),
                ("GET", f"{CORE}/pods/p", None),
                ("GET", "/api/v1/nodes", None),
                ("GET", "/apis", None),
                ("GET", "/metrics", None),
                ("POST", f"{CORE}/pods", pod("p")),
                ("PUT", ONE, config_map("one")),
                ("DELETE", ONE, None),
                ("DELETE", f"{CORE}/configmaps", None),
                ("GET", f"{CORE}/pods/p/log", None),
                ("POST", f"{CORE}/pods/p/exec?command=x", None),
                ("GET", f"{CORE}/secrets?watch=true", None),
                ("GET", "/apis/apps/v1/deployments", None),
            )
        ),
        Call("GET", f"{CORE}/pods", headers={"Impersonate-Group": "x"}),
        Call(
            "POST",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}},
        ),
        Call(
            "POST",
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            {"spec": {"user": "jane", "resourceAttributes": {"verb": "get", "resource": "pods"}}},
        ),
        Call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": {}}),
        Call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "nonsense"}}),
        Call(
            "POST",
            f"{RBAC}/namespaces/NAMESPACE/roles",
            obj("rbac.authorization.k8s.io/v1", "Role", "r", rules=RULES),
            headers=JANE,
        ),
    ],
    "paths": [
        Call(method, path)
        for method, path in (
            ("GET", "/nonsense"),
            ("GET", "/api/v2"),
            ("GET", "/api/v1/nonsense"),
            ("GET", "/apis/nonsense"),
            ("GET", "/apis/apps/v9/deployments"),
            ("GET", "/apis/apps/v1/nonsense"),
            ("GET", f"{CORE}/nodes"),
            ("GET", "/api/v1/nodes/nope"),
            ("PATCH", f"{CORE}/configmaps"),
            ("PUT", f"{CORE}/configmaps"),
            ("POST", "/version"),
            ("DELETE", "/api/v1/nodes/nope"),
            ("GET", "/readyz"),
            ("GET", "/livez"),
            ("GET", f"{CORE}/bindings"),
        )
    ],
    "limit-ranges": [
        Call("POST", f"{CORE}/limitranges", obj("v1", "LimitRange", "bounds", spec={"limits": BOUNDS})),
        *(
            Call("POST", f"{CORE}/pods", body)
            for body in (
                sized("defaults", requests={"memory": "100Mi"}),
                sized("most", limits={"cpu": "4", "memory": "4Gi"}),
                sized("least", requests={"cpu": "1m"}),
                sized("ratio", requests={"memory": "10Mi"}, limits={"memory": "1Gi"}),
                sized("sum", 2, limits={"cpu": "1", "memory": "2Gi"}),
                sized("beyond-default", requests={"cpu": "10k"}),
            )
        ),
    ],
    **{
        f"pod-security-{level}": [
            Call("PATCH", CORE, {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}}, MERGE),
            *(
                Call("POST", f"{CORE}/pods", body)
                for body in (pod("plain"), pod("windows", os={"name": "windows"}), pod("host-process", **HOST_PROCESS))
            ),
            Call("POST", f"{CORE}/pods", sized("several", 2)),
        ]
        for level in ("baseline", "restricted")
    },
}
