"""``agnhost crd-conversion-webhook``: turns ``hostPort`` of stable.example.com/v1 into ``host`` and ``port`` of v2."""

from __future__ import annotations

import json
from typing import Any

from winready_sandbox.machine.process import Process
from winready_sandbox.programs import http1
from winready_sandbox.programs.agnhost import cobra, hooks
from winready_sandbox.programs.http1 import Request, Response

Object = dict[str, Any]
V1, V2 = "stable.example.com/v1", "stable.example.com/v2"


class CannotConvert(Exception):
    """An object that is not what it should be."""


async def main(process: Process, flags: cobra.Flags) -> int:
    """Serve until killed."""
    return await hooks.run(process, flags, {"/crdconvert": _page})


async def _page(request: Request) -> Response:
    kind = request.headers.get("content-type", "")
    if kind != "application/json":
        return http1.error(f"invalid Content-Type header `{kind}`", 400)
    try:
        review = json.loads(request.body)
        asked = review["request"]
    except (ValueError, KeyError, TypeError) as error:
        return http1.error(f"failed to deserialize body with error {error}", 400)
    answer: Object = {"uid": asked["uid"]}
    try:
        answer["convertedObjects"] = [converted(each, asked["desiredAPIVersion"]) for each in asked["objects"]]
        answer["result"] = {"metadata": {}, "status": "Success"}
    except CannotConvert as error:
        answer["result"] = {"metadata": {}, "status": "Failure", "message": str(error)}
    body = {"kind": "ConversionReview", "apiVersion": review["apiVersion"], "response": answer}
    return Response(json.dumps(body), headers={"Content-Type": "application/json"})


def converted(obj: Object, version: str) -> Object:
    """The object in another version."""
    rest = {**obj, "apiVersion": version}
    match obj["apiVersion"], version:
        case (old, new) if old == new:
            raise CannotConvert(f"conversion from a version to itself should not call the webhook: {new}")
        case "stable.example.com/v1", "stable.example.com/v2":
            if "hostPort" in rest:
                whole = rest.pop("hostPort")
                parts = whole.split(":")
                if len(parts) != 2:
                    raise CannotConvert(f"invalid hostPort value `{whole}`")
                rest |= {"host": parts[0], "port": parts[1]}
        case "stable.example.com/v2", "stable.example.com/v1":
            if "host" in rest or "port" in rest:
                rest["hostPort"] = f"{rest.pop('host', '')}:{rest.pop('port', '')}"
        case (old, new):
            raise CannotConvert(f'unexpected conversion version "{new if old in (V1, V2) else old}"')
    return rest
