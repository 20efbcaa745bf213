"""Documents through retrieval, served by the command to the official client: passages, documents, and what changes."""

import asyncio
import json
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp_resources import ResourceServer, providers
from mcp_resources.testing import Client as Direct
from mcp_types import ResourceTemplateReference, TextResourceContents
from vectors import MODERN

ERAS = pytest.mark.parametrize("mode", ["legacy", MODERN])
BACKUP = "# Backups\n\nA full backup every Sunday.\n\n## Restore\n\nRestore into an empty cluster first.\n"

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "ops").mkdir(parents=True)
    (folder / "ops" / "backup.md").write_text(BACKUP, "utf-8")
    (folder / "再起動.md").write_text("# サーバーの再起動\n\n二台ずつ再起動します。\n", "utf-8")
    (folder / "picture.png").write_bytes(b"PNG")
    return folder


def converse(program: Path, words: list[str], mode: str, body: Callable[[Client], Awaitable[None]]) -> None:
    server = StdioServerParameters(command=str(program), args=["serve", *words])

    async def main() -> None:
        async with asyncio.timeout(60), Client(server, mode=mode, cache=None) as client:
            await body(client)

    asyncio.run(main())


async def passages(client: Client, uri: str) -> list[TextResourceContents]:
    contents = (await client.read_resource(uri)).contents
    return [one for one in contents if isinstance(one, TextResourceContents) and "score" in (one.meta or {})]


@ERAS
@pytest.mark.parametrize("is_file", [False, True])
def test_the_official_client_finds_passages(program: Path, notes: Path, mode: str, is_file: bool) -> None:
    """S-03: by a word of the command, and with `serve --config`."""
    config = notes.parent / "resources.json"
    config.write_text(json.dumps({"providers": [{"rag": {"collections": {"kb": {"folder": "notes"}}}}]}), "utf-8")

    async def body(client: Client) -> None:
        uris = [resource.uri for resource in (await client.list_resources()).resources]
        assert uris[:3] == ["rag:///", "rag:///kb/", "rag:///kb/doc/ops/backup.md"]
        assert len(uris) == 4
        (found,) = await passages(client, "rag:///kb/search/cluster")
        assert (found.uri, found.text) == ("rag:///kb/doc/ops/backup.md", "Restore into an empty cluster first.")
        assert found.meta is not None
        assert (found.meta["position"], found.meta["ranking"], found.meta["heading"]) == (1, "bm25", "Restore")
        assert [one.uri for one in await passages(client, "rag:///kb/search/サーバーの再起動手順は")] == [uris[3]]
        assert await passages(client, "rag:///kb/search/unicorn") == []
        for uri in ("rag:///kb/doc/picture.png", "rag:///kb/doc/none.md", "rag:///none/search/x"):
            with pytest.raises(MCPError):
                await client.read_resource(uri)
        reference = ResourceTemplateReference(uri="rag:///{collection}/doc/{+id}")
        completion = await client.complete(reference, {"name": "id", "value": "ops"})
        assert completion.completion.values == ["ops/backup.md"]

    converse(program, ["--config", str(config)] if is_file else [f"rag:kb={notes}"], mode, body)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rag:"], '"rag:" names no folder; write rag:NAME=DIR'),
        (["rag:kb=none"], "rag: the folder ./none does not exist"),
        (["rag:kb=notes", "rag:kb=."], 'rag: two collections have the name "kb"'),
    ],
)
def test_what_cannot_be_served_is_said_at_once(program: Path, notes: Path, words: list[str], said: str) -> None:
    """S-03: with the fix."""
    command = [str(program), "serve", *words]
    done = subprocess.run(command, cwd=notes.parent, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert said in done.stderr


def test_what_python_gives_wrong_is_named(notes: Path) -> None:
    """S-03: the options have types, and wrong ones say what would be right."""
    with pytest.raises(TypeError, match='did you mean "include"'):
        providers.rag({"kb": notes}, includes=["a"])  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="does not exist"):
        providers.rag({"kb": {"folder": "none"}})
    with pytest.raises(ValueError, match="hits is 0"):
        providers.rag({"kb": notes}, hits=0)
    assert repr(providers.rag({"kb": notes})) == "<provider rag>"


MEANINGS = {
    "pets.md": "# Animals\n\nThe kitten sleeps on the sofa while the puppy barks outside.\n",
    "money.md": "# Money\n\nInterest rates rose and banks lend less to companies.\n",
    "space.md": "# Space\n\nThe rocket reached orbit around the planet Mars.\n",
}
QUESTIONS = {"cats dogs": "pets.md", "finance": "money.md", "astronomy": "space.md"}
"""None of their words occurs in a document."""


def folder_of(path: Path, files: dict[str, str]) -> Path:
    path.mkdir()
    for name, text in files.items():
        (path / name).write_text(text, "utf-8")
    return path


async def ranked(server: ResourceServer, question: str) -> list[tuple[str, str]]:
    """The documents that answer, each with its ranking, once."""
    async with Direct(server) as client:
        found = await client.read(f"rag:///kb/search/{quote(question)}")
        hits = [(str(one.uri), one.meta["ranking"]) for one in found if one.meta and "score" in one.meta]
        return list(dict.fromkeys(hits))


async def logged(caplog: pytest.LogCaptureFixture, text: str) -> None:
    """Waits for a message of the provider's own thread: it goes to the log of a client that watches."""
    for _ in range(200):
        if text in caplog.text:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(caplog.text)


async def test_a_model_finds_meanings(tmp_path: Path) -> None:
    """S-03: with the weights of a model, questions are answered that share no word with the document."""
    model = pytest.importorskip("static_model", reason="the model of the tests is for Linux on x86-64")
    notes = folder_of(tmp_path / "notes", MEANINGS)
    model.get_embeddings("")  # loads it, which no read is to wait for
    for question, name in QUESTIONS.items():
        plain, hybrid = ResourceServer("plain", version="1"), ResourceServer("hybrid", version="1")
        plain.mount(providers.rag({"kb": notes}))
        hybrid.mount(providers.rag({"kb": notes}, embedder=model.get_embeddings))
        assert await ranked(plain, question) == []
        assert (await ranked(hybrid, question))[0] == (f"rag:///kb/doc/{name}", "bm25+vectors")
        # A word that occurs counts too.
        assert (await ranked(hybrid, f"{question} orbit"))[0][0] in {f"rag:///kb/doc/{name}", "rag:///kb/doc/space.md"}


async def test_an_embedder_that_fails_leaves_the_words(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """S-03: what it raises is logged, and a search is by words alone and says so."""
    notes = folder_of(tmp_path / "notes", MEANINGS)
    calls: list[int] = []

    def embed(texts: list[str]) -> list[list[float]]:
        calls.append(len(texts))
        raise OSError("the model is away")

    server = ResourceServer("failing", version="1")
    server.mount(providers.rag({"kb": notes}, embedder=embed))
    async with Direct(server) as client, client.listen(["rag:///kb/doc/pets.md"]):
        assert await ranked(server, "orbit") == [("rag:///kb/doc/space.md", "bm25")]
        assert len(calls) == 4
        await logged(caplog, "kb/pets.md has no vectors: OSError: the model is away")
        await logged(caplog, "a question has no vector: OSError: the model is away")


async def test_what_an_embedder_returns_is_checked(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """S-03: one vector for each text."""
    notes = folder_of(tmp_path / "notes", MEANINGS)
    server = ResourceServer("short", version="1")
    server.mount(providers.rag({"kb": notes}, embedder=lambda texts: [[1.0]] * (len(texts) + 1)))
    async with Direct(server) as client, client.listen(["rag:///kb/doc/pets.md"]):
        assert await ranked(server, "orbit") == [("rag:///kb/doc/space.md", "bm25")]
        await logged(caplog, "kb/space.md has no vectors: 2 for 1 texts")
        await logged(caplog, "a question has no vector: 2 for 1 texts")
    for wrong in (5, ranked):
        with pytest.raises(TypeError, match=r"expected a (function|plain one)"):
            providers.rag({"kb": notes}, embedder=wrong)  # type: ignore[arg-type]
