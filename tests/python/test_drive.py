"""Google Drive as a source of documents, on loopback: from the command's word, a configuration file, and Python."""

import asyncio
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from loopback_drive import CREDENTIALS, LoopbackDrive, listening
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp.client.subscriptions import ResourceUpdated
from mcp_resources import ResourceServer, providers
from mcp_resources.testing import Client as Direct
from mcp_types import ResourceUpdatedNotification, ServerNotification
from test_rag import passages
from vectors import MODERN

ERAS = pytest.mark.parametrize("mode", ["legacy", MODERN])
PLAN = "gdrive:///doc1"

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


@pytest.fixture
def drive() -> Iterator[LoopbackDrive]:
    with listening() as drive:
        yield drive


@pytest.fixture
def credentials(tmp_path: Path) -> Path:
    file = tmp_path / "credentials.json"
    file.write_text(json.dumps(CREDENTIALS), "utf-8")
    return file


@ERAS
@pytest.mark.parametrize("is_word", [True, False])
def test_the_official_client_finds_documents(
    program: Path, drive: LoopbackDrive, credentials: Path, mode: str, is_word: bool
) -> None:
    """S-03: `gdrive:CONFIG` and `serve --config` list, read and search; an edit is one update."""
    options = {"credentials": credentials.name, "base_url": drive.url}
    folder = credentials.parent
    (folder / "drive.json").write_text(json.dumps(options), "utf-8")
    rag = {"collections": {"drive": {"drive": "drive.json"}}, "poll": "50ms"}
    (folder / "resources.json").write_text(json.dumps({"providers": [{"rag": rag}]}), "utf-8")
    words = [f"gdrive:{folder / 'drive.json'}"] if is_word else ["--config", str(folder / "resources.json")]
    changed: asyncio.Queue[str] = asyncio.Queue()

    async def on_message(message: ServerNotification | Exception) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            changed.put_nowait(message.params.uri)

    async def watch(client: Client) -> None:
        if mode == MODERN:
            async with client.listen(resource_subscriptions=[PLAN]) as events:
                drive.put("doc1", "Plan", "# Plan\n\nOpen the shop in Osaka.\n")
                assert await anext(aiter(events)) == ResourceUpdated(PLAN)
        else:
            await client.subscribe_resource(PLAN)
            drive.put("doc1", "Plan", "# Plan\n\nOpen the shop in Osaka.\n")
        # The handler of messages hears of what a listen reports, too.
        assert await changed.get() == PLAN
        (found,) = await passages(client, "rag:///drive/search/osaka")
        assert found.text == "Open the shop in Osaka."
        assert changed.empty()

    async def main() -> None:
        server = StdioServerParameters(command=str(program), args=["serve", *words])
        async with (
            asyncio.timeout(60),
            Client(server, mode=mode, message_handler=on_message, cache=None) as client,
        ):
            uris = [resource.uri for resource in (await client.list_resources()).resources]
            assert uris == ["rag:///", "rag:///drive/", "rag:///drive/doc/doc1", "rag:///drive/doc/txt2"]
            (found,) = await passages(client, "rag:///drive/search/kawagoe")
            assert found.meta is not None
            assert (found.uri, found.meta["source"]) == ("rag:///drive/doc/doc1", PLAN)
            (content,) = (await client.read_resource(PLAN)).contents
            assert content.text == "# Plan\n\nOpen the shop in Kawagoe.\n"
            with pytest.raises(MCPError):
                await client.read_resource("gdrive:///none")
            # A word has no option for how often Drive is asked.
            if not is_word:
                await watch(client)

    asyncio.run(main())
    assert "canary" not in "".join(drive.command())


async def test_python_declares_a_drive(
    drive: LoopbackDrive, credentials: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S-03, R-083: with credentials in the environment; a shared drive by its id; what is removed leaves the search."""
    monkeypatch.setenv("DRIVE_CREDENTIALS", credentials.read_text("utf-8"))
    drive.put("team3", "Team", "The team is in Nara.", drive="TEAM")
    secret = {"env": "DRIVE_CREDENTIALS"}
    collections = {
        "mine": {"drive": {"credentials": secret, "base_url": drive.url}},
        "team": {"drive": {"credentials": secret, "base_url": drive.url, "drive": "TEAM"}},
    }
    server = ResourceServer("drive", version="1")
    server.mount(providers.rag(collections, poll=50))
    async with Direct(server) as client:

        async def found(uri: str) -> list[str]:
            return [str(one.uri) for one in await client.read(uri) if "score" in (one.meta or {})]

        assert await found("rag:///team/search/nara") == ["rag:///team/doc/team3"]
        assert await found("rag:///mine/search/nara") == []
        assert await client.read_text(PLAN) == "# Plan\n\nOpen the shop in Kawagoe.\n"
        async with client.listen([PLAN]) as listen:
            drive.put("doc1", "Plan", "# Plan\n\nOpen the shop in Nara.\n")
            assert (await listen.next()).params["uri"] == PLAN
        assert await found("rag:///mine/search/nara") == ["rag:///mine/doc/doc1"]
        drive.command(remove="doc1")
        while await found("rag:///mine/search/nara"):
            await asyncio.sleep(0.02)
        drive.command(expire=True, statuses=[429])
        assert await client.read_text("gdrive:///txt2") == "Espresso is in the kitchen."


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (None, "rag: the file ./drive.yaml does not exist; create it, or name another file"),
        ("{}", "drive needs credentials: FILE"),
        ("credential: credentials.json", 'unexpected option "credential"; did you mean "credentials"?'),
        ("credentials: none.json", "the file of credentials ./none.json does not exist"),
        ("credentials: {env: MCP_NOT_SET}", 'the variable "MCP_NOT_SET" for the credentials is not set'),
        ("{credentials: credentials.json, drive: a/b}", '"a/b" is no id of Drive\'s'),
    ],
)
def test_what_cannot_be_served_is_said_at_once(program: Path, credentials: Path, config: str | None, said: str) -> None:
    """S-03: with the value and the fix, and without a secret."""
    if config is not None:
        (credentials.parent / "drive.yaml").write_text(config, "utf-8")
    command = [str(program), "serve", "gdrive:drive.yaml"]
    done = subprocess.run(command, cwd=credentials.parent, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert said in done.stderr
    assert "canary" not in done.stderr


def test_what_python_gives_wrong_is_named(credentials: Path) -> None:
    """S-03: a secret in the wrong place is not shown."""
    for wrong, message in (
        ({"credentials": {"refresh_token": "canary"}}, "neither a file nor"),
        ({"credentials": credentials, "folders": "x"}, 'did you mean "folder"'),
        (5, "expected an object of options, or a file that has them"),
    ):
        with pytest.raises((TypeError, ValueError), match=message) as caught:
            providers.rag({"kb": {"drive": wrong}})
        assert "canary" not in str(caught.value)
