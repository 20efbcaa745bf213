"""A process forks while a provider of it is watched: the parent's watch goes on, and children serve and end.

A child has copies of its parent's clients, so what these watch counts as watched already:
here it watches something else.

`test_mounting.py` and `test_metrics.py` fork where nothing is watched.
"""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from repositories import make_repository
from test_skills import skill

PROGRAM = """
    import asyncio, os, queue, subprocess, sys, threading
    from pathlib import Path
    from mcp_resources import ResourceServer, providers
    from mcp_resources.testing import Client

    kind, folder = sys.argv[1], Path(sys.argv[2])
    count = 0


    def edit(name, text):
        global count
        count += 1
        (folder / name).write_text(text.format(f"{os.getpid()} {count}"))


    def commit():
        edit("project/a.txt", "{}\\n")
        git = ["git", "-c", "user.name=Test", "-c", "user.email=test@example.com"]
        subprocess.run([*git, "commit", "-q", "-a", "-m", "Next"], cwd=folder / "project", check=True)


    def edit_both(one, other, text):
        edit(one, text)
        edit(other, text)


    # A provider, what the parent watches, what a child watches, and what changes both.
    provider, uri, other, change = {
        "config": lambda: (
            providers.config({"app": folder / "app.toml"}, allow="**"),
            "config:///app/one",
            "config:///app/other",
            lambda: edit("app.toml", "one = '{0}'\\nother = '{0}'\\n"),
        ),
        "docs": lambda: (
            providers.docs({"site": folder / "site"}),
            "docs:///site/page.md",
            "docs:///site/other.md",
            lambda: edit_both("site/page.md", "site/other.md", "# Page\\n{}\\n"),
        ),
        "git": lambda: (
            providers.git(folder / "project"),
            "git:///project/log",
            "git:///project/blob/HEAD/a.txt",
            commit,
        ),
        "metrics": lambda: (
            providers.metrics(host=True, interval="50ms"),
            "metrics:///cpu_usage_percent",
            "metrics:///memory_used_bytes",
            lambda: None,
        ),
        "rag": lambda: (
            providers.rag({"kb": folder / "site"}),
            "rag:///kb/doc/page.md",
            "rag:///kb/doc/other.md",
            lambda: edit_both("site/page.md", "site/other.md", "# Page\\n{}\\n"),
        ),
        "skills": lambda: (
            providers.skills(folder / "skills"),
            "skill://pdf/notes.md",
            "skill://pdf/other.md",
            lambda: edit_both("skills/pdf/notes.md", "skills/pdf/other.md", "{}\\n"),
        ),
    }[kind]()
    server = ResourceServer("x")
    server.mount(provider)


    async def use(uri):
        async with Client(server) as client:
            await client.read(uri)
            async with client.listen([uri]) as listen:
                change()
                assert (await listen.next(20)).params["uri"] == uri
            await client.read(uri)


    async def watch(updates, over):
        async with Client(server) as client:
            await client.read(uri)
            async with client.listen([uri]) as listen:
                updates.put("watching")
                while not over.is_set():
                    await listen.next(20)
                    await client.read(uri)
                    updates.put("updated")


    updates, over = queue.SimpleQueue(), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(watch(updates, over)))
    thread.start()
    assert updates.get(timeout=20) == "watching"
    for works in (False, True, False, True):
        child = os.fork()
        if child == 0:
            if works:
                asyncio.run(asyncio.wait_for(use(other), 30))
            sys.exit(0)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0, status
    # What the children changed, the parent is told of too.
    while not updates.empty():
        updates.get()
    change()
    assert updates.get(timeout=20) == "updated"
    over.set()
    change()
    thread.join(20)
    assert not thread.is_alive()
    asyncio.run(use(uri))
"""


@pytest.mark.parametrize("kind", ["config", "docs", "git", "metrics", "rag", "skills"])
def test_a_process_forks_while_it_watches(kind: str, tmp_path: Path) -> None:
    """S-02 to S-05, S-07: a child that does nothing ends at once, and one that serves has its own threads."""
    make_repository(tmp_path)
    skill(tmp_path / "skills" / "pdf", "Fill forms")
    (tmp_path / "site").mkdir()
    for name in ("site/page.md", "site/other.md", "skills/pdf/notes.md", "skills/pdf/other.md"):
        (tmp_path / name).write_text("# Page\n", "utf-8")
    (tmp_path / "app.toml").write_text("one = 'none'\nother = 'none'\n", "utf-8")
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), kind, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
