"""What the official Python client sees of a server of files: `official.py ERA FOLDER COMMAND… | URL`.

ERA is `legacy` or `modern`; FOLDER is what is served, and is changed here. What is printed was checked first.
"""

import asyncio
import sys
import time
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import mcp_types as types
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp.client.subscriptions import ResourceUpdated
from mcp.shared.exceptions import MCPDeprecationWarning

ROOT = "file:///project/"
FILES = "file:///{root}/{+path}"
PATIENCE = 10.0


async def main(era: str, folder: Path, target: list[str]) -> None:
    """Lists, reads, completes, watches a file that changes, and asks for one that is hidden."""
    warnings.simplefilter("ignore", MCPDeprecationWarning)  # of what only the older era has
    updates: asyncio.Queue[str] = asyncio.Queue()

    async def on_message(message: object) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            updates.put_nowait(message.params.uri)

    is_url = target[0].startswith("http://")
    server = target[0] if is_url else StdioServerParameters(command=target[0], args=target[1:])
    mode = "legacy" if era == "legacy" else "2026-07-28"
    async with Client(server, mode=mode, message_handler=on_message, cache=None) as client:
        say("", f"official Python client, revision {client.protocol_version}, {'HTTP' if is_url else 'stdio'}")
        await lists(client, folder)
        await reads(client, folder)
        await watches(client, folder, updates)
        await is_refused(client)


async def lists(client: Client, folder: Path) -> None:
    """All pages, and the templates."""
    began = time.monotonic()
    page = await client.list_resources()
    took = (time.monotonic() - began) * 1000
    resources, pages = list(page.resources), 1
    while page.next_cursor is not None:
        page = await client.list_resources(cursor=page.next_cursor)
        resources += page.resources
        pages += 1
    uris = {resource.uri for resource in resources}
    there = {f"{ROOT}{path.relative_to(folder).as_posix()}" for path in folder.rglob("*") if path.is_file()}
    hidden = {uri for uri in there if "/." in uri}
    check(there - hidden <= uris and not hidden & uris, "every file is listed but the hidden ones")
    say("list", f"{len(resources)} resources on {pages} page{'s' * (pages > 1)}, the first after {took:.0f} ms")
    templates = (await client.list_resource_templates()).resource_templates
    completed = await client.complete(
        types.ResourceTemplateReference(uri=FILES), {"name": "path", "value": "src/"}, {"root": "project"}
    )
    say("templates", "   ".join(template.uri_template for template in templates))
    say("complete", f"path “src/”: {', '.join(completed.completion.values)}")


async def reads(client: Client, folder: Path) -> None:
    """A file, some of its lines, and a directory."""
    text = await read(client, f"{ROOT}src/main.ts")
    check(text == (folder / "src/main.ts").read_text("utf-8"), "the text is the file's")
    say("read", f"{ROOT}src/main.ts: {text.strip()}")
    contents = (await client.read_resource(f"{ROOT}src")).contents
    say("read", f"{ROOT}src: {', '.join(str(content.uri).removeprefix(ROOT) for content in contents)}")


async def watches(client: Client, folder: Path, updates: asyncio.Queue[str]) -> None:
    """A file that changes while it is watched, in the way of the era."""
    uri = f"{ROOT}src/main.ts"
    async with asyncio.timeout(PATIENCE), subscribed(client, uri, updates) as told:
        began = time.monotonic()
        new = folder / "main.new"  # renamed, so that nobody reads half of it
        new.write_text(f"export const answer = {time.time_ns() % 1000};\n", "utf-8")
        new.replace(folder / "src/main.ts")
        check(await told() == uri, "the update names the file")
        took = (time.monotonic() - began) * 1000
        say("watch", f"{uri}: changed, told after {took:.0f} ms, read again: {(await read(client, uri)).strip()}")


@asynccontextmanager
async def subscribed(
    client: Client, uri: str, updates: asyncio.Queue[str]
) -> AsyncIterator[Callable[[], Awaitable[str]]]:
    """Gives what waits for the next update."""
    if client.protocol_version != "2026-07-28":
        await client.subscribe_resource(uri)
        yield updates.get
        await client.unsubscribe_resource(uri)
        return
    async with client.listen(resource_subscriptions=[uri]) as subscription:

        async def told() -> str:
            event = await anext(subscription)
            assert isinstance(event, ResourceUpdated)
            return event.uri

        yield told


async def is_refused(client: Client) -> None:
    """What is hidden answers as what is not there."""
    codes = []
    for name in (".env", "nothing.txt"):
        try:
            await client.read_resource(f"{ROOT}{name}")
            check(False, f"{name} is not served")
        except MCPError as error:
            codes.append(error.error.code)
    check(codes[0] == codes[1], "both answers are alike")
    say("not found", f"{ROOT}.env and {ROOT}nothing.txt: {codes[0]} both")


async def read(client: Client, uri: str) -> str:
    """A text."""
    (content,) = (await client.read_resource(uri)).contents
    assert isinstance(content, types.TextResourceContents)
    return content.text


def say(step: str, text: str) -> None:
    """One line."""
    print(f"  {step:<11}{text}" if step else f"\n{text}\n", flush=True)


def check(holds: bool, what: str) -> None:
    """Ends the demo if something is not as it must be."""
    if not holds:
        sys.exit(f"demo failed: expected that {what}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]))
