"""Git repositories, served by the command to the official client, and what Python gives the provider."""

import json
import subprocess
import time
from pathlib import Path

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.subscriptions import ResourceUpdated
from mcp_resources import providers
from process import eventually, refused_at_start, running, thread_names
from repositories import commit, git, make_repository
from test_examples import INVALID_PARAMS, LEGACY, MODERN, NOT_FOUND, Updates, complete, converse, listed, read, refused

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_repository(tmp_path)


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
@pytest.mark.parametrize("how", ["words", "config"])
def test_the_command_serves_a_repository(program: Path, project: Path, mode: str, how: str) -> None:
    """S-02: by words and by a file: list, read, complete and watch."""
    file = project.parent / "resources.yaml"
    file.write_text("providers:\n  - git: {repos: {app: project}, exclude: [secret], log_max: 50}\n")
    words = ["--config", str(file)] if how == "config" else [f"git:app={project}"]
    updates = Updates()

    async def body(client: Client) -> None:
        uris = set(await listed(client))
        assert {f"git:///app/{rest}" for rest in ("status", "branches", "tags", "log", "tree/HEAD/")} <= uris
        for uri in uris:
            assert (await client.read_resource(uri)).contents
        assert (await read(client, "git:///app/blob/feature~2Fx/a.txt")).text == "one\n"
        status = json.loads((await read(client, "git:///app/status")).text)
        assert (status["branch"], status["clean"]) == ("main", True)
        (tree,) = {str(child.uri) for child in (await client.read_resource("git:///app/tree/main/")).contents} - {
            "git:///app/blob/main/secret"
        }
        assert tree == "git:///app/blob/main/a.txt"
        assert await complete(client, "git:///{repo}/log/{ref}", "ref", "feature/") == ["feature~2Fx"]
        assert (await refused(client, "git:///app/blob/main/none")).code == NOT_FOUND[mode]
        assert (await refused(client, "git:///app/log?n=0")).code == INVALID_PARAMS
        log = "git:///app/log"
        commit_soon(project)
        await updates.of(client, mode, log)
        subjects = [entry["subject"] for entry in json.loads((await read(client, log)).text)["commits"]]
        assert subjects == ["Third", "Second", "First"]

    converse(StdioServerParameters(command=str(program), args=["serve", *words]), mode, body, updates.on_message)


def commit_soon(project: Path) -> None:
    """A commit that a client has not read yet when it begins to watch."""
    (project / "b.txt").write_text("new\n")
    commit(project, "Third")


def test_what_is_staged_is_what_git_says(program: Path, project: Path) -> None:
    """S-02: also where the index says that it is the tree of some commit, but not that of HEAD."""
    words = {"A": "added", "M": "modified", "D": "deleted"}

    def by_git() -> dict[str, str]:
        lines = git(project, "status", "--porcelain", "--untracked-files=no").splitlines()
        return {line[3:]: words[line[0]] for line in lines if line[0] in words}

    async def body(client: Client) -> None:
        async def same(count: int) -> None:
            status = json.loads((await read(client, "git:///project/status")).text)
            staged = {change["path"]: change["change"] for change in status["staged"]}
            assert staged == by_git()
            assert len(staged) == count

        (project / "sub").mkdir()
        (project / "sub" / "b.txt").write_text("new\n")
        await same(0)
        git(project, "add", "--intent-to-add", "sub/b.txt")
        await same(0)
        git(project, "add", "sub/b.txt")
        await same(1)
        (project / "a.txt").write_text("three\n")
        git(project, "rm", "-q", "--cached", "secret")
        git(project, "add", "a.txt")
        await same(3)
        commit(project, "Third")
        await same(0)
        # The index stays the tree of the commit before.
        git(project, "reset", "-q", "--soft", "HEAD~1")
        await same(2)
        git(project, "reset", "-q", "--hard")
        git(project, "read-tree", "HEAD~1")
        await same(2)

    converse(StdioServerParameters(command=str(program), args=["serve", f"git:{project}"]), MODERN, body)


def test_only_watchers_of_a_change_are_told(program: Path, project: Path) -> None:
    """S-02, R-083: a commit does not wake those who watch tags."""

    async def body(client: Client) -> None:
        uris = ["git:///project/tags", "git:///project/branches"]
        for uri in uris:
            await read(client, uri)
        async with client.listen(resource_subscriptions=uris) as subscription:
            commit_soon(project)
            assert await anext(subscription) == ResourceUpdated(uris[1])
            git(project, "tag", "v1")
            assert await anext(subscription) == ResourceUpdated(uris[0])

    converse(StdioServerParameters(command=str(program), args=["serve", f"git:{project}"]), MODERN, body)


def test_the_command_alone_serves_a_repository_that_it_is_in(program: Path, project: Path) -> None:
    """S-02: files, and the repository if the current directory is its root."""

    def kinds(folder: Path) -> tuple[set[str], str]:
        done = subprocess.run(
            [program, "ls", "--json", "--", program, "serve"], cwd=folder, capture_output=True, check=True, text=True
        )
        return {uri for uri in ("git:///", "file:///") if f'"{uri}"' in done.stdout}, done.stderr

    assert kinds(project) == ({"git:///", "file:///"}, "")
    (project / "below").mkdir()
    assert kinds(project / "below") == ({"file:///"}, "")
    git(project.parent, "clone", "-q", "--bare", "project", "bare.git")
    assert kinds(project.parent / "bare.git")[0] == {"git:///", "file:///"}
    forged = project.parent / "forged"
    forged.mkdir()
    (forged / ".git").write_text("gitdir: ../project/.git\n")
    found, said = kinds(forged)
    assert found == {"file:///"}
    assert "leads out of it" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["git:"], "names no repository; write git:DIR"),
        (["git:none"], "none does not exist"),
        (["git:."], "is not the root of a git repository"),
        (["git:project", "git:project=project"], 'two repositories have the name "project"'),
    ],
)
def test_what_cannot_be_served_is_said_at_once(program: Path, project: Path, words: list[str], said: str) -> None:
    """S-02: with the fix, and though stdin is open."""
    assert said in refused_at_start(program, *words, at=project.parent)


def test_the_thread_ends_with_the_last_watcher(program: Path, project: Path) -> None:
    """S-02: the repository is looked at while somebody watches, and no longer; no child is started."""
    with running([str(program), "serve", f"git:{project}"]) as server:

        def threads() -> int:
            return thread_names(server.process.pid).count("mcp-git")

        for turn in range(2):
            assert eventually(lambda: threads() == 0)
            wanted = {"resourceSubscriptions": ["git:///project/status"]}
            server.modern(turn, "subscriptions/listen", {"notifications": wanted})
            assert eventually(lambda: threads() == 1)
            time.sleep(0.3)
            children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
            assert not children.exists() or children.read_text() == ""
            server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": turn}})
        assert eventually(lambda: threads() == 0)


def test_what_python_gives_wrong_is_named(project: Path) -> None:
    """S-02: the options have types, and wrong ones say what would be right."""
    with pytest.raises(TypeError, match="log_maximum"):
        providers.git(project, log_maximum=5)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="log_max is"):
        providers.git(project, log_max="many")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a size such as"):
        providers.git(project, diff_bytes="much")
    with pytest.raises(ValueError, match="no folder of refs"):
        providers.git(project, refs=["../x"])
    with pytest.raises(ValueError, match="is not the root of a git repository"):
        providers.git(project.parent)
    assert repr(providers.git({"app": project}, diff_bytes="1 MiB", refs="heads")) == "<provider git>"
