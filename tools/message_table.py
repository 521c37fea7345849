"""Writes the table of API types (names, protobuf numbers, shapes) from the struct tags of k8s.io/api.

    python tools/message_table.py ~/go/pkg/mod/k8s.io/api@v0.36.3 ~/go/pkg/mod/k8s.io/apimachinery@v0.36.3

One line per type; a field is ``NAME=NUMBER`` and its type. Before the type: ``*`` a list, ``%`` a map, ``+`` a struct
written inline. After it: ``?`` zero values count (a pointer), ``!`` zero values are written out (no omitempty).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "src/winready_sandbox/api/data/types.txt"
GROUPS = ["core", "apps", "batch", "networking", "discovery", "coordination", "rbac", "policy", "storage", "scheduling"]
GROUPS += ["node", "events", "authentication", "authorization", "certificates", "admissionregistration", "autoscaling"]
PACKAGES = (*(f"{group}/v1" for group in GROUPS), "autoscaling/v2")
STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.M | re.S)
ALIAS = re.compile(r"^type (\w+) =? ?([\w.\[\]*]+)$", re.M)
FIELD = re.compile(r"^\t(?:(\w+)\s+)?([\w.\[\]*]+)\s+`json:\"([^\"]*)\"(?:[^`\n]*? protobuf:\"\w+,(\d+))?", re.M)
SCALARS = {"string": "string", "bool": "bool", "[]byte": "bytes", "float64": "double"}
SCALARS |= {"int32": "int", "uint32": "int", "uint8": "int", "int": "int", "int64": "long", "uint64": "long"}
SPECIAL = {"metav1.Time", "metav1.MicroTime", "metav1.Duration", "metav1.FieldsV1", "resource.Quantity"}
SPECIAL |= {"intstr.IntOrString", "runtime.RawExtension", "types.UID"}


def main(api: Path, machinery: Path) -> None:
    """Read the sources and write the table."""
    sources = {name: (api / name / "types.go").read_text() for name in PACKAGES}
    sources["meta/v1"] = (machinery / "pkg/apis/meta/v1/types.go").read_text()
    aliases = {f"{package}.{m[1]}": m[2] for package, text in sources.items() for m in ALIAS.finditer(text)}
    lines: dict[str, list[str]] = {}
    uses: dict[str, set[str]] = {}
    kinds: list[str] = []
    for package, text in sources.items():
        for struct in STRUCT.finditer(text):
            name = f"{package}.{struct[1]}"
            fields, used, is_kind = [], set(), False
            for go_name, go_type, json, number in FIELD.findall(struct[2]):
                label, _, options = json.partition(",")
                if go_type in ("metav1.TypeMeta", "TypeMeta"):
                    is_kind = True
                    continue
                if label == "-" or not number:
                    continue
                inline = "inline" in options
                shape, target = resolve(go_type, package, aliases)
                used.add(target)
                label = label or go_name or go_type.rpartition(".")[2]
                mark = "?" if go_type.startswith("*") else "" if "omitempty" in options or inline else "!"
                fields.append(f"{label}={number}{'+' if inline else ''}{shape}{target}{mark}")
            if fields or is_kind:
                lines[name] = fields
                uses[name] = used
                if (is_kind and not name.endswith(("List", "Options"))) or name.endswith(".DeleteOptions"):
                    kinds.append(name)
    reached: set[str] = set()
    queue = list(kinds)
    while queue:
        name = queue.pop()
        if name not in reached and name in lines:
            reached.add(name)
            queue += uses[name]
    text = "".join(
        f"{'kind' if name in kinds else 'type'} {name} {' '.join(lines[name])}".rstrip() + "\n"
        for name in lines
        if name in reached
    )
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(text)


def resolve(go_type: str, package: str, aliases: dict[str, str]) -> tuple[str, str]:
    """The shape mark and the type that a Go type stands for."""
    plain = go_type.removeprefix("*")
    if plain in SCALARS:
        return "", SCALARS[plain]
    if plain.startswith("[]"):
        return "*", resolve(plain[2:], package, aliases)[1]
    if plain.startswith("map["):
        _, target = resolve(plain.partition("]")[2], package, aliases)
        return "%", target
    if plain in SPECIAL:
        return "", "string" if plain == "types.UID" else plain.rpartition(".")[2]
    prefix, _, name = plain.rpartition(".")
    if prefix:
        package = {"v1": "core/v1", "corev1": "core/v1", "metav1": "meta/v1", "apiv1": "core/v1"}.get(prefix, package)
        if prefix == "authenticationv1":
            package = "authentication/v1"
    if name in ("Time", "MicroTime", "Duration", "FieldsV1", "UID") and package == "meta/v1":
        return "", name
    full = f"{package}.{name}"
    if full in aliases:
        return resolve(aliases[full], package, aliases)
    return "", full


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
