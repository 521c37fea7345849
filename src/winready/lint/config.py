"""The configuration file ``.winready.yaml``: what a project always wants, so that nobody has to type it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from winready.lint import catalog
from winready.lint.catalog import SEVERITIES, Severity
from winready.lint.suppress import Ignore
from winready.spec.yamlfile import Document, YamlError, decode, read
from winready.spec.yamlfile import Path as FieldPath

NAME = ".winready.yaml"

_TEXTS = ("kubernetes", "fail-on", "severity", "cni", "namespace")
_LISTS = ("windows-builds", "windows-taints", "exclude")
_CHOICES = {"severity": SEVERITIES, "fail-on": (*SEVERITIES, "never")}
_KEYS = (*_TEXTS, *_LISTS, "windows-nodes", "ignore", "rules")


class ConfigError(Exception):
    """A configuration that cannot be used: the file, the line and what to write instead."""


@dataclass(slots=True)
class Config:
    """The ``lint`` part of the file."""

    texts: dict[str, str] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=dict)
    windows_nodes: bool = False
    ignores: list[Ignore] = field(default_factory=list)
    severities: dict[str, Severity] = field(default_factory=dict)


def find(start: Path) -> Path | None:
    """The nearest configuration file, from a folder upwards."""
    for folder in (start, *start.parents):
        if (folder / NAME).is_file():
            return folder / NAME
    return None


def load(path: Path) -> Config:
    """Read and check a configuration file."""
    try:
        documents = list(read(decode(path.read_bytes())))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except YamlError as error:
        raise ConfigError(f"{path}:{error.line}:{error.column}: {error.problem}") from error
    for document in documents:
        if isinstance(document, YamlError):
            raise ConfigError(f"{path}:{document.line}:{document.column}: {document.problem}")
        return _Reader(path, document).config()
    return Config()


class _Reader:
    def __init__(self, path: Path, document: Document) -> None:
        self.path, self.document = path, document

    def error(self, path: FieldPath, problem: str) -> ConfigError:
        line, column = self.document.text.position(self.document.nearest(path).key)
        return ConfigError(f"{self.path}:{line}:{column}: {problem}")

    def config(self) -> Config:
        root = self.document.value
        if not isinstance(root, dict) or not isinstance(root.get("lint", {}), dict):
            raise self.error((), "expected a mapping with the key lint")
        lint = root.get("lint") or {}
        config = Config()
        for key, value in lint.items():
            at = ("lint", key)
            if key not in _KEYS:
                raise self.error(at, f"unknown key {key}{_hint(key, _KEYS)}")
            if key in _TEXTS:
                if not isinstance(value, str):
                    raise self.error(at, f'{key} must be a text; put it in quotes: {key}: "{value}"')
                if key in _CHOICES and value not in _CHOICES[key]:
                    raise self.error(at, f"{key} must be one of {', '.join(_CHOICES[key])}")
                config.texts[key] = value
            elif key in _LISTS:
                config.lists[key] = [str(one) for one in self._list(at, value)]
            elif key == "windows-nodes":
                if not isinstance(value, bool):
                    raise self.error(at, "windows-nodes must be true or false")
                config.windows_nodes = value
        config.ignores = list(self._ignores(lint.get("ignore") or []))
        rules = lint.get("rules") or {}
        if not isinstance(rules, dict):
            raise self.error(("lint", "rules"), "rules must be a mapping from rules to severities")
        for rule, severity in rules.items():
            self._known(("lint", "rules", rule), rule)
            if not isinstance(severity, str) or severity not in SEVERITIES:
                raise self.error(
                    ("lint", "rules", rule), f"the severity of {rule} must be one of {', '.join(SEVERITIES)}"
                )
            config.severities[rule] = severity
        return config

    def _list(self, at: FieldPath, value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise self.error(at, f"{at[-1]} must be a list")
        return value

    def _ignores(self, value: Any) -> Iterator[Ignore]:
        for index, entry in enumerate(self._list(("lint", "ignore"), value)):
            at = ("lint", "ignore", index)
            if not isinstance(entry, dict) or not isinstance(entry.get("rule"), str):
                raise self.error(at, "each entry of ignore needs a rule and a reason")
            self._known((*at, "rule"), entry["rule"])
            if not isinstance(entry.get("reason"), str) or not entry["reason"].strip():
                raise self.error(at, f"say why {entry['rule']} is ignored: add a reason")
            paths = self._list((*at, "paths"), entry.get("paths", []))
            yield Ignore(entry["rule"], entry["reason"], tuple(str(one) for one in paths))

    def _known(self, at: FieldPath, rule: str) -> None:
        if rule not in catalog.load():
            raise self.error(at, f"there is no rule {rule}{_hint(rule, tuple(catalog.load()))}")


def _hint(word: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {near[0]}?" if near else f"; known are {', '.join(known)}" if len(known) < 20 else ""
