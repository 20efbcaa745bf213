"""The conformance fixture server in Python: what it holds is the same in every language."""

import asyncio
import base64
import json
import sys
from itertools import count

from mcp_resources import (
    Contents,
    Context,
    Elicit,
    Icon,
    InputRequired,
    Limits,
    Resource,
    ResourceNotFoundError,
    ResourceServer,
)

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
UNICODE = 'Grüße, 世界! 🦀 \u2028\u2029 "quotes" \\back\\slash\\ \ttab\r\nnewline \x00 nul \x1f unit \x7f del end'
WORDS = ["alpha", "alphabet", "beta", "gamma", *(f"item-{number:03}" for number in range(150))]
FILES = {"alice": ["a1.txt", "a2.txt"], "bob": ["b1.txt"]}
NAME_FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
DYNAMIC = Resource(
    "test://dynamic", name="dynamic", mime_type="text/plain", description="Here only while it is switched on"
)

server = ResourceServer("conformance-python", version="1.0.0", limits=Limits(page=20))


def add_constants() -> None:
    for uri, mime_type, content, description in (
        ("test://static-text", "text/plain", "This is the content of the static text resource.", "A static text"),
        ("test://static-binary", "image/png", PNG, "A static picture"),
        ("test://unicode", "text/plain", UNICODE, "Characters that need care"),
        ("test://empty-text", "text/plain", "", "An empty text"),
        ("test://empty-blob", "application/octet-stream", b"", "No bytes"),
        ("test://all-bytes", "application/octet-stream", bytes(range(256)), "Every byte"),
        ("test://large-text", "text/plain", "abcdefghij" * 100_000, "A megabyte of text"),
    ):
        resource = Resource(uri, name=uri.removeprefix("test://"), mime_type=mime_type, description=description)
        if isinstance(content, str):
            server.add_resource(resource, text=content)
        else:
            server.add_resource(resource, bytes=content)
    for number in range(60):
        item = Resource(
            f"test://page/{number:03}",
            name=f"page-{number:03}",
            mime_type="text/plain",
            description=f"Item {number:03} of a long list",
        )
        server.add_resource(item, text=f"Page item {number:03}")


def add_numbered() -> None:
    def numbered(x: str) -> str:
        """One of many templates."""
        return x

    with server.batch():
        for number in range(30):
            name = f"tpl-{number:02}"
            server.resource(f"test://{name}/{{x}}", name=name, mime_type="text/plain")(numbered)


add_constants()
add_numbered()
versions = count(1)
watched = next(versions)
is_dynamic = False


@server.resource("test://watched-resource", name="watched-resource", mime_type="text/plain")
def watched_resource() -> str:
    """A text that changes."""
    return f"Version {watched}"


@server.resource("test://multi", mime_type="text/plain")
def multi() -> list[Contents]:
    """Two contents."""
    return [
        Contents("part a", uri="test://multi/a", mime_type="text/plain"),
        Contents(b"\x00\xff", uri="test://multi/b", mime_type="application/octet-stream"),
    ]


@server.resource(
    "test://annotated",
    title="Annotated Resource",
    mime_type="text/markdown",
    size=11,
    audience=["user", "assistant"],
    priority=0.8,
    last_modified="2025-01-12T15:00:58Z",
    icons=[Icon("https://example.com/icon.png", mime_type="image/png", sizes=["48x48"])],
    meta={"com.example/tag": "v1"},
)
async def annotated() -> Contents:
    """Everything that a resource can say of itself."""
    return Contents("# Annotated", meta={"com.example/content": "c1"})


@server.resource("test://error", mime_type="text/plain")
def error() -> str:
    """Its handler fails."""
    raise RuntimeError("secret-detail-4711")


@server.resource("test://input-required", name="input-required", mime_type="text/plain")
async def input_required(ctx: Context) -> str:
    """Needs the user's name."""
    answer = ctx.inputs.get("name")
    if answer is None or answer.action != "accept":
        raise InputRequired({"name": Elicit("What is your name?", NAME_FORM)}, state="name")
    return f"Hello, {answer.content['name']}"


@server.resource("test://template/{id}/data", mime_type="application/json")
def template_data(id: str) -> str:
    """Data by id."""
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"}, separators=(",", ":"))


@template_data.complete("id")
def ids(value: str) -> list[str]:
    return [word for word in WORDS if word.startswith(value)]


@server.resource("test://users/{user}/files/{file}", mime_type="text/plain")
def user_file(user: str, file: str) -> str:
    """A user's file."""
    return f"{user}:{file}"


@user_file.complete("user")
def users(value: str) -> list[str]:
    return [user for user in FILES if user.startswith(value)]


@user_file.complete("file")
def files(value: str, arguments: dict[str, str]) -> list[str]:
    return [file for file in FILES.get(arguments.get("user", ""), []) if file.startswith(value)]


@server.resource("test://path/{+path}", mime_type="text/plain")
def path(path: str) -> str:
    """A path of many segments."""
    return path


@server.resource("test://slow/{ms}", mime_type="text/plain")
async def slow(ms: int) -> str:
    """Answers after a while."""
    await asyncio.sleep(ms / 1000)
    return f"slept {ms}"


@server.resource("test://trigger/{event}", mime_type="text/plain")
def trigger(event: str) -> str:
    """Simulates a change from outside."""
    global watched
    if event == "updated":
        watched = next(versions)
        server.notify_updated("test://watched-resource")
    elif event == "updated-other":
        server.notify_updated("test://static-text")
    elif event == "list-changed":
        switch_dynamic()
    elif event == "print":
        print("a stray print", flush=True)
    else:
        raise ResourceNotFoundError
    return "ok"


def switch_dynamic() -> None:
    global is_dynamic
    if is_dynamic:
        server.remove_resource(DYNAMIC.uri)
    else:
        server.add_resource(DYNAMIC, text="dynamic")
    is_dynamic = not is_dynamic


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--stdio"]:
            server.run()
        case ["--http", port]:
            server.run("http", port=int(port))
        case ["--sse", port]:
            server.run("http", port=int(port), sse24=True)
        case ["--asgi" | "--asgi-sse" as way, port]:
            import uvicorn

            uvicorn.run(server.asgi(sse24=way == "--asgi-sse"), port=int(port), log_level="warning")
        case _:
            sys.exit("usage: python_server.py --stdio | --http PORT | --sse PORT | --asgi PORT | --asgi-sse PORT")
