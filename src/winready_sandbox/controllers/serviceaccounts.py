"""What every namespace gets: its default service account and the certificate of the cluster's authority."""

from __future__ import annotations

from winready_sandbox.api.errors import ApiError
from winready_sandbox.api.objects import Object
from winready_sandbox.controllers.controller import Controller
from winready_sandbox.controllers.objects import Key, deleting, either

ROOT_CA = "kube-root-ca.crt"
DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of "
    "Kubernetes clusters."
)


class ServiceAccountController(Controller):
    """Keeps ``default`` and ``kube-root-ca.crt`` in every namespace."""

    name = "serviceaccount-controller"
    kind = "Namespace"
    api_version = "v1"
    resource = "namespaces"

    def watch(self) -> None:
        """Follow namespaces, and the two objects in case somebody deletes or edits them."""
        self.namespaces = self.informers.of("namespaces")
        self.accounts = self.informers.of("serviceaccounts")
        self.configs = self.informers.of("configmaps")
        self.namespaces.add_handler(self.enqueue)
        self.accounts.add_handler(lambda old, new: self._changed(old, new, "default"))
        self.configs.add_handler(lambda old, new: self._changed(old, new, ROOT_CA))

    def _changed(self, old: Object | None, new: Object | None, name: str) -> None:
        meta = either(old, new)["metadata"]
        if meta["name"] == name:
            self.queue.add(("", meta["namespace"]))

    def sync(self, key: Key) -> None:
        """Make both objects as they should be."""
        namespace = self.namespaces.get(key)
        if namespace is None or deleting(namespace):
            return
        name = key[1]
        if self.accounts.get((name, "default")) is None:
            account: Object = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
            self._create("serviceaccounts", account, name)
        data = {"ca.crt": self.context.root_ca}
        config = self.configs.get((name, ROOT_CA))
        if config is None:
            meta = {"name": ROOT_CA, "annotations": {"kubernetes.io/description": DESCRIPTION}}
            self._create("configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}, name)
        elif config.get("data") != data:
            self.informers.patch("configmaps", ROOT_CA, {"data": data}, name)

    def _create(self, resource: str, obj: Object, namespace: str) -> None:
        try:
            self.informers.create(resource, obj, namespace)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
