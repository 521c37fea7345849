"""``agnhost webhook``: admission webhooks that deny, wait or change objects, each by its path."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from typing import Any

from winready_sandbox.machine.process import Process
from winready_sandbox.programs import http1
from winready_sandbox.programs.agnhost import cobra, hooks
from winready_sandbox.programs.agnhost.golang import klog
from winready_sandbox.programs.http1 import Request, Response

Object = dict[str, Any]
Admit = Callable[[Object], Awaitable[Object]]
DELAY = 5.0
MARK, DENIED, KEPT = "webhook-e2e-test", "webhook-disallow", "webhook-nondeletable"
PODS = {"group": "", "version": "v1", "resource": "pods"}


async def main(process: Process, flags: cobra.Flags) -> int:
    """Serve until killed."""
    clock = process.container.clock

    async def slowly(_request: Object) -> Object:
        await clock.sleep(DELAY)
        return _allowed("this webhook allows all requests")

    admits: dict[str, Admit] = {
        "/always-allow-delay-5s": slowly,
        "/always-deny": _deny_all,
        "/add-label": _add_label,
        "/pods": _pods,
        "/pods/attach": _attaching,
        "/mutating-pods": _mutate_pods,
        "/configmaps": _data_of("configmap", "contains unwanted key and value"),
        "/mutating-configmaps": _mutate_data,
        "/custom-resource": _data_of("custom resource", "contains unwanted data"),
        "/mutating-custom-resource": _mutate_data,
        "/crd": _definitions,
    }
    return await hooks.run(process, flags, {path: _page(process, admit) for path, admit in admits.items()})


def _page(process: Process, admit: Admit) -> http1.Handler:
    async def page(request: Request) -> Response:
        kind = request.headers.get("content-type", "")
        if kind != "application/json":
            klog(process, f"contentType={kind}, expect application/json", level="E")
            return Response()
        try:
            review = json.loads(request.body)
            asked = review["request"]
        except (ValueError, KeyError, TypeError) as error:
            return http1.error(f"Request could not be decoded: {error}", 400)
        answer = {**(await admit(asked)), "uid": asked["uid"]}
        body = {"kind": "AdmissionReview", "apiVersion": review["apiVersion"], "response": answer}
        return Response(json.dumps(body), headers={"Content-Type": "application/json"})

    return page


def _allowed(message: str = "") -> Object:
    return {"allowed": True, "status": {"metadata": {}, "message": message}} if message else {"allowed": True}


def _denied(message: str = "", reason: str = "") -> Object:
    said = {"message": message, "reason": reason}
    return {"allowed": False, "status": {"metadata": {}, **{key: text for key, text in said.items() if text}}}


def _patched(path: str, value: object, op: str = "add") -> Object:
    patch = json.dumps([{"op": op, "path": path, "value": value}])
    return {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(patch.encode()).decode()}


async def _deny_all(_request: Object) -> Object:
    return _denied("this webhook denies all requests")


async def _add_label(request: Object) -> Object:
    labels = request["object"]["metadata"].get("labels") or {}
    if not labels:
        return _patched("/metadata/labels", {"added-label": "yes"})
    if labels.get("added-label") == "yes":
        return _allowed()
    return _patched("/metadata/labels/added-label", "yes", "replace" if "added-label" in labels else "add")


async def _pods(request: Object) -> Object:
    if request["resource"] != PODS:
        return _denied(f"expect resource to be {PODS}")
    pod = request["object"]
    label = (pod["metadata"].get("labels") or {}).get(MARK)
    if label == "wait-forever":
        await asyncio.Event().wait()
    words = ["the pod contains unwanted label;"] if label == DENIED else []
    unwanted = [each for each in pod["spec"]["containers"] if DENIED in each["name"]]
    words += ["the pod contains unwanted container name;"] * len(unwanted)
    return _denied(" ".join(words)) if words else _allowed()


async def _attaching(request: Object) -> Object:
    options = request.get("object") or {}
    if request["name"] != "to-be-attached-pod" or not options.get("stdin") or options.get("container") != "container1":
        return _allowed()
    return _denied("attaching to pod 'to-be-attached-pod' is not allowed")


async def _mutate_pods(request: Object) -> Object:
    pod, name = request["object"], "webhook-added-init-container"
    there = any(each["name"] == name for each in pod["spec"].get("initContainers") or [])
    if pod["metadata"].get("name") != "webhook-to-be-mutated" or there:
        return _allowed()
    return _patched("/spec/initContainers", [{"image": "webhook-added-image", "name": name, "resources": {}}])


def _data_of(what: str, unwanted: str) -> Admit:
    async def admit(request: Object) -> Object:
        deletes = request["operation"] == "DELETE"
        found = (request["oldObject" if deletes else "object"].get("data") or {}).get(MARK)
        if found == DENIED and request["operation"] in ("CREATE", "UPDATE"):
            return _denied(reason=f"the {what} {unwanted}")
        if found == KEPT and deletes:
            return _denied(reason=f"the {what} cannot be deleted because it contains unwanted key and value")
        return _allowed()

    return admit


async def _mutate_data(request: Object) -> Object:
    data = request["object"].get("data") or {}
    if data.get("mutation-stage-1") == "yes":
        return _patched("/data/mutation-stage-2", "yes")
    return _patched("/data/mutation-stage-1", "yes") if data.get("mutation-start") == "yes" else _allowed()


async def _definitions(request: Object) -> Object:
    labels = request["object"]["metadata"].get("labels") or {}
    return _denied("the crd contains unwanted label") if labels.get(MARK) == DENIED else _allowed()
