"""Drives the demo's servers with the official Python client, over pipes and HTTP, in both eras, and tells what happens.

Every line that is printed was checked first, against the files on disk where there are any; what does not
hold ends the demo with an error.
"""

import asyncio
import base64
import gzip
import json
import os
import sys
import time
import warnings
from pathlib import Path
from textwrap import shorten

import mcp_types as types
from mcp import Client, MCPError
from mcp.client.session import MessageHandlerFnT
from mcp.client.stdio import StdioServerParameters
from mcp.client.subscriptions import ResourceUpdated
from mcp.shared.exceptions import MCPDeprecationWarning

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = str(Path(__file__).with_name("server.py"))
SERVERS = {
    "Python": StdioServerParameters(command=sys.executable, args=[PROGRAM]),
    "Node": StdioServerParameters(
        command=os.environ.get("NODE", "node"), args=[str(Path(__file__).with_name("server.mjs"))]
    ),
}
LEGACY, MODERN = "legacy", "2026-07-28"
DOCUMENTS = "repo://docs/{name}"
UPTIME = "metrics://server/uptime"
PATIENCE = 5.0
BOLD, DIM, PLAIN = ("\033[1m", "\033[2m", "\033[0m") if sys.stdout.isatty() else ("", "", "")


async def main() -> None:
    """Both languages and both eras, one server process each; then both eras at once, over HTTP."""
    warnings.simplefilter("ignore", MCPDeprecationWarning)  # the client warns of what only the older era has
    for language in SERVERS:
        await conversation(language, "handshake, as clients have done since 2024", LEGACY)
        await conversation(language, "no handshake, every request on its own", MODERN)
    await both_at_once()


async def conversation(language: str, style: str, mode: str) -> None:
    """One client, one server, everything that resources can do."""
    updates: asyncio.Queue[str] = asyncio.Queue()

    async with Client(SERVERS[language], mode=mode, message_handler=into(updates), cache=None) as client:
        print(f"\n{BOLD}{language}, revision {client.protocol_version}{PLAIN} {DIM}({style}){PLAIN}\n")
        await show_lists(client)
        await show_reads(client)
        await show_completion(client)
        await show_update(client, updates)
        await show_error(client)


def into(updates: asyncio.Queue[str]) -> MessageHandlerFnT:
    """A handler of messages that keeps the URIs of updates."""

    async def on_message(message: object) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            updates.put_nowait(message.params.uri)

    return on_message


async def both_at_once() -> None:
    """One HTTP endpoint, a client of each era, and one update that reaches both."""
    process = await asyncio.create_subprocess_exec(sys.executable, PROGRAM, "--http", stderr=asyncio.subprocess.PIPE)
    assert process.stderr is not None
    try:
        url = (await process.stderr.readline()).decode().split()[1]
        updates: asyncio.Queue[str] = asyncio.Queue()
        async with (
            Client(url, mode=LEGACY, message_handler=into(updates), cache=None) as legacy,
            Client(url, mode=MODERN, cache=None) as modern,
        ):
            print(f"\n{BOLD}Both at once{PLAIN} {DIM}(Streamable HTTP at {url}){PLAIN}\n")
            say("clients", f"{legacy.protocol_version} with a session, {modern.protocol_version} without one")
            await show_shared_update(legacy, updates, modern)
    finally:
        process.terminate()
        code = await process.wait()
    check(code == 0, "SIGTERM ends the server gracefully")
    say("end", "SIGTERM, and the server ends with code 0")


async def show_shared_update(legacy: Client, updates: asyncio.Queue[str], modern: Client) -> None:
    """Both watch the same resource in the way of their era."""
    await legacy.subscribe_resource(UPTIME)
    async with modern.listen(resource_subscriptions=[UPTIME]) as subscription, asyncio.timeout(PATIENCE):
        while not updates.empty():
            updates.get_nowait()
        uri, event = await asyncio.gather(updates.get(), anext(subscription))
    assert isinstance(event, ResourceUpdated)
    check(uri == event.uri == UPTIME, "one update reaches both clients")
    values = await asyncio.gather(uptime(legacy), uptime(modern))
    say("update", f"{UPTIME}: both were told, and read {values[0]:.3f} s and {values[1]:.3f} s")


async def show_lists(client: Client) -> None:
    """`resources/list`, page by page, and the templates."""
    pages, cursor = [], None
    while True:
        page = await client.list_resources(cursor=cursor)
        pages.append(page.resources)
        cursor = page.next_cursor
        if cursor is None:
            break
    resources = [resource for page in pages for resource in page]
    on_disk = {path.name for path in ROOT.glob("*.md")}
    check({r.name for r in resources if r.uri.startswith("repo://docs/")} == on_disk, "every document is listed once")
    check(len(pages) > 1, "the list has several pages")
    sizes = " + ".join(str(len(page)) for page in pages)
    say("list", f"{len(resources)} resources on {len(pages)} pages ({sizes}), among them")
    for resource in [r for r in resources if not r.uri.startswith("repo://source/")]:
        size = f"{resource.size:,} bytes" if resource.size is not None else ""
        say("", f"  {resource.uri:<34}{resource.mime_type or '':<18}{size:>14}".rstrip())
    templates = (await client.list_resource_templates()).resource_templates
    say("templates", "   ".join(template.uri_template for template in templates))


async def show_reads(client: Client) -> None:
    """A text and a source file through templates, and a binary."""
    for uri, path in (
        ("repo://docs/README.md", ROOT / "README.md"),
        ("repo://source/hub/mod.rs", ROOT / "core/engine/src/hub/mod.rs"),
    ):
        (text,) = (await client.read_resource(uri)).contents
        assert isinstance(text, types.TextResourceContents)
        check(text.text == path.read_text("utf-8"), f"{uri} is the file on disk")
        first = shorten(text.text.splitlines()[0], 40, placeholder=" …")
        say("read", f"{uri}: {text.mime_type}, {len(text.text):,} characters, “{first}”")
    (blob,) = (await client.read_resource("repo://documents.json.gz")).contents
    assert isinstance(blob, types.BlobResourceContents)
    data = base64.b64decode(blob.blob, validate=True)
    texts = json.loads(gzip.decompress(data))
    check(texts["README.md"] == (ROOT / "README.md").read_text("utf-8"), "the archive holds the documents")
    say("read", f"repo://documents.json.gz: {blob.mime_type}, {len(data):,} bytes, unpacks to {len(texts)} documents")


async def show_completion(client: Client) -> None:
    """What a user may mean who has typed a `C`."""
    template = types.ResourceTemplateReference(uri=DOCUMENTS)
    answer = (await client.complete(template, {"name": "name", "value": "C"})).completion
    check(answer.values == sorted(path.name for path in ROOT.glob("C*.md")), "the completion has the right names")
    say("complete", f"{DOCUMENTS} with “C”: {', '.join(answer.values)}")


async def show_update(client: Client, updates: asyncio.Queue[str]) -> None:
    """Subscribes, waits until the server tells of a change, and reads again."""
    before = await uptime(client)
    began = time.monotonic()
    async with asyncio.timeout(PATIENCE):
        uri = await next_update(client, updates)
    waited = round((time.monotonic() - began) * 1000)
    after = await uptime(client)
    check(uri == UPTIME and after > before, "the update names the resource, and the value is new")
    say("subscribe", f"{UPTIME}: {before:.3f} s, updated after {waited} ms, read again: {after:.3f} s")


async def next_update(client: Client, updates: asyncio.Queue[str]) -> str:
    """The URI of the next update, subscribed to in the way of the connection's era."""
    if client.protocol_version == MODERN:
        async with client.listen(resource_subscriptions=[UPTIME]) as subscription:
            event = await anext(subscription)
            assert isinstance(event, ResourceUpdated)
            return event.uri
    await client.subscribe_resource(UPTIME)
    uri = await updates.get()
    await client.unsubscribe_resource(UPTIME)
    return uri


async def uptime(client: Client) -> float:
    """The live value."""
    (content,) = (await client.read_resource(UPTIME)).contents
    assert isinstance(content, types.TextResourceContents)
    return float(json.loads(content.text)["seconds"])


async def show_error(client: Client) -> None:
    """What is not there is an error with the revision's own code."""
    missing = "repo://docs/NOTHING.md"
    try:
        await client.read_resource(missing)
    except MCPError as error:
        check(error.error.data["uri"] == missing, "the error names the resource")
        say("not found", f"{missing}: {error.error.code} {error.error.message}")
    else:
        check(False, "a missing document is an error")


def say(step: str, text: str) -> None:
    """One line of the transcript."""
    print(f"  {BOLD}{step:<11}{PLAIN}{text}")


def check(holds: bool, what: str) -> None:
    """Ends the demo if something is not as it must be."""
    if not holds:
        sys.exit(f"demo failed: expected that {what}")


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except* (MCPError, TimeoutError) as errors:
        sys.exit(f"demo failed: {errors.exceptions[0]!r}")
