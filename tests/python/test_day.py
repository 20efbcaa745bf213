"""A day in fast motion: clients come, list, read, watch and go, while files, rows and commits change.

The clients are those of the package: some start a server of their own on pipes, most share one over HTTP, in both eras.
Some connections end without a goodbye. Each watch must hear of the last change before it ends. The shared server keeps
nothing of its clients: no session, subscription, descriptor or thread is left, and its memory is that after a
shorter day.

`make soak` sets MCP_RESOURCES_DAY to an hour, in seconds.
"""

import asyncio
import json
import os
import random
import re
import sqlite3
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import aclosing, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from listeners import modern, modern_headers, post
from mcp_resources import Client
from process import eventually
from repositories import commit, git

DAY = float(os.environ.get("MCP_RESOURCES_DAY", "8"))
WARM = DAY / 2 if DAY < 600 else 300.0
"""Seconds of the shorter day."""
CLIENTS = 8 if DAY < 600 else 24
"""How many there are at the same time."""
PATIENCE = 60.0
FILES, ROWS = 12, 12
MEMORY = 3 << 20
"""The bytes by which the memory may grow after the shorter day.

The allocator keeps the pages of the busiest moment, which comes sooner or later: after 500 clients the memory of the
server stayed the same within 0.1 MiB, after 40 clients it was 1.5 MiB less. A leak of one kibibyte for each client
would be 20 MiB in an hour."""


class World:
    """What is served. `last` has the number of the last change of each URI; all contents are such numbers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "folder"
        self.folder.mkdir()
        self.project = folder / "project"
        self.project.mkdir()
        git(self.project, "init", "-q", "-b", "main")
        self.database = folder / "shop.db"
        with closing(sqlite3.connect(self.database)) as shop:
            shop.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, number INTEGER NOT NULL)")
            shop.executemany("INSERT INTO items VALUES (?, 0)", ((row,) for row in range(ROWS)))
            shop.commit()
        self.last: dict[str, int] = {}
        self.number = 0
        for file in range(FILES):
            self.change_file(file)
        for row in range(ROWS):
            self.change_row(row)
        self.commit()

    @property
    def words(self) -> list[str]:
        """The arguments of `serve`."""
        return [f"files:{self.folder}", f"git:{self.project}", f"db:shop=sqlite:{self.database},items"]

    def change(self) -> None:
        """One change, of a file more often than of a row, and of a row more often than a commit."""
        die = random.random()
        if die < 0.7:
            self.change_file(random.randrange(FILES))
        elif die < 0.75:
            self.come_or_go()
        elif die < 0.95:
            self.change_row(random.randrange(ROWS))
        else:
            self.commit()

    def change_file(self, file: int) -> None:
        number = self._next()
        path = self.folder / f"f{file}.txt"
        if random.random() < 0.5:
            path.write_text(f"{number}\n")
        else:
            beside = self.folder / f".f{file}.txt.new"
            beside.write_text(f"{number}\n")
            beside.rename(path)
        self.last[f"file:///folder/f{file}.txt"] = number

    def come_or_go(self) -> None:
        """A file comes, or goes."""
        path = self.folder / f"passing{random.randrange(4)}.txt"
        if path.exists():
            path.unlink()
        else:
            path.write_text("here\n")

    def change_row(self, row: int) -> None:
        number = self._next()
        with closing(sqlite3.connect(self.database, timeout=PATIENCE)) as shop:
            shop.execute("UPDATE items SET number = ? WHERE id = ?", (number, row))
            shop.commit()
        self.last[f"db:///shop/items/{row}"] = number

    def commit(self) -> None:
        number = self._next()
        (self.project / "number.txt").write_text(f"{number}\n")
        commit(self.project, f"Commit {number}")
        for rest in ("blob/HEAD/number.txt", "log?n=1"):
            self.last[f"git:///project/{rest}"] = number

    def _next(self) -> int:
        self.number += 1
        return self.number


def number_of(uri: str, contents: object) -> int:
    """The number of the change that these contents are of; -1 if there are none, such as amid a write."""
    if not isinstance(contents, str) or not contents.strip():
        return -1
    if uri.startswith("file:") or "/blob/" in uri:
        return int(contents)
    value = json.loads(contents)
    return int(value["number"] if uri.startswith("db:") else value["commits"][0]["subject"].split()[1])


class Day:
    """So many seconds of clients and changes."""

    def __init__(self, world: World, reached: "Reached", program: Path) -> None:
        self.world, self.reached = world, reached
        self.own = [str(program), "serve", *world.words]
        self.visits = self.heard = 0
        self.is_over = False

    async def last(self, seconds: float) -> None:
        self.is_over = False
        async with asyncio.TaskGroup() as tasks:
            changes = tasks.create_task(self._change())
            visitors = [tasks.create_task(self._visitors()) for _ in range(CLIENTS)]
            await asyncio.sleep(seconds)
            self.is_over = True
            await asyncio.wait(visitors)
            changes.cancel()

    async def _change(self) -> None:
        while True:
            await asyncio.to_thread(self.world.change)
            await asyncio.sleep(random.random() * 0.04)

    async def _visitors(self) -> None:
        """One client after the other."""
        while not self.is_over:
            self.visits += 1
            die = random.random()
            if die < 0.1:
                await self._leave_rudely()
            else:
                await self._visit(self.own if die < 0.25 else self.reached.url)

    async def _visit(self, server: list[str] | str) -> None:
        async with Client(server, revision=random.choice([None, "2025-11-25"])) as client:
            listed = {resource.uri async for resource in client.list()}
            # Not the files: a directory may show a name not at all while it is replaced.
            assert {"db:///shop/items", "file:///folder/", "git:///project/log"} <= listed
            for uri in random.sample(sorted(self.world.last), 4):
                known = self.world.last[uri]
                found = number_of(uri, await client.read(uri))
                assert found == -1 or found >= known, f"{uri} is {found}, not {known} or later"
            watched = random.sample(sorted(self.world.last), random.randint(1, 3))
            await asyncio.gather(*(self._watch(client, uri, 2 * random.random()) for uri in watched))

    async def _watch(self, client: Client, uri: str, seconds: float) -> None:
        """Watches for so long, and then until the last change before has been heard."""
        heard = -1
        is_news = asyncio.Event()

        async def listen() -> None:
            nonlocal heard
            async with aclosing(client.watch(uri)) as changes:
                async for change in changes:
                    heard = max(heard, number_of(uri, change.contents))
                    is_news.set()

        async with asyncio.TaskGroup() as tasks:
            listening = tasks.create_task(listen())
            await asyncio.sleep(seconds)
            wanted = self.world.last[uri]
            end = time.monotonic() + PATIENCE
            while heard < wanted:
                is_news.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(is_news.wait(), 1)
                assert time.monotonic() < end, f"the watch of {uri} heard of {heard}, not of {wanted}"
            self.heard += 1
            listening.cancel()

    async def _leave_rudely(self) -> None:
        """A listen whose connection ends without a word."""
        uris = random.sample(sorted(self.world.last), 3)
        method = "subscriptions/listen"
        message = modern(method, {"notifications": {"resourceSubscriptions": uris}})
        answer = await post(self.reached.port, message, modern_headers(method))
        try:
            async for message in answer.messages():
                assert message["method"].endswith("subscriptions/acknowledged"), message
                break
        finally:
            answer.close()


@dataclass(frozen=True)
class Held:
    """What a process holds."""

    descriptors: int
    threads: int
    memory: int

    @staticmethod
    def by(process: int) -> "Held":
        """The memory is its own alone: PSS without the pages of files, such as the program, that others may share."""
        folder = Path(f"/proc/{process}")
        (kib,) = re.findall(r"^Pss_Anon:\s+(\d+) kB$", (folder / "smaps_rollup").read_text(), re.MULTILINE)
        return Held(len([*(folder / "fd").iterdir()]), len([*(folder / "task").iterdir()]), int(kib) << 10)

    def is_within(self, other: "Held") -> bool:
        """Whether it holds no more descriptors and threads."""
        return self.descriptors <= other.descriptors and self.threads <= other.threads


class Reached:
    """The server that clients share."""

    def __init__(self, process: "subprocess.Popen[str]", port: int, status: str) -> None:
        self.process, self.port, self._status = process, port, status
        self.url = f"http://127.0.0.1:{port}/mcp"

    def is_left(self) -> bool:
        """Whether no connection, session or subscription is left, by its own metrics."""
        with urllib.request.urlopen(f"{self._status}/metrics", timeout=PATIENCE) as answer:
            text = answer.read().decode()
        gauges = re.findall(
            r"^mcp_resources_(?:connections\{.*\}|subscriptions|watched_uris) (\d+)$", text, re.MULTILINE
        )
        assert len(gauges) > 3, text
        return all(count == "0" for count in gauges)


@contextmanager
def reaching(program: Path, words: list[str], errors: Path) -> Iterator[Reached]:
    command = [str(program), "serve", *words, "--http", "127.0.0.1:0", "--status", "127.0.0.1:0"]
    with errors.open("wb") as sink:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=sink, text=True)
    try:
        found: dict[str, str] = {}

        def is_serving() -> bool:
            found.update(re.findall(r"(serving|metrics) at (http://[^/\s]+)", errors.read_text()))
            assert process.poll() is None, errors.read_text()
            return len(found) == 2

        assert eventually(is_serving, PATIENCE), errors.read_text()
        yield Reached(process, int(found["serving"].rpartition(":")[2]), found["metrics"])
    finally:
        process.kill()
        process.wait()


def left(reached: Reached) -> Held:
    """What the server holds when all clients have gone."""
    assert eventually(reached.is_left, PATIENCE), "connections, sessions or subscriptions are left"
    return Held.by(reached.process.pid)


def rested(reached: Reached, fresh: Held) -> Held:
    """The same when it has no more descriptors and threads than at first: a thread that waits for work ends soon."""
    left(reached)
    server = reached.process.pid
    assert eventually(lambda: Held.by(server).is_within(fresh), PATIENCE), f"{Held.by(server)}, and at first {fresh}"
    return Held.by(server)


def children() -> set[int]:
    """The processes that this one has started."""
    lists = [path.read_text().split() for path in Path("/proc/self/task").glob("*/children")]
    return {int(process) for found in lists for process in found}


def test_a_day_leaves_nothing(program: Path, tmp_path: Path) -> None:
    """S-13: every watch hears of the last change, and the clients of a day leave nothing in a server."""
    world = World(tmp_path)
    others = children()
    with reaching(program, world.words, tmp_path / "errors") as reached:
        fresh = Held.by(reached.process.pid)
        day = Day(world, reached, program)
        asyncio.run(day.last(WARM))
        warm, own = left(reached), Held.by(os.getpid())
        asyncio.run(day.last(DAY))
        after = rested(reached, fresh)
        print(f"{day.visits} clients, {day.heard} watches, {world.number} changes: {fresh}, {warm}, {after}")
        assert after.memory <= warm.memory + MEMORY, f"{after}, and after the shorter day {warm}"
        # The side of the clients: their servers on pipes have ended, and so have their connections.
        assert eventually(lambda: children() <= others | {reached.process.pid}, PATIENCE)
        assert eventually(lambda: Held.by(os.getpid()).is_within(own), PATIENCE), f"{Held.by(os.getpid())}, not {own}"
