"""A server made from a catalogue fixture through the public API, with functions that answer on command."""

import asyncio
import base64
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from mcp_resources import (
    AccessDeniedError,
    Audio,
    CacheHint,
    Completion,
    Contents,
    Context,
    CustomError,
    Elicit,
    ElicitUrl,
    Embedded,
    Icon,
    Image,
    InputDeclinedError,
    InputRequired,
    InvalidParameterError,
    InvalidUriError,
    ListPage,
    ListRoots,
    MethodResult,
    Param,
    PromptMessage,
    PromptResult,
    RateLimitedError,
    ReadResult,
    Resource,
    ResourceLink,
    ResourceNotFoundError,
    ResourceServer,
    Sample,
    SizeExceededError,
    Text,
    ToolResult,
    Variable,
)

Json = dict[str, Any]


class Open:
    """A call of a registered function."""

    def __init__(self, on: str, context: Context) -> None:
        self.on = on
        self.context = context
        self.answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()

    def respond(self, answer: Json) -> None:
        """Lets the function return, or raise."""
        self.answer.set_result(answer)


class Author:
    """The registered functions: each records its call, and waits for the answer.

    Args:
        generates: whether readers are generators.
    """

    def __init__(self, *, generates: bool) -> None:
        self.generates = generates
        self.open: list[Open] = []
        self.events: list[Json] = []
        self.on = ""
        """The connection that is being driven."""
        self.leaving = False
        """Drops the calls of a connection that has ended."""

    def reader(self, name: str) -> Callable[..., Any]:
        async def read(ctx: Context, **params: object) -> object:
            return value(await self._called("read", self._read(name, ctx, params), ctx))

        async def generate(ctx: Context, **params: object) -> AsyncIterator[str | bytes]:
            answer = await self._called("read", self._read(name, ctx, params), ctx)
            for chunk in answer.get("chunks", ()):
                yield chunk if isinstance(chunk, str) else base64.b64decode(chunk["blob"])
            if "then" in answer or "chunks" not in answer:
                value(answer.get("then", answer))

        return generate if self.generates else read

    def completer(self, name: str, variable: str) -> Callable[..., Awaitable[object]]:
        async def complete(value_so_far: str, arguments: dict[str, str], ctx: Context) -> object:
            event = {"handler": name, "variable": variable, "value": value_so_far}
            return value(await self._called("complete", event | _present(arguments=arguments), ctx))

        return complete

    def lister(self, name: str, *, pages: bool) -> Callable[..., Awaitable[object]]:
        async def whole(ctx: Context) -> object:
            return value(await self._called("list", {"handler": name}, ctx))

        async def paged(cursor: str | None, ctx: Context) -> object:
            return value(await self._called("list", {"handler": name} | _present(cursor=cursor), ctx))

        return paged if pages else whole

    def method(self, name: str, method: str) -> Callable[..., Awaitable[object]]:
        async def call(params: Json | None, ctx: Context) -> object:
            event = {"handler": name, "method": method} | _present(params=params) | _round(ctx)
            return value(await self._called("call", event, ctx))

        return call

    def named(self, kind: str, handler: str, name: str) -> Callable[..., Awaitable[object]]:
        """The function of a tool or prompt, `kind`."""

        async def call(arguments: Json, ctx: Context) -> object:
            event = {"handler": handler, "name": name} | _present(arguments=arguments) | _round(ctx)
            answer = await self._called(kind, event, ctx)
            return _OF_NAMED[next(name for name in answer if name in _OF_NAMED)](answer)

        return call

    def _read(self, name: str, ctx: Context, params: Json) -> Json:
        return {"handler": name, "uri": ctx.uri} | _present(params=params) | _round(ctx)

    async def _called(self, kind: str, event: Json, ctx: Context) -> Json:
        call = Open(self.on, ctx)
        number = len(self.open)
        self.open.append(call)
        self.events.append({kind: event | _present(meta=ctx.meta)})
        while True:
            try:
                return await asyncio.shield(call.answer)
            except asyncio.CancelledError:
                self.events.append({"cancelled": number})
                if self.leaving:
                    raise


def _round(ctx: Context) -> Json:
    inputs = {key: response.value for key, response in ctx.inputs.items()}
    return _present(inputs=inputs, state=ctx.state)


def server(catalog: Json, author: Author) -> ResourceServer:
    """The server of a catalogue, with everything registered."""
    given = catalog["server"]
    own = {"title": "title", "description": "description", "websiteUrl": "website_url", "instructions": "instructions"}
    options = {word: given[name] for name, word in own.items() if name in given} | _options(catalog["options"])
    made = ResourceServer(given["name"], version=given["version"], icons=icons(given), **options)
    for extension in catalog.get("extensions", ()):
        name, method = extension["handler"], extension["method"]
        capability = extension.get("capability")
        made.method(
            method,
            name_param=extension.get("nameParam"),
            capability=None if capability is None else (capability[0], capability[1]),
            lists=extension.get("listKind"),
            timeout=extension.get("timeout"),
        )(author.method(name, method))
    for entry in [*catalog.get("resources", ()), *catalog.get("templates", ())]:
        add(made, entry, author)
    add_named(made, catalog, author)
    return made


def add(made: ResourceServer, entry: Json, author: Author) -> None:
    """Registers one entry."""
    if "uriTemplate" in entry:
        _add_template(made, entry, author)
    elif "page" in entry:
        made.ui(entry["uri"], html=entry["text"], **details(entry), **_snake(entry["page"]))
    elif "text" in entry:
        made.add_resource(resource(entry), text=entry["text"])
    elif "blob" in entry:
        made.add_resource(resource(entry), bytes=base64.b64decode(entry["blob"]))
    else:
        made.add_resource(resource(entry), read=author.reader(entry["handler"]))


def add_named(made: ResourceServer, entries: Json, author: Author) -> None:
    """Registers tools and prompts, with the schemas and arguments that the entries have."""
    for entry in entries.get("tools", ()):
        given = _named_details(entry)
        if "annotations" in entry:
            given["annotations"] = _snake(entry["annotations"])
        given |= _snake({name: entry[name] for name in ("ui", "uiVisibility") if name in entry})
        made.add_tool(
            author.named("tool", entry["handler"], entry["name"]),
            entry["name"],
            input_schema=entry.get("inputSchema", {"type": "object"}),
            output_schema=entry.get("outputSchema"),
            **given,
        )
    for entry in entries.get("prompts", ()):
        function = author.named("prompt", entry["handler"], entry["name"])
        arguments = entry.get("arguments", ())
        prompt = made.add_prompt(function, entry["name"], arguments=arguments, **_named_details(entry))
        for argument in entry.get("complete", ()):
            prompt.complete(argument)(author.completer(entry["handler"], argument))


def _snake(members: Json) -> Json:
    """Members with names as Python has them, also those inside."""
    return {
        re.sub("[A-Z]", lambda one: "_" + one[0].lower(), name): _snake(member) if isinstance(member, dict) else member
        for name, member in members.items()
    }


def _named_details(entry: Json) -> Json:
    words = {"title": "title", "description": "description", "_meta": "meta", "scopes": "scopes"}
    given = {word: entry[name] for name, word in words.items() if name in entry}
    return given | ({"icons": icons(entry)} if "icons" in entry else {})


def edit(made: ResourceServer, step: Json, author: Author) -> None:
    """All of an edit, or nothing."""
    with made.batch():
        for removed in step.get("remove", ()):
            match removed:
                case {"tool": name}:
                    made.remove_tool(name)
                case {"prompt": name}:
                    made.remove_prompt(name)
                case _:
                    (made.remove_template if "{" in removed else made.remove_resource)(removed)
        for entry in step.get("add", ()):
            add(made, entry, author)
        add_named(made, step, author)


def resource(entry: Json) -> Resource:
    size = {"size": entry["size"]} if "size" in entry else {}
    return Resource(entry["uri"], **details(entry), **size)


def details(entry: Json) -> Json:
    """The details of a resource or template."""
    words = {
        "name": "name",
        "title": "title",
        "description": "description",
        "mimeType": "mime_type",
        "_meta": "meta",
        "ttlMs": "ttl_ms",
        "cacheScope": "cache_scope",
        "children": "children",
    }
    given = {word: entry[name] for name, word in words.items() if name in entry}
    annotations = entry.get("annotations", {})
    hints = {"audience": "audience", "priority": "priority", "lastModified": "last_modified"}
    given |= {word: annotations[name] for name, word in hints.items() if name in annotations}
    return given | ({"icons": icons(entry)} if "icons" in entry else {})


def icons(entry: Json) -> list[Icon]:
    return [
        Icon(icon["src"], mime_type=icon.get("mimeType"), sizes=icon.get("sizes", ()), theme=icon.get("theme"))
        for icon in entry.get("icons", ())
    ]


def value(answer: Json) -> object:
    """The result of a function for an answer; it may raise instead."""
    return next(_VALUES[name](answer) for name in _VALUES if name in answer)


def _add_template(made: ResourceServer, entry: Json, author: Author) -> None:
    given = entry.get("vars", {})
    said = ("description", "type", "values", "pattern")
    parameters = {
        name: Param(**{word: variable[word] for word in said if word in variable})
        for name, variable in given.items()
        if any(word in variable for word in said)
    }
    how = ("kind", "policy", "empty", "chars")
    variables = {
        name: Variable(**{word: variable[word] for word in how if word in variable})
        for name, variable in given.items()
        if any(word in variable for word in how)
    }
    options = {"extra_query": entry["extraQuery"]} if "extraQuery" in entry else {}
    if "tool" in entry:
        options["tool"] = entry["tool"] or True
    name = entry["handler"]
    decorate = made.resource(entry["uriTemplate"], parameters=parameters, vars=variables, **details(entry), **options)
    handler = decorate(author.reader(name))
    for variable in entry.get("complete", ()):
        handler.complete(variable)(author.completer(name, variable))
    if "list" in entry:
        handler.list(author.lister(name, pages=entry["list"] == "paged"))
    if "access" in entry:
        handler.access(_access(entry["access"]))


def _access(decided: Json) -> Callable[[str, dict[str, Any]], Awaitable[bool]]:
    """A function that decides as a catalogue says. On the event loop: no thread has to be waited for."""
    variable, may = decided["variable"], decided["may"]

    async def decide(principal: str, parameters: dict[str, Any]) -> bool:
        return principal in may.get(parameters[variable], ())

    return decide


def _options(given: Json) -> Json:
    options = dict(given)
    for name in ("list_cache", "discover_cache"):
        if name in options:
            options[name] = CacheHint(options[name]["ttlMs"], options[name]["cacheScope"])
    if "keys" in options:
        options["keys"] = [key.encode() for key in options["keys"]]
    if "extension_capabilities" in options:
        options["extensions"] = dict(options.pop("extension_capabilities"))
    return options


def _entries(answer: Json) -> object:
    entries = [_contents(entry) for entry in answer["contents"]]
    if "ttlMs" in answer:
        return ReadResult(entries, ttl_ms=answer["ttlMs"], cache_scope=answer["cacheScope"])
    return entries or ReadResult([])


def _completion(answer: Json) -> object:
    given = answer["completion"]
    if isinstance(given, list):
        return given
    return Completion(given["values"], total=given.get("total"), has_more=given.get("has_more"))


def _listed(answer: Json) -> object:
    items = [resource(item) for item in answer["listed"]]
    return ListPage(items, answer["next"]) if "next" in answer else items


def _tool_result(answer: Json) -> object:
    blocks = [_block(block) for block in answer.get("content", ())]
    structured = {"structured": answer["structured"]} if "structured" in answer else {}
    return ToolResult(blocks, is_error=answer.get("isError", False), meta=answer.get("_meta"), **structured)


def _prompt_result(answer: Json) -> object:
    messages = [PromptMessage(_block(message["content"]), message["role"]) for message in answer["messages"]]
    return PromptResult(messages, description=answer.get("description"), meta=answer.get("_meta"))


def _block(block: Json) -> Text | Image | Audio | ResourceLink | Embedded:
    hints = {"audience": "audience", "priority": "priority", "lastModified": "last_modified"}
    given = block.get("annotations", {})
    about = {word: given[name] for name, word in hints.items() if name in given} | _present(meta=block.get("_meta"))
    match block:
        case {"type": "text", "text": text}:
            return Text(text, **about)
        case {"type": "image", "data": data, "mimeType": mime_type}:
            return Image(base64.b64decode(data), mime_type, **about)
        case {"type": "audio", "data": data, "mimeType": mime_type}:
            return Audio(base64.b64decode(data), mime_type, **about)
        case {"type": "resource_link"}:
            return ResourceLink(resource(block))
        case {"type": "resource", "resource": entry}:
            return Embedded(_contents(entry), **about)
    raise ValueError(block)


def _raw(answer: Json) -> object:
    if len(answer) == 1:
        return answer["raw"]
    return MethodResult(answer["raw"], result_type=answer.get("resultType"), meta=answer.get("_meta"))


def _required(answer: Json) -> object:
    given = answer["input_required"]
    return InputRequired({key: _ask(ask) for key, ask in given["requests"].items()}, state=given.get("state"))


def _raised(answer: Json) -> object:
    raise RuntimeError(answer["raises"])


def _failed(answer: Json) -> object:
    given = answer["error"]
    raise _error({"kind": given} if isinstance(given, str) else given)


def _contents(entry: Json) -> Contents:
    body = entry["text"] if "text" in entry else base64.b64decode(entry["blob"])
    return Contents(body, uri=entry.get("uri"), mime_type=entry.get("mimeType"), meta=entry.get("_meta"))


def _ask(ask: Json) -> Elicit | ElicitUrl | Sample | ListRoots:
    match ask:
        case {"form": form}:
            return Elicit(form["message"], form["schema"])
        case {"url": page}:
            return ElicitUrl(page["message"], page["url"])
        case {"sampling": params}:
            return Sample(params)
    return ListRoots()


def _error(given: Json) -> Exception:
    match given:
        case {"kind": "not_found"}:
            return ResourceNotFoundError()
        case {"kind": "access_denied"}:
            return AccessDeniedError()
        case {"kind": "invalid_uri"}:
            return InvalidUriError("no")
        case {"kind": "size_exceeded"}:
            return SizeExceededError(given["limit"], given.get("size"))
        case {"kind": "rate_limited"}:
            return RateLimitedError(given["retryAfterMs"])
        case {"kind": "invalid_parameter"}:
            return InvalidParameterError(given["parameter"], given["expected"])
        case {"kind": "input_declined"}:
            return InputDeclinedError()
        case {"kind": "custom"}:
            return CustomError(given["code"], given["message"], given.get("data"))
    return OSError("the disk is on fire")


def _present(**members: object) -> Json:
    return {name: member for name, member in members.items() if member not in (None, {}, "")}


_VALUES: dict[str, Callable[[Json], object]] = {
    "text": lambda answer: answer["text"],
    "blob": lambda answer: base64.b64decode(answer["blob"]),
    "json": lambda answer: answer["json"],
    "contents": _entries,
    "completion": _completion,
    "listed": _listed,
    "raw": _raw,
    "input_required": _required,
    "raises": _raised,
    "error": _failed,
}
_OF_NAMED: dict[str, Callable[[Json], object]] = _VALUES | {
    "content": _tool_result,
    "structured": _tool_result,
    "messages": _prompt_result,
    "raw": lambda answer: MethodResult(answer["raw"], result_type=answer.get("resultType"), meta=answer.get("_meta")),
    "completion": lambda answer: Completion(answer["completion"]),
}
"""Results of tools and prompts. Each has a class of its own, so that the core can say which do not fit."""
