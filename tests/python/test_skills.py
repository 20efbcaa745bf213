"""Folders of skills, served by the command and asked by the official client in both eras."""

import asyncio
import hashlib
import json
import subprocess
from pathlib import Path

import pytest
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp.client.subscriptions import ResourcesListChanged, ResourceUpdated
from mcp_resources import ResourceServer, providers, testing
from process import eventually, refused_at_start, running, thread_names
from test_examples import INVALID_PARAMS, LEGACY, MODERN, call, complete, converse, listed, read, refused

REFUNDS = "skill://acme/refunds"
EXTENSION = "io.modelcontextprotocol/skills"

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "skills"
    skill(folder / "acme" / "refunds", "Process refunds")
    skill(folder / "pdf", "Fill forms")
    (folder / "acme" / "refunds" / "templates").mkdir()
    (folder / "acme" / "refunds" / "templates" / "a.md").write_text("A", "utf-8")
    (folder / "pdf" / "logo.bin").write_bytes(bytes(range(256)))
    (folder / "README.md").write_text("in no skill", "utf-8")
    return folder


def skill(at: Path, description: str) -> None:
    at.mkdir(parents=True, exist_ok=True)
    text = f"---\nname: {at.name}\ndescription: {description}\nmetadata: {{version: '1.0'}}\n---\n# {at.name}\n"
    (at / "SKILL.md").write_text(text, "utf-8")


def configured(program: Path, folder: Path) -> StdioServerParameters:
    """The command with a file that declares the folder by a relative path."""
    file = folder.parent / "resources.json"
    file.write_text(json.dumps({"name": "skills", "providers": [{"skills": {"paths": ["skills"]}}]}), "utf-8")
    return StdioServerParameters(command=str(program), args=["serve", "--config", str(file)])


def test_the_command_says_what_it_leaves_out(program: Path, folder: Path) -> None:
    """S-56: in one line for each skill, whatever asks for it."""
    (folder / "broken").mkdir()
    (folder / "broken" / "SKILL.md").write_text("---\nname: broken\n---\n", "utf-8")
    server = [program, "serve", f"skills:{folder}"]
    done = subprocess.run([program, "ls", "--", *server], capture_output=True, text=True, check=True)
    assert done.stderr == "warning: skills: broken is not served: its SKILL.md has no description\n"


def test_names_and_front_matter_of_any_script(program: Path, tmp_path: Path) -> None:
    """S-56: letters in lower case, composed or not; `...` ends a front matter; what is left out is said."""
    folder = tmp_path / "skills"
    names = ["日本語", "мой-навык", "é", "हिन्दी"]
    for name in names:
        (folder / name).mkdir(parents=True)
        text = f"---\nname: {name}\ndescription: x\nmetadata: {{n: 08, v: '1.0'}}\n...\n# {name}\n"
        (folder / name / "SKILL.md").write_text(text, "utf-8")
    (folder / "lower").mkdir()
    (folder / "lower" / "skill.md").write_text("---\nname: lower\ndescription: x\n---\n", "utf-8")
    (folder / "toml").mkdir()
    (folder / "toml" / "SKILL.md").write_text("+++\nname = 'toml'\n+++\n", "utf-8")
    command = [program, "ls", "--json", "--", program, "serve", f"skills:{folder}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert all(f'"{name}"' in done.stdout for name in names), done.stdout
    said = done.stderr.splitlines()
    assert any("lower/skill.md is not served: a skill's file is named SKILL.md; rename it" in line for line in said)
    assert any("is TOML between lines of +++; write YAML between lines of ---" in line for line in said)
    assert len(said) == 2, said


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
def test_the_official_client_is_served(program: Path, folder: Path, mode: str) -> None:
    """S-50 to S-57: entries, directories and resources, through `serve --config`."""

    async def body(client: Client) -> None:
        if mode == LEGACY:
            assert client.server_capabilities is not None
            declared = client.server_capabilities.experimental
        else:
            declared = (await call(client, "server/discover"))["capabilities"]["extensions"]
        assert declared == {EXTENSION: {"directoryRead": True}}
        result = await call(client, "skills/list")
        assert [entry["uri"] for entry in result["skills"]] == [f"{REFUNDS}/SKILL.md", "skill://pdf/SKILL.md"]
        for entry in result["skills"]:
            assert (await call(client, "skills/get", uri=entry["uri"]))["skill"] == entry
            for file in entry["resources"]:
                data = (folder / file["uri"].removeprefix("skill://")).read_bytes()
                assert (file["digest"], file["size"]) == (f"sha256:{hashlib.sha256(data).hexdigest()}", len(data))
        assert result["skills"][0]["frontmatter"]["metadata"] == {"version": "1.0"}
        children = (await call(client, "resources/directory/read", uri=REFUNDS))["resources"]
        assert [child["name"] for child in children] == ["refunds", "templates"]
        for method, uri in (("skills/get", REFUNDS), ("resources/directory/read", f"{REFUNDS}/SKILL.md")):
            with pytest.raises(MCPError) as caught:
                await call(client, method, uri=uri)
            assert caught.value.error.code == INVALID_PARAMS
            assert uri in caught.value.error.message
        items = await listed(client)
        assert items[f"{REFUNDS}/SKILL.md"].description == "Process refunds"
        assert set(items) == {
            "skill:///",
            f"{REFUNDS}/SKILL.md",
            f"{REFUNDS}/templates/a.md",
            "skill://pdf/SKILL.md",
            "skill://pdf/logo.bin",
        }
        assert (await read(client, f"{REFUNDS}/templates/a.md")).text == "A"
        assert await complete(client, "skill://{+path}", "path", "pd") == ["pdf/SKILL.md", "pdf/logo.bin"]
        await refused(client, "skill://README.md")

    converse(configured(program, folder), mode, body)


def test_changes_are_reported(program: Path, folder: Path) -> None:
    """S-54, S-59: a changed file is updated, the list too, and the entry has the digest of what is read then."""
    uri = f"{REFUNDS}/templates/a.md"

    async def body(client: Client) -> None:
        assert (await read(client, uri)).text == "A"
        async with client.listen(resource_subscriptions=[uri]) as subscription:
            await asyncio.sleep(0.5)  # the first look must have been before the change
            (folder / "acme" / "refunds" / "templates" / "a.md").write_text("B", "utf-8")
            assert await anext(subscription) == ResourceUpdated(uri)
        entry = (await call(client, "skills/get", uri=f"{REFUNDS}/SKILL.md"))["skill"]
        assert entry["resources"][1]["digest"] == f"sha256:{hashlib.sha256(b'B').hexdigest()}"
        async with client.listen(resources_list_changed=True) as subscription:
            assert isinstance(await anext(subscription), ResourcesListChanged)
            skill(folder / "new", "New")
            assert isinstance(await anext(subscription), ResourcesListChanged)
        assert len((await call(client, "skills/list"))["skills"]) == 3

    server = StdioServerParameters(command=str(program), args=["serve", f"skills:{folder}"])
    converse(server, MODERN, body)


def test_the_thread_ends_with_the_last_watcher(program: Path, folder: Path) -> None:
    """S-59: the folders are looked at while somebody watches, and no longer."""
    with running([str(program), "serve", f"skills:{folder}"]) as server:

        def threads() -> int:
            return thread_names(server.process.pid).count("mcp-skills")

        for round in range(2):
            assert eventually(lambda: threads() == 0)
            wanted = {"resourceSubscriptions": [f"{REFUNDS}/SKILL.md"]}
            server.modern(round, "subscriptions/listen", {"notifications": wanted})
            assert eventually(lambda: threads() == 1)
            server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": round}})
        assert eventually(lambda: threads() == 0)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("skills:", '"skills:" names no directory; write skills:DIR or skills:PREFIX=DIR'),
        ("skills:none", "skills: the directory ./none does not exist"),
        ("skills:..=skills", 'skills: ".." is no prefix for the directory'),
    ],
)
def test_what_cannot_be_served_is_said_at_once(program: Path, folder: Path, word: str, said: str) -> None:
    """S-50: with the fix, and though stdin is open."""
    assert said in refused_at_start(program, word, at=folder.parent)


def test_a_server_in_python(folder: Path) -> None:
    """S-50, S-57: mounted, the methods are there; unmounted, they are gone; a second declaration is refused."""

    async def main() -> None:
        server = ResourceServer("skills")
        provider = providers.skills({"team": folder}, exclude="pdf")
        server.mount(provider)
        async with testing.Client(server) as client:
            result = await client.request("skills/list", {})
            assert [entry["uri"] for entry in result["skills"]] == ["skill://team/acme/refunds/SKILL.md"]
            with pytest.raises(ValueError, match="the mount skills has it"):
                server.mount(providers.skills(folder))
            server.unmount(provider)
            with pytest.raises(Exception, match="skills/list"):
                await client.request("skills/list", {})

    asyncio.run(main())
    with pytest.raises(TypeError, match="listmax"):
        providers.skills(folder, listmax=1)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="does not exist"):
        providers.skills("none")
    assert repr(providers.skills([folder])) == "<provider skills>"
