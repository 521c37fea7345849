"""``winready matrix``: what does Windows support in this version?"""

from __future__ import annotations

import click

_EXAMPLES = """
\b
Examples:
  winready matrix --kubernetes 1.34
  winready matrix --kubernetes 1.34 --feature "active directory"
  winready matrix --kubernetes 1.30-1.36 --feature host-process
  winready matrix --diff 1.30 1.36          an upgrade plan
  winready matrix -o html > support.html
"""


@click.command(epilog=_EXAMPLES)
@click.option("--kubernetes", metavar="V|RANGE", help="Version such as 1.34, or a range such as 1.30-1.36.")
@click.option("--feature", "queries", multiple=True, metavar="F", help="Id of a feature, or words of its name.")
@click.option("--diff", nargs=2, metavar="FROM TO", help="What an upgrade changes for Windows.")
@click.option("-o", "--output", type=click.Choice(["text", "json", "markdown", "html"]), default="text")
def matrix(kubernetes: str | None, queries: tuple[str, ...], diff: tuple[str, str] | None, output: str) -> None:
    """Tell what Windows nodes support: yes, with limits, or never; stage, gate, and since when."""
    from winready.lint import matrix as data
    from winready.lint.output import matrix as pages
    from winready.lint.versions import CURRENT, VersionError, parse_minor, parse_range

    if diff and kubernetes:
        raise click.UsageError("--diff names both versions; leave --kubernetes out.")
    features: list[data.Feature] = []
    for query in queries:
        found = data.find(query)
        if not found:
            raise click.UsageError(f"No feature matches {query!r}. 'winready matrix' lists them all.")
        features += [feature for feature in found if feature not in features]
    chosen = features or list(data.load())
    try:
        if diff:
            before, after = parse_minor(diff[0]), parse_minor(diff[1])
            page = pages.diff_page(before, after, chosen, with_rules=not features)
        else:
            versions = parse_range(kubernetes or f"1.{CURRENT}")
            if features and output == "text":
                texts = [pages.detail_text(feature, versions) for feature in features]
                click.echo("\n".join(texts), nl=False)
                return
            page = pages.support_page(chosen, versions)
    except VersionError as error:
        raise click.UsageError(str(error)) from error
    pens = {"text": pages.as_text, "json": pages.as_json, "markdown": pages.as_markdown, "html": pages.as_html}
    for part in pens[output](page):
        click.echo(part, nl=False)
