"""Writes the vectors of others that the tests use, from packages that have them, into `target/vectors`.

- `uritemplate-test`: the official cases of RFC 6570, which the crate `uritemplate-next` has in its package.
- `spec/schema`: JSON schemas of the protocol, from the models of the official package `mcp-types`, which are generated
  from the schemas of 2025-11-25 and 2026-07-28. Messages of an older revision are held to those of 2025-11-25.

A directory with the official files in the same layout is used instead if `MCP_RESOURCES_VECTORS` names it.
"""

import inspect
import json
import os
import shutil
import subprocess
import types
from pathlib import Path
from typing import Any

import mcp_types._v2025_11_25
import mcp_types._v2026_07_28
from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import models_json_schema
from typing_extensions import TypeAliasType

ROOT = Path(__file__).resolve().parents[1]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "vectors"
REVISIONS = {
    "2024-11-05": mcp_types._v2025_11_25,
    "2025-03-26": mcp_types._v2025_11_25,
    "2025-06-18": mcp_types._v2025_11_25,
    "2025-11-25": mcp_types._v2025_11_25,
    "2026-07-28": mcp_types._v2026_07_28,
}
EARLIER_NAMES = {"JSONRPCError": "JSONRPCErrorResponse", "JSONRPCResponse": "JSONRPCResultResponse"}
"""What definitions are called before 2025-11-25."""
TEMPLATES = "#/$defs/{model}"


def schema(module: types.ModuleType) -> dict[str, Any]:
    """The models and aliases of one revision as a JSON schema without a root."""
    models = [found for _, found in inspect.getmembers(module, inspect.isclass) if issubclass(found, BaseModel)]
    models = [found for found in models if found.__module__ == module.__name__]
    _, document = models_json_schema([(model, "validation") for model in models], by_alias=True, ref_template=TEMPLATES)
    definitions: dict[str, Any] = document["$defs"]
    for name, alias in inspect.getmembers(module, lambda found: isinstance(found, TypeAliasType)):
        own = TypeAdapter(alias).json_schema(by_alias=True, ref_template=TEMPLATES)
        definitions |= own.pop("$defs", {})
        definitions.setdefault(name, own)
    for name, model in inspect.getmembers(module, inspect.isclass):
        if model in models and name not in definitions:  # another name of a model
            definitions[name] = {"$ref": TEMPLATES.format(model=model.__name__)}
    for older, newer in EARLIER_NAMES.items():
        if newer in definitions:
            definitions.setdefault(older, {"$ref": TEMPLATES.format(model=newer)})
    _require_values(definitions)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": definitions}


def _require_values(node: Any) -> None:
    """A member that may be left out may not be null instead: in the models both are `None`."""
    if isinstance(node, list):
        for item in node:
            _require_values(item)
    elif isinstance(node, dict):
        for member in node.get("properties", {}).values() if isinstance(node.get("properties"), dict) else ():
            if isinstance(member, dict) and "default" in member and member["default"] is None and "anyOf" in member:
                member["anyOf"] = [choice for choice in member["anyOf"] if choice != {"type": "null"}]
                del member["default"]
        for value in node.values():
            _require_values(value)


def uritemplate_tests() -> Path:
    """The folder of the cases in the sources of the crate, which cargo has fetched."""
    command = ["cargo", "metadata", "--format-version", "1"]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    [manifest] = [Path(one["manifest_path"]) for one in metadata["packages"] if one["name"] == "uritemplate-next"]
    return manifest.parent / "scripts" / "uritemplate-test"


def main() -> None:
    """Makes the folder anew."""
    shutil.rmtree(TARGET, ignore_errors=True)
    folder = TARGET / "spec" / "schema"
    folder.mkdir(parents=True)
    for revision, module in REVISIONS.items():
        (folder / f"{revision}.json").write_text(json.dumps(schema(module)), "utf-8")
    cases = TARGET / "uritemplate-test"
    cases.mkdir()
    for file in sorted(uritemplate_tests().glob("*.json")):
        shutil.copyfile(file, cases / file.name)
    (TARGET / "ready").touch()


if __name__ == "__main__":
    main()
