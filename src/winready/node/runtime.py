"""The settings of containerd: written whole, since every version edits differently what it would print itself."""

from __future__ import annotations

from winready.node.parameters import Parameters
from winready.spec.versions import release_order


def runtime_settings(parameters: Parameters) -> str:
    """``config.toml`` for the version of containerd in the parameters; strings are literal, nothing in them escapes."""
    paths, version = parameters.paths, release_order(parameters.containerd.version)
    programs, configuration = _literal(_slashes(paths.cni_binaries)), _literal(_slashes(paths.cni_configuration))
    lines = [
        f"version = {3 if version >= (2,) else 2}",
        "root = " + _literal(paths.containerd_data + r"\root"),
        "state = " + _literal(paths.containerd_data + r"\state"),
        "",
        "[grpc]",
        r"address = '\\.\pipe\containerd-containerd'",
        "",
    ]
    if version < (2,):
        plugin = '"io.containerd.grpc.v1.cri"'
        lines += [f"[plugins.{plugin}]", f"sandbox_image = {_literal(parameters.images.pause)}", ""]
        lines += [f"[plugins.{plugin}.cni]", f"bin_dir = {programs}", f"conf_dir = {configuration}"]
        registry = f"[plugins.{plugin}.registry]"
    else:
        lines += ['[plugins."io.containerd.cri.v1.images".pinned_images]']
        lines += [f"sandbox = {_literal(parameters.images.pause)}", ""]
        # The list came with 2.1.
        folders = f"bin_dirs = [{programs}]" if version >= (2, 1) else f"bin_dir = {programs}"
        lines += ['[plugins."io.containerd.cri.v1.runtime".cni]', folders, f"conf_dir = {configuration}"]
        registry = '[plugins."io.containerd.cri.v1.images".registry]'
    if parameters.containerd.mirrors:
        lines += ["", registry, "config_path = " + _literal(paths.containerd + r"\certs.d")]
    return "\n".join(lines) + "\n"


def _slashes(path: str) -> str:
    return path.replace("\\", "/")


def _literal(text: str) -> str:
    if "'" in text or "\n" in text:
        raise ValueError(f"{text!r} cannot be a literal string")
    return f"'{text}'"
