"""Others' files, which are not kept here: the official schemas and examples of the protocol.

They are looked for in the directory that `MCP_RESOURCES_VECTORS` names, then in `target/vectors`, where `make setup`
writes what it finds in packages.
"""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parents[2]
MODERN = "2026-07-28"
NEWEST_LEGACY = "2025-11-25"
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
CLAIM = "io.modelcontextprotocol/protocolVersion"

RESULTS = {
    "initialize": "InitializeResult",
    "ping": "EmptyResult",
    "resources/subscribe": "EmptyResult",
    "resources/unsubscribe": "EmptyResult",
    "logging/setLevel": "EmptyResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "resources/read": "ReadResourceResult",
    "completion/complete": "CompleteResult",
    "server/discover": "DiscoverResult",
    "subscriptions/listen": "SubscriptionsListenResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    "prompts/list": "ListPromptsResult",
    "prompts/get": "GetPromptResult",
}
NOTIFICATIONS = {
    "notifications/resources/updated": "ResourceUpdatedNotification",
    "notifications/resources/list_changed": "ResourceListChangedNotification",
    "notifications/tools/list_changed": "ToolListChangedNotification",
    "notifications/prompts/list_changed": "PromptListChangedNotification",
    "notifications/progress": "ProgressNotification",
    "notifications/message": "LoggingMessageNotification",
    "notifications/cancelled": "CancelledNotification",
    "notifications/subscriptions/acknowledged": "SubscriptionsAcknowledgedNotification",
}
QUESTIONS = {
    "elicitation/create": "ElicitRequest",
    "sampling/createMessage": "CreateMessageRequest",
    "roots/list": "ListRootsRequest",
}
"""Requests of a server to a legacy client."""


def directory(name: str) -> Path | None:
    """The directory of this name among the vectors, if it is there."""
    target = os.environ.get("CARGO_TARGET_DIR", "target")
    folders = [os.environ.get("MCP_RESOURCES_VECTORS"), f"{target}/vectors"]
    return next((at for folder in folders if folder and (at := ROOT / folder / name).is_dir()), None)


@cache
def validator(revision: str, definition: str) -> Any:
    """Holds a value to a definition of a revision; `None` without the schemas."""
    folder = directory("spec/schema")
    if folder is None:
        return None
    document = json.loads((folder / f"{revision}.json").read_text("utf-8"))
    place = "$defs" if "$defs" in document else "definitions"
    assert definition in document[place], f"{revision} has no {definition}"
    document["$ref"] = f"#/{place}/{definition}"
    return jsonschema.validators.validator_for(document)(document)


def check(revision: str, definition: str, value: object) -> None:
    """Holds a value to a definition.

    Raises:
        jsonschema.ValidationError: it is not one.
    """
    found = validator(revision, definition)
    if found is not None:
        found.validate(value)


def check_message(message: dict[str, Any], asked: dict[str, Any] | None, negotiated: str | None) -> None:
    """Holds what a server sent to its definition: `asked` is the request that it answers, if it is a response."""
    if "method" in message:
        if "id" in message:
            assert negotiated is not None, "R-019: a modern client gets no requests"
            check(negotiated, QUESTIONS[message["method"]], message)
            return
        meta = message.get("params", {}).get("_meta", {})
        of_listen = SUBSCRIPTION_ID in meta or message["method"] == "notifications/cancelled"
        revision = MODERN if of_listen or negotiated is None else negotiated
        check(revision, NOTIFICATIONS[message["method"]], message)
        return
    params = (asked or {}).get("params")
    is_modern = isinstance(params, dict) and CLAIM in params.get("_meta", {})
    revision = MODERN if is_modern else negotiated or NEWEST_LEGACY
    if "error" in message:
        is_new = revision in (MODERN, NEWEST_LEGACY)
        check(revision, "JSONRPCErrorResponse" if is_new else "JSONRPCError", message)
        return
    assert asked is not None, f"nobody asked for {message}"
    wants_input = message["result"].get("resultType") == "input_required"
    check(revision, "InputRequiredResult" if wants_input else RESULTS[asked["method"]], message["result"])
