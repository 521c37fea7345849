"""JUnit XML: one suite per file, one case per finding, for the many CI systems that show nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from xml.sax.saxutils import escape, quoteattr

from winready.lint.catalog import rank
from winready.lint.finding import Finding, Summary, Unreadable


def render(results: Iterable[Finding | Unreadable], summary: Summary, fail_on: str) -> Iterator[str]:
    """Findings below ``fail_on`` are passed cases whose output tells them."""
    files: dict[str, list[Finding | Unreadable]] = {}
    for one in results:
        if isinstance(one, Unreadable) or not one.suppressed:
            files.setdefault(one.path, []).append(one)
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="winready lint">\n'
    if not files:
        yield '  <testsuite name="winready lint" tests="1" failures="0" errors="0">\n'
        yield '    <testcase classname="winready lint" name="no findings"/>\n  </testsuite>\n'
    for path, found in files.items():
        failures = sum(isinstance(one, Finding) and _fails(one, fail_on) for one in found)
        errors = sum(isinstance(one, Unreadable) for one in found)
        counts = f'tests="{len(found)}" failures="{failures}" errors="{errors}"'
        yield f"  <testsuite name={_attribute(path)} {counts}>\n"
        for one in found:
            yield from _case(one, fail_on)
        yield "  </testsuite>\n"
    yield "</testsuites>\n"


def _fails(one: Finding, fail_on: str) -> bool:
    return fail_on != "never" and rank(one.severity) >= rank(fail_on)


def _case(one: Finding | Unreadable, fail_on: str) -> Iterator[str]:
    place = f"{one.path}:{one.line}:{one.column}"
    if isinstance(one, Unreadable):
        yield f"    <testcase classname={_attribute(one.path)} name={_attribute(f'readable {place}')}>"
        yield f'<error type="unreadable" message={_attribute(one.message)}/></testcase>\n'
        return
    name = f"{one.rule} {one.object} {place}".replace("  ", " ")
    yield f"    <testcase classname={_attribute(one.path)} name={_attribute(name)}>"
    text = f"{place}\n{one.message}\nfix: {one.fix}"
    if _fails(one, fail_on):
        yield f"<failure type={_attribute(one.rule)} message={_attribute(one.message)}>{escape(_clean(text))}</failure>"
    else:
        yield f"<system-out>{escape(_clean(text))}</system-out>"
    yield "</testcase>\n"


def _attribute(text: str) -> str:
    return quoteattr(_clean(text))


def _clean(text: str) -> str:
    """Without the characters that XML cannot carry."""
    return "".join(
        c if c in "\t\n\r" or (c >= " " and c.isprintable()) or c == " " else "\N{REPLACEMENT CHARACTER}" for c in text
    )
