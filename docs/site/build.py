#!/usr/bin/env python3
"""Builds the site from `docs`, the results of the benchmark and the sources, into `target/site/html`.

A link between Markdown files is the same in the repository and on the site: here it is turned into the page that the
file becomes, or into its address on GitHub. Every page is also written as Markdown, and `llms.txt` lists them. A link
that leads nowhere is an error.

usage: build.py [--without typescript] [--without rust]
"""

import argparse
import os
import posixpath
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import yaml

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "target" / "site"
SOURCE = "https://github.com/mcp-resources/mcp-resources/blob/main"
RESULTS = "tests/bench/RESULTS.md"
PAGES = "docs/site/pages"
GUIDES = {
    "Start": ["first-server", "serve", "command", "browse"],
    "Write": ["templates", "lists", "tools", "subscriptions", "streaming", "errors", "testing"],
    "Sources": [
        *("files", "git", "config", "metrics", "docs", "rag"),
        *("db", "skills", "results", "api", "upstream", "clock-and-memory"),
    ],
    "Run": ["http", "auth", "guard", "access", "audit", "deployment", "replicas", "security"],
    "Read": ["client", "gateway"],
    "Keep or move": ["attach", "from-fastmcp", "from-typescript-sdk"],
}
"""The guides of the site's navigation, by the headings of the README's table. A guide that is missing is an error."""
_LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")
_FENCE = re.compile(r"^(```.*?^```$)", re.MULTILINE | re.DOTALL)
_INFO = re.compile(r"^```(\w+) ([^\n`]+)$", re.MULTILINE)
_HEAD = re.compile(r"^\|.*\|$(?=\n\|[ :-]*---)", re.MULTILINE)
_ROWS = re.compile(r"<!-- rows: (\S+) (\S+) \| ([^>]+?) -->")
_GENERATED = ("reference/typescript/", "reference/rust/")


def main() -> int:
    """Builds everything; returns the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--without", action="append", default=[], choices=["typescript", "rust"])
    without = parser.parse_args().without
    begin = time.monotonic()
    shutil.rmtree(OUT, ignore_errors=True)
    pages = copied(without)
    configuration = yaml.safe_load((ROOT / "docs/site/mkdocs.yml").read_text("utf-8"))
    configuration["nav"] = navigation()
    (OUT / "mkdocs.yml").write_text(yaml.safe_dump(configuration, allow_unicode=True, sort_keys=False), "utf-8")
    zensical = Path(sys.executable).with_name("zensical")
    environment = os.environ | {"PYTHONWARNINGS": "ignore"}
    subprocess.run([zensical, "build", "--clean", "-f", OUT / "mkdocs.yml"], cwd=OUT, check=True, env=environment)
    html = OUT / "html"
    if "typescript" not in without:
        typescript(html / "reference" / "typescript")
    if "rust" not in without:
        rust(html / "reference" / "rust")
    for page in pages:
        shutil.copyfile(OUT / "docs" / page, html / page)
    (html / "llms.txt").write_text(llms(pages), "utf-8")
    wrong = dead_links(html)
    for line in wrong:
        print(line, file=sys.stderr)
    files = [path for path in html.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files) / 1e6
    print(f"{len(pages)} pages, {len(files)} files, {size:.1f} MB, {time.monotonic() - begin:.1f} s, in {html}")
    return 1 if wrong else 0


def site_path(path: str) -> str | None:
    """The path on the site of a file of the repository; `None` if it is not there."""
    if path.startswith(f"{PAGES}/"):
        return path.removeprefix(f"{PAGES}/")
    if path == RESULTS:
        return "results.md"
    if path.startswith("tests/bench/plots/"):
        return path.removeprefix("tests/bench/")
    if path.startswith("docs/design/") or path.startswith("docs/images/"):
        return path.removeprefix("docs/")
    if posixpath.dirname(path) == "docs" and path.endswith(".md"):
        return f"guides/{posixpath.basename(path)}"
    return None


def copied(without: list[str]) -> list[str]:
    """Copies what the site is made of. Returns the paths of its Markdown pages."""
    sources = [RESULTS, *(f"tests/bench/plots/{path.name}" for path in (ROOT / "tests/bench/plots").glob("*.svg"))]
    sources += [str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md")]
    for folder in ("docs/design", "docs/images", PAGES):
        sources += [str(path.relative_to(ROOT)) for path in (ROOT / folder).rglob("*") if path.is_file()]
    pages = []
    for source in sorted(sources):
        goal = site_path(source)
        if goal is None:
            continue
        target = OUT / "docs" / goal
        target.parent.mkdir(parents=True, exist_ok=True)
        if not goal.endswith(".md"):
            shutil.copyfile(ROOT / source, target)
            continue
        text = (ROOT / source).read_text("utf-8")
        if goal == "reference/index.md":
            for name in without:
                text = re.sub(rf'<a href="{name}/[^"]*">(\w+)</a>', r"\1, not built here", text)
        text = _ROWS.sub(lambda found: measured(found[1], found[2], found[3]), text)
        # An empty head of a column says nothing to a screen reader.
        text = _HEAD.sub(lambda found: re.sub(r"\|\s*(?=\|)", "| note ", found[0]), text)
        target.write_text(rewritten(text, source, goal), "utf-8")
        pages.append(goal)
    return pages


def rewritten(text: str, source: str, goal: str) -> str:
    """Links for the site. Names of files behind the language of a block become titles."""

    def link(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), found[1]))
        anchor = found[2] or ""
        on_site = site_path(path) or {"README.md": "index.md", "tests/bench/README.md": None}.get(path)
        if on_site is None:
            return f"{SOURCE}/{path}{anchor}"
        if path == "README.md":
            anchor = ""
        return posixpath.relpath(on_site, posixpath.dirname(goal) or ".") + anchor

    parts = _FENCE.split(text)
    for at, part in enumerate(parts):
        if part.startswith("```"):
            parts[at] = _INFO.sub(r'```\1 title="\2"', re.sub(r"^```rust,\w+", "```rust", part))
        else:
            parts[at] = _LINK.sub(link, part)
    return "".join(parts)


def measured(workload: str, revision: str, names: str) -> str:
    """The rows of some servers in a table of the results, below its title."""
    text = (ROOT / RESULTS).read_text("utf-8")
    sections = re.split(r"^## ", text, flags=re.MULTILINE)
    found = [one for one in sections if one.startswith(f"{workload}: ") and f"({revision})" in one.split("\n")[0]]
    if len(found) != 1:
        raise SystemExit(f"{RESULTS} has no table {workload} ({revision})")
    title = found[0].split("\n")[0]
    rows = [line for line in found[0].split("\n") if line.startswith("|")]
    wanted = [name.strip() for name in names.split(",")]
    kept = [row for row in rows[2:] if names == "*" or row.split("|")[1].strip() in wanted]
    if names != "*" and len(kept) != len(wanted):
        raise SystemExit(f"{RESULTS}: {workload} ({revision}) has no row of each of {names}")
    columns = [at for at in range(1, rows[0].count("|")) if "÷" not in rows[0].split("|")[at]]

    def cut(row: str) -> str:
        cells = row.split("|")
        return "| " + " | ".join(cells[at].strip() for at in columns) + " |"

    return "\n".join([f"**{title}**", "", *map(cut, rows[:2]), *map(cut, kept)])


def navigation() -> list[object]:
    """The navigation of the site."""
    listed = {name for names in GUIDES.values() for name in names}
    missing = {path.stem for path in (ROOT / "docs").glob("*.md")} ^ listed
    if missing:
        raise SystemExit(f"docs and GUIDES of build.py differ: {', '.join(sorted(missing))}")
    guides = [{title: [f"guides/{name}.md" for name in names]} for title, names in GUIDES.items()]
    design = sorted(f"design/{path.name}" for path in (ROOT / "docs/design").glob("*.md"))
    compare = ["index", "fastmcp", "typescript-sdk", "rmcp", "reference-servers", "gateways"]
    return [
        {"Home": "index.md"},
        *guides,
        {"Reference": [{"Overview": "reference/index.md"}, "reference/python.md"]},
        {"Choose": ["clients.md", *(f"compare/{name}.md" for name in compare), "results.md"]},
        {"Design": design},
        {"日本語": ["ja/index.md", "ja/docs-search.md"]},
    ]


def typescript(target: Path) -> None:
    """The pages that TypeDoc makes of the package of Node."""
    tool = ROOT / "docs/site/node_modules/.bin/typedoc"
    options = ["--options", ROOT / "docs/site/typedoc.json", "--out", target]
    subprocess.run([tool, *options], cwd=ROOT, check=True)


def rust(target: Path) -> None:
    """The pages that rustdoc makes of the crate."""
    subprocess.run(["cargo", "doc", "--quiet", "--no-deps", "-p", "mcp-resources"], cwd=ROOT, check=True)
    shutil.copytree(ROOT / "target/doc", target)


def llms(pages: list[str]) -> str:
    """The index of all pages for programs, as llmstxt.org describes it."""
    lines = ["# mcp-resources", "", "> Serve the Resources feature of the Model Context Protocol.", ""]
    sections: dict[str, list[str]] = {}
    for page in pages:
        text = (OUT / "docs" / page).read_text("utf-8")
        title = next(line for line in text.split("\n") if line.startswith("# ")).removeprefix("# ")
        folder = posixpath.dirname(page) or "start"
        sections.setdefault(folder.capitalize(), []).append(f"- [{title}]({page})")
    for name in sorted(sections, key=lambda one: (one != "Start", one != "Guides", one)):
        lines += [f"## {name}", "", *sections[name], ""]
    return "\n".join(lines)


@dataclass
class LinkedPage:
    """The links and the anchors of a page."""

    links: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)


class _LinkParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = LinkedPage()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        for name in ("href", "src"):
            if (link := values.get(name)) and tag in {"a", "img", "script", "link"}:
                self.page.links.append(link)
        for name in ("id", "name"):
            if anchor := values.get(name):
                self.page.anchors.add(anchor)


def dead_links(html: Path) -> list[str]:
    """The links of the site's pages to files and anchors that it has not. Pages of TypeDoc and rustdoc are theirs."""
    pages: dict[str, LinkedPage] = {}
    for path in html.rglob("*.html"):
        name = str(path.relative_to(html))
        parser = _LinkParser()
        if not name.startswith(_GENERATED):
            parser.feed(path.read_text("utf-8"))
        pages[name] = parser.page
    wrong = []
    for name, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or name == "404.html":
                continue
            goal = (
                posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(parts.path))) if parts.path else name
            )
            if goal in {".", ""}:
                goal = "index.html"
            if not (html / goal).exists():
                wrong.append(f"{name}: {link} leads nowhere")
            elif parts.fragment and goal in pages and not goal.startswith(_GENERATED):
                anchor = unquote(parts.fragment)
                if anchor not in pages[goal].anchors and anchor != "__skip":
                    wrong.append(f"{name}: {link} has no such heading")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
