"""Documentation, served by the command to the official client: pages, sections, searches, and what changes of them."""

import asyncio
import json
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest
from mcp import Client, MCPError
from mcp.client.session import MessageHandlerFnT
from mcp.client.stdio import StdioServerParameters
from mcp.client.subscriptions import ResourceUpdated
from mcp_resources import providers
from mcp_types import ResourceTemplateReference, ResourceUpdatedNotification, ServerNotification, TextResourceContents
from process import eventually, refused_at_start, running, thread_names
from vectors import MODERN

ERAS = pytest.mark.parametrize("mode", ["legacy", MODERN])
PAGE = "---\ntitle: 検索\npriority: 0.9\nlang: ja\n---\n# 検索\n\n## 設定\n\n{}\n\n## API\n\nJSON\n"

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "book"
    (folder / "guide").mkdir(parents=True)
    (folder / "search.md").write_text(PAGE.format("one"), "utf-8")
    (folder / "guide" / "backup.md").write_text("# Backup\n\nCopy the server.\n", "utf-8")
    (folder / "broken.md").write_text("---\ntitle: [\n---\n# Broken\n", "utf-8")
    (folder / "note.txt").write_text("not a page", "utf-8")
    return folder


def converse(
    program: Path,
    words: list[str],
    mode: str,
    body: Callable[[Client], Awaitable[None]],
    on_message: MessageHandlerFnT | None = None,
) -> None:
    server = StdioServerParameters(command=str(program), args=["serve", *words])

    async def main() -> None:
        async with (
            asyncio.timeout(60),
            Client(server, mode=mode, message_handler=on_message, cache=None) as client,
        ):
            await body(client)

    asyncio.run(main())


def replace(page: Path, text: str) -> None:
    """Edits a page at once: the server is not to see it empty, which would be a change of its own."""
    other = page.with_suffix(".new")
    other.write_text(text, "utf-8")
    other.replace(page)


async def text(client: Client, uri: str) -> str:
    (content,) = (await client.read_resource(uri)).contents
    assert isinstance(content, TextResourceContents)
    return content.text


async def hits(client: Client, uri: str) -> list[str]:
    return [hit["uri"] for hit in json.loads(await text(client, uri))["hits"]]


@ERAS
def test_the_official_client_lists_reads_and_completes(program: Path, site: Path, mode: str) -> None:
    """S-07: with `serve --config`."""
    file = site.parent / "resources.json"
    declared = [{"docs": {"sites": {"handbook": "book"}, "exclude": ["broken.md"], "index": "book.index"}}]
    file.write_text(json.dumps({"name": "docs", "providers": declared}), "utf-8")

    async def body(client: Client) -> None:
        resources = (await client.list_resources()).resources
        assert [resource.uri for resource in resources] == [
            "docs:///",
            "docs:///handbook/",
            "docs:///handbook/search.md",
            "docs:///handbook/guide/backup.md",
        ]
        assert (resources[2].title, resources[2].meta) == ("検索", {"lang": "ja"})
        assert await text(client, "docs:///handbook/guide/backup.md#backup") == "# Backup\n\nCopy the server.\n"
        assert await hits(client, "docs:///handbook/search/server") == ["docs:///handbook/guide/backup.md#backup"]
        assert await hits(client, "docs:///handbook/search?q=検索&lang=ja&k=1") != []
        for uri in ("docs:///handbook/broken.md", "docs:///handbook/note.txt", "docs:///handbook/search.md#none"):
            with pytest.raises(MCPError):
                await client.read_resource(uri)
        reference = ResourceTemplateReference(uri="docs:///{site}/{+page}{#section}")
        completion = await client.complete(reference, {"name": "page", "value": "gu"})
        assert completion.completion.values == ["guide/backup.md"]

    converse(program, ["--config", str(file)], mode, body)
    assert (site.parent / "book.index").read_bytes().startswith(b"SQLite format 3")


@ERAS
def test_an_edit_marks_its_section(program: Path, site: Path, mode: str) -> None:
    """S-07, R-083, R-092: and can be found."""
    uri = "docs:///book/search.md#%E8%A8%AD%E5%AE%9A"
    updates: asyncio.Queue[str] = asyncio.Queue()

    async def on_message(message: ServerNotification | Exception) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            updates.put_nowait(message.params.uri)

    async def body(client: Client) -> None:
        assert await text(client, uri) == "## 設定\n\none\n\n"
        edited = PAGE.format("changed")
        if mode == MODERN:
            async with client.listen(resource_subscriptions=[uri]) as subscription:
                replace(site / "search.md", edited)
                assert await anext(subscription) == ResourceUpdated(uri)
        else:
            await client.subscribe_resource(uri)
            replace(site / "search.md", edited)
            assert await updates.get() == uri
        assert await text(client, uri) == "## 設定\n\nchanged\n\n"
        assert await hits(client, "docs:///book/search/changed") == [uri]

    converse(program, [f"docs:{site}"], mode, body, on_message)


LETTERS = """# Letters

## Marks

A café, a naïve résumé, Ünïcode, the Straße to İstanbul, Łódź, Ὀδυσσεύς and ещё. ガイド

## Signs

Docker™, x², Note¹, №5, 1º, ﬁle, H₂O and 10㎏. Launch 🚀 with 👍🏽. 髙橋

## Cafe\u0301
"""


FOUND = """
cafe CAFÉ cafe\u0301 naive resume unicode strasse STRASSE straße istanbul İSTANBUL lodz οδυσσευς еще ガイド docker
Docker™ x x² note 5 №5 1 file h2o H₂O 10kg 🚀 👍 高橋 髙橋
"""


def test_words_are_found_as_people_type_them(program: Path, site: Path) -> None:
    """S-07: without marks, in any case, beside signs and emoji; and marks of other scripts count."""
    (site / "letters.md").write_text(LETTERS, "utf-8")
    page = "docs:///book/letters.md"

    async def body(client: Client) -> None:
        for query in FOUND.split():
            assert page in "".join(await hits(client, f"docs:///book/search/{quote(query)}")), query
        for query in ("カイト", "docke", "notes"):
            assert page not in "".join(await hits(client, f"docs:///book/search/{quote(query)}")), query
        marked = json.loads(await text(client, f"docs:///book/search/{quote('istanbul 🚀')}"))["hits"][0]["snippet"]
        assert "**" in marked
        # The fragment that GitHub gives a decomposed heading, and the composed one.
        for slug in ("cafe\u0301", "caf\u00e9"):
            assert (await text(client, f"{page}#{quote(slug)}")).startswith("## Cafe\u0301")

    converse(program, [f"docs:{site}"], MODERN, body)


def test_a_denied_section_is_hidden_under_each_spelling(program: Path, site: Path) -> None:
    """S-07: a rule for a section is not evaded with its heading in other code points."""
    (site / "letters.md").write_text(LETTERS, "utf-8")
    page = "docs:///book/letters.md"
    denied = [f"{page}#{quote('cafe' + chr(0x301))}"]
    file = site.parent / "resources.json"
    declared = {"providers": [{"docs": {"sites": {"book": "book"}}}], "guard": {"deny": denied}}
    file.write_text(json.dumps(declared), "utf-8")

    async def body(client: Client) -> None:
        assert (await text(client, f"{page}#marks")).startswith("## Marks")
        for slug in ("cafe\u0301", "caf\u00e9"):
            with pytest.raises(MCPError):
                await client.read_resource(f"{page}#{quote(slug)}")

    converse(program, ["--config", str(file)], MODERN, body)


def test_the_threads_end_with_the_last_watcher(program: Path, site: Path) -> None:
    """S-07: pages are watched only while there is a subscriber, or for a while after a request."""
    with running([str(program), "serve", f"docs:{site}"]) as server:

        def threads() -> int:
            names = thread_names(server.process.pid)
            return names.count("mcp-docs") + names.count("mcp-files")

        assert threads() == 0
        wanted = {"resourceSubscriptions": ["docs:///book/search.md"]}
        server.modern(1, "subscriptions/listen", {"notifications": wanted})
        assert eventually(lambda: threads() == 2)
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        assert eventually(lambda: threads() == 0)


def test_an_index_that_nobody_wants_is_left_off(program: Path, tmp_path: Path) -> None:
    """S-32: the thread ends with the last watcher, also in the middle of an index; the next one goes on."""
    folder, index = tmp_path / "book", tmp_path / "book.index"
    folder.mkdir()
    words = " ".join(f"word{number}" for number in range(600))
    for number in range(4_000):
        (folder / f"{number}.md").write_text(f"# Page {number}\n\n{words}\n", "utf-8")
    file = tmp_path / "resources.json"
    declared = {"docs": {"sites": {"book": str(folder)}, "index": str(index)}}
    file.write_text(json.dumps({"name": "book", "providers": [declared]}), "utf-8")

    def size() -> int:
        return sum(path.stat().st_size for path in tmp_path.glob("book.index*"))

    counts = [0]
    for _ in range(2):
        before = size()
        with running([str(program), "serve", "--config", str(file)]) as server:
            wanted = {"resourceSubscriptions": ["docs:///book/1.md"]}
            server.modern(1, "subscriptions/listen", {"notifications": wanted})
            # One batch of several is in the file.
            assert eventually(lambda before=before: size() > before + 500_000)
            server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
            assert eventually(lambda pid=server.process.pid: "mcp-docs" not in thread_names(pid))
        with closing(sqlite3.connect(index)) as connection:
            counts.append(connection.execute("SELECT count(*) FROM doc").fetchone()[0])
    assert 0 < counts[1] < counts[2] < 4_000


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["docs:"], '"docs:" names no directory; write docs:DIR or docs:NAME=DIR'),
        (["docs:none"], "docs: the site ./none does not exist"),
        (["docs:book", "docs:book=."], 'docs: two sites have the name "book"'),
    ],
)
def test_what_cannot_be_served_is_said_at_once(program: Path, site: Path, words: list[str], said: str) -> None:
    """S-07: with the fix, and though stdin is open."""
    assert said in refused_at_start(program, *words, at=site.parent)


def test_what_python_gives_wrong_is_named(site: Path) -> None:
    """S-07: the options have types, and wrong ones say what would be right."""
    with pytest.raises(TypeError, match='did you mean "include"'):
        providers.docs(site, includes=["a"])  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="list_max is 'many'"):
        providers.docs(site, list_max="many")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="does not exist"):
        providers.docs({"a": "none"})
    with pytest.raises(ValueError, match="is no file"):
        providers.docs(site, index=str(site))
    assert repr(providers.docs([site])) == "<provider docs>"
