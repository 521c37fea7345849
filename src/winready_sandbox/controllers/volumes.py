"""Claims bind to volumes that somebody made, by hand or a provisioner; until then they stay Pending."""

from __future__ import annotations

from winready_sandbox import quantity
from winready_sandbox.api.objects import Object
from winready_sandbox.controllers.controller import Controller
from winready_sandbox.controllers.objects import Key, deleting, either, key_of, labels_of, uid_of
from winready_sandbox.controllers.selecting import label_selector

COMPLETED = "pv.kubernetes.io/bind-completed"
BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


class VolumeBinder(Controller):
    """Binds claims to volumes, and frees volumes whose claim is gone."""

    name = "persistentvolume-controller"
    kind = "PersistentVolumeClaim"
    api_version = "v1"
    resource = "persistentvolumeclaims"

    def watch(self) -> None:
        """Follow claims, volumes and storage classes."""
        self.claims = self.informers.of("persistentvolumeclaims")
        self.volumes = self.informers.of("persistentvolumes")
        self.classes = self.informers.of("storageclasses")
        self.claims.add_handler(self._claim_changed)
        self.volumes.add_handler(self._volume_changed)

    def _claim_changed(self, old: Object | None, new: Object | None) -> None:
        self.enqueue(old, new)
        claim = either(old, new)
        name = claim["spec"].get("volumeName")
        if new is None and name:
            self.queue.add(("", name))

    def _volume_changed(self, old: Object | None, new: Object | None) -> None:
        """A volume's key has no namespace; a new one may be what pending claims wait for."""
        if new is not None:
            self.queue.add(key_of(new))
        for claim in self.claims:
            if (claim.get("status") or {}).get("phase") != "Bound":
                self.queue.add(key_of(claim))

    def sync(self, key: Key) -> None:
        """Bring one claim or one volume up to date."""
        if not key[0]:
            volume = self.volumes.get(key)
            if volume is not None and not deleting(volume):
                self._sync_volume(volume)
            return
        claim = self.claims.get(key)
        if claim is None or deleting(claim):
            return
        name = claim["spec"].get("volumeName")
        volume = self.volumes.get(("", name)) if name else self._match(claim)
        if volume is None:
            self._wait(claim)
        elif _claimed_by(volume, claim) or not volume["spec"].get("claimRef"):
            self._bind(claim, volume)

    def _sync_volume(self, volume: Object) -> None:
        reference = volume["spec"].get("claimRef")
        if not reference:
            self._set_phase("persistentvolumes", volume, "Available")
            return
        claim = self.claims.get((reference["namespace"], reference["name"]))
        if claim is not None and reference.get("uid") in (None, uid_of(claim)):
            self.queue.add(key_of(claim))
        elif reference.get("uid"):
            self._release(volume)

    def _release(self, volume: Object) -> None:
        """What its policy says becomes of a volume whose claim is gone."""
        if volume["spec"].get("persistentVolumeReclaimPolicy", "Retain") == "Delete":
            self.informers.delete("persistentvolumes", volume)
        else:
            self._set_phase("persistentvolumes", volume, "Released")

    def _match(self, claim: Object) -> Object | None:
        """The smallest volume that does what the claim asks for; one reserved for it comes first."""
        fitting = [volume for volume in self.volumes if self._suits(volume, claim)]
        return min(
            fitting, key=lambda v: (not v["spec"].get("claimRef"), _size(v), v["metadata"]["name"]), default=None
        )

    def _suits(self, volume: Object, claim: Object) -> bool:
        spec, wanted = volume["spec"], claim["spec"]
        if deleting(volume) or (spec.get("claimRef") and not _claimed_by(volume, claim)):
            return False
        if (spec.get("storageClassName") or "") != self._class_of(claim):
            return False
        if (spec.get("volumeMode") or "Filesystem") != (wanted.get("volumeMode") or "Filesystem"):
            return False
        if not set(wanted.get("accessModes") or ()) <= set(spec.get("accessModes") or ()):
            return False
        selector = wanted.get("selector")
        if selector and not label_selector(selector)(labels_of(volume)):
            return False
        request = ((wanted.get("resources") or {}).get("requests") or {}).get("storage", "0")
        return _size(volume) >= quantity.parse(request)

    def _class_of(self, claim: Object) -> str:
        named = claim["spec"].get("storageClassName")
        if named is not None:
            return str(named)
        for entry in self.classes:
            if (entry["metadata"].get("annotations") or {}).get(DEFAULT_CLASS) == "true":
                return str(entry["metadata"]["name"])
        return ""

    def _bind(self, claim: Object, volume: Object) -> None:
        if not _claimed_by(volume, claim) or not (volume["spec"].get("claimRef") or {}).get("uid"):
            meta = claim["metadata"]
            reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": meta["name"]}
            reference |= {name: meta[name] for name in ("namespace", "uid", "resourceVersion")}
            annotations = {} if volume["spec"].get("claimRef") else {BY_CONTROLLER: "yes"}
            patch = {"metadata": {"annotations": annotations}, "spec": {"claimRef": reference}}
            volume = self.informers.patch("persistentvolumes", volume["metadata"]["name"], patch)
        self._set_phase("persistentvolumes", volume, "Bound")
        namespace, name = key_of(claim)
        if claim["spec"].get("volumeName") != volume["metadata"]["name"] or COMPLETED not in _annotations(claim):
            marks = {COMPLETED: "yes", **({} if claim["spec"].get("volumeName") else {BY_CONTROLLER: "yes"})}
            patch = {"metadata": {"annotations": marks}, "spec": {"volumeName": volume["metadata"]["name"]}}
            claim = self.informers.patch(self.resource, name, patch, namespace)
        status = {
            "phase": "Bound",
            "accessModes": volume["spec"].get("accessModes") or [],
            "capacity": volume["spec"].get("capacity") or {},
        }
        self.write_status(claim, status)

    def _wait(self, claim: Object) -> None:
        phase = (claim.get("status") or {}).get("phase")
        if phase == "Bound":
            self.write_status(claim, {"phase": "Lost"})
            self.tell(
                claim,
                "ClaimLost",
                "Bound claim has lost its PersistentVolume. Data on the volume is lost!",
                warning=True,
            )
            return
        self.write_status(claim, {"phase": "Pending"})
        if phase in (None, "Pending") and not claim["spec"].get("volumeName"):
            self._tell_why(claim)

    def _tell_why(self, claim: Object) -> None:
        name = self._class_of(claim)
        if not name:
            message = "no persistent volumes available for this claim and no storage class is set"
            self.tell(claim, "FailedBinding", message)
            return
        storage = self.classes.get(("", name))
        if storage is None:
            message = f'storageclass.storage.k8s.io "{name}" not found'
            self.tell(claim, "ProvisioningFailed", message, warning=True)
            return
        message = (
            f"Waiting for a volume to be created either by the external provisioner '{storage['provisioner']}' or "
            "manually by the system administrator. If volume creation is delayed, please verify that the provisioner "
            "is running and correctly registered."
        )
        self.tell(claim, "ExternalProvisioning", message)

    def _set_phase(self, resource: str, obj: Object, phase: str) -> None:
        if (obj.get("status") or {}).get("phase") != phase:
            self.informers.patch(resource, obj["metadata"]["name"], {"status": {"phase": phase}}, subresource="status")


def _size(volume: Object) -> float:
    return float(quantity.parse((volume["spec"].get("capacity") or {}).get("storage", "0")))


def _annotations(obj: Object) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}


def _claimed_by(volume: Object, claim: Object) -> bool:
    reference = volume["spec"].get("claimRef") or {}
    same = (reference.get("namespace"), reference.get("name")) == key_of(claim)
    return same and reference.get("uid") in (None, "", uid_of(claim))
