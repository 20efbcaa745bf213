"""Writes limits and providers' options for the other languages: interfaces of Node, dictionaries of Python, tables.

The command prints the rows (`__options`). `make options` writes the files; `--check` compares them instead.
"""

import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
COMMAND = ROOT / "target" / "debug" / "mcp-resources"
NODE = "bindings-node/js/provider-options.ts"
PYTHON = "bindings-python/python/mcp_resources/provider_options.py"
NODE_LIMITS = "bindings-node/js/limits.ts"
PYTHON_LIMITS = "bindings-python/python/mcp_resources/limits.py"
GUIDES = {"clock": "clock-and-memory", "env": "config"}
"""The pages that do not have the name of the kind."""
SCOPES = {
    "api": ", for all endpoints",
    "config": ", for all files",
    "docs": ", for all sites",
    "files": ", for all roots",
    "git": ", for all repositories",
    "rag": ", for all collections",
    "skills": ", for all directories",
}
"""What several things in one call share the options of."""
ARGUMENTS = {"paths", "named"}
"""The types of options that are arguments of their own in Python and Node."""
WIDTH = 120

Row = dict[str, Any]
Shape = tuple[str, str, str, list[Row]]
"""The name of an interface, the one that it extends, a sentence about it, and its rows."""


def kinds(command: Path = COMMAND) -> dict[str, list[Row]]:
    """By kind, the rows; those of the limits under `limits`."""
    done = subprocess.run([command, "__options"], capture_output=True, check=True, text=True)
    return {kind["kind"]: kind["options"] for kind in map(json.loads, done.stdout.splitlines())}


def files(tables: dict[str, list[Row]]) -> dict[Path, str]:
    """What each file has to contain."""
    tables = dict(tables)
    limits = tables.pop("limits")
    made = {ROOT / NODE: script(tables), ROOT / PYTHON: module(tables)}
    made |= {ROOT / NODE_LIMITS: script_limits(limits), ROOT / PYTHON_LIMITS: module_limits(limits)}
    for kind, rows in tables.items():
        if rows:
            path = ROOT / "docs" / f"{GUIDES.get(kind, kind)}.md"
            made[path] = with_table(made.get(path) or path.read_text("utf-8"), kind, rows, path.name)
    return made


def with_table(text: str, kind: str, rows: list[Row], page: str) -> str:
    """The page with the table of this kind between its two markers."""
    begin, end = f"<!-- options of {kind}: written by `make options` -->\n", "<!-- end -->\n"
    before, found, rest = text.partition(begin)
    _, ended, after = rest.partition(end)
    if not found or not ended:
        raise SystemExit(f"docs/{page} has no place for the options of {kind}; write these lines:\n{begin}{end}")
    return f"{before}{begin}\n{table(rows)}\n{end}{after}"


def table(rows: list[Row]) -> str:
    """The rows, each followed by those of its members."""
    lines = ["| option | value | default | what it does |", "| --- | --- | --- | --- |"]
    for row in rows:
        # An endpoint of `api` is described in the text.
        for one in [row, *(row["members"] if row["name"] in ("databases", "servers") else [])]:
            default = "must be given" if one["default"] is None else f"`{one['default']}`"
            lines.append(f"| `{one['name']}` | {one['kind']} | {default} | {one['about']} |")
    return "\n".join(lines) + "\n"


def shapes(tables: dict[str, list[Row]]) -> Iterator[Shape]:
    """The interfaces and dictionaries, in order of their names. `{name}` in a sentence is a reference."""
    for kind, rows in tables.items():
        own = [row for row in rows if row["type"] not in ARGUMENTS]
        if kind == "api":
            [members] = [row["members"] for row in rows if row["name"] == "apis"]
            [endpoint] = [row["members"] for row in members if row["name"] == "endpoints"]
            yield "ApiEndpoint", "", "One endpoint of an API.", endpoint
            rest = [row for row in members if row["name"] != "endpoints"]
            yield "ApiDocument", "", "The operations of an OpenAPI document that are endpoints of an API.", rest
        if kind == "upstream":
            [entry] = [row["members"] for row in rows if row["name"] == "servers"]
            yield "ServerEntry", "", "A server for {upstream}: a `command` or a `url`, and what is served of it.", entry
        elif kind == "db":
            [members] = [row["members"] for row in rows if row["name"] == "databases"]
            given = [row for row in members if row["default"] is None]
            rest = [row for row in members if row["default"] is not None]
            yield "DbOptions", "", "The tables and views of a {Database} that are served. Others are not.", rest
            yield "Database", "DbOptions", "A database for {db}.", given
        elif own:
            yield f"{kind.capitalize()}Options", "", f"The options of {{{kind}}}{SCOPES.get(kind, '')}.", own


def sentences(row: Row, spell: dict[str, str]) -> str:
    """The effect of an option, its units, and its default."""
    default, text = row["default"], [row["about"]]
    if row["type"] in ("size", "time"):
        unit = "a number of bytes" if row["type"] == "size" else "milliseconds"
        example = "10min" if default == "null" else default
        text.append(f'A text such as `"{example}"`, or {unit}.')
    between = re.fullmatch(r"a (?:whole number|time) from (\w+ to \w+)", row["kind"])
    if between:
        text.append(f"From {between[1]}.")
    if row["type"] == "count":
        text.append(f"Default {int(default):,}.")
    elif row["type"] == "texts" and default not in (None, "null", "[]"):
        text.append("Default " + " and ".join(f"`{word}`" for word in default[1:-1].split(", ")) + ".")
    elif default not in (None, "null", "[]", "{}"):
        text.append(f"Default `{spell.get(default, default)}`.")
    elif default in ("[]", "{}") and "Default" not in row["about"]:
        text.append("Default: none.")
    return " ".join(text)


def script(tables: dict[str, list[Row]]) -> str:
    """The module of Node."""
    parts = [
        "/** The options of the providers. `make options` writes this file from the rows in Rust. */",
        "",
        "/** An environment variable that contains a secret text. */",
        "export interface EnvVariable {",
        "  /** The name of the variable. */",
        "  readonly env: string;",
        "}",
    ]
    for name, base, about, rows in sorted(shapes(tables)):
        extends = f" extends {base}" if base else ""
        linked = re.sub(r"\{(\w+)\}", r"{@link \1}", about)
        lines = ["", f"/** {linked} */", f"export interface {name}{extends} {{"]
        for row in rows:
            lines += script_comment(sentences(row, {}))
            member = camel_case(row["name"])
            lines.append(f"  readonly {member}{'?' if row['default'] is not None else ''}: {script_type(row)};")
        parts.append("\n".join([*lines, "}"]))
    return "\n".join(parts) + "\n"


LIMITS = "The limits of a server, to protect it and its clients. Limits that are not given keep their defaults."


def limit_sentences(row: Row, names: Iterable[str] = ()) -> str:
    """The description of a limit and its default. `names` are spelled as in Node."""
    about = row["about"]
    for name in names:
        about = about.replace(f"`{name}`", f"`{camel_case(name)}`")
    number, unit = int(row["default"]), ""
    if "in bytes" in about:
        for shift, unit_of in ((20, " MiB"), (10, " KiB")):
            if number >> shift and number % (1 << shift) == 0:
                number, unit = number >> shift, unit_of
                break
    return f"{about} Default {number:,}{unit}."


def script_limits(limits: list[Row]) -> str:
    names = [row["name"] for row in limits] + ["expose_as_tools"]
    lines = ["/** The limits of a server. `make options` writes this file from the rows in Rust. */", ""]
    lines += [f"/** {LIMITS} */", "export interface Limits {"]
    for row in limits:
        lines += script_comment(limit_sentences(row, names))
        lines.append(f"  readonly {camel_case(row['name'])}?: number;")
    return "\n".join([*lines, "}"]) + "\n"


def module_limits(limits: list[Row]) -> str:
    lines = ['"""The limits of a server. `make options` writes this file from the rows in Rust."""', ""]
    lines += ["from typing import TypedDict", "", '__all__ = ["Limits"]', "", ""]
    lines += ["class Limits(TypedDict, total=False):", f'    """{LIMITS}"""', ""]
    for row in limits:
        lines += [f"    {row['name']}: int", *module_comment(limit_sentences(row))]
    return "\n".join(lines) + "\n"


def camel_case(name: str) -> str:
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name)


def script_comment(text: str) -> list[str]:
    if len(text) + len("  /**  */") <= WIDTH:
        return [f"  /** {text} */"]
    return ["  /**", *(f"   * {line}" for line in textwrap.wrap(text, WIDTH - len("   * "), **WHOLE)), "   */"]


def script_type(row: Row) -> str:
    secret = "string | EnvVariable"
    known = {
        "flag": "boolean",
        "count": "number",
        "bytes": "number | null",
        "size": "number | string",
        "time": "number | string",
        "text": "string",
        "texts": "string | readonly string[]",
        "tools": "boolean | string | readonly string[]",
        "file": "string | null",
        "words": " | ".join(f"'{word}'" for word in row["words"]),
        "all_or": "'all' | readonly string[]",
        "secret": f"{secret} | null" if row["default"] == "null" else secret,
        "named_texts": "Readonly<Record<string, string>>",
        "named_secrets": f"Readonly<Record<string, {secret}>>",
    }
    return known[row["type"]]


def module(tables: dict[str, list[Row]]) -> str:
    """The module of Python."""
    made = [shape for shape in shapes(tables) if shape[0] not in ("ApiDocument", "ApiEndpoint")]
    names = sorted(["EnvVariable", "Root", *(name for name, *_ in made)])
    parts = [
        '"""The options of the providers. `make options` writes this file from the rows in Rust."""\n',
        "import os",
        "from collections.abc import Mapping, Sequence",
        "from typing import Literal, TypeAlias, TypedDict\n",
        "__all__ = [\n" + "".join(f'    "{name}",\n' for name in names) + "]\n",
        "Root: TypeAlias = str | os.PathLike[str]",
        '"""The path of a directory or file."""\n\n',
        "class EnvVariable(TypedDict):",
        '    """An environment variable that contains a secret text."""\n',
        "    env: str",
        '    """The name of the variable."""',
    ]
    for name, base, about, rows in made:
        own = [row for row in rows if row["default"] is not None or base]
        lines = ["\n", f"class {name}({base or 'TypedDict, total=False'}):"]
        quoted = re.sub(r"\{(\w+)\}", r"`\1`", about)
        lines += [f'    """{quoted}"""', ""]
        for row in own:
            lines.append(f"    {row['name']}: {module_type(row)}")
            text = sentences(row, {"true": "True", "false": "False"})
            lines += module_comment(text)
        parts.append("\n".join(lines))
    return "\n".join(parts) + "\n"


def module_comment(text: str) -> list[str]:
    return textwrap.wrap(f'"""{text}"""', WIDTH, initial_indent="    ", subsequent_indent="    ", **WHOLE)


def module_type(row: Row) -> str:
    secret = "str | EnvVariable"
    known = {
        "flag": "bool",
        "count": "int",
        "bytes": "int | None",
        "size": "int | str",
        "time": "int | str",
        "text": "str",
        "texts": "str | Sequence[str]",
        "tools": "bool | str | Sequence[str]",
        "file": "Root | None",
        "words": f"Literal[{', '.join(json.dumps(word) for word in row['words'])}]",
        "all_or": 'Literal["all"] | Sequence[str]',
        "secret": f"{secret} | None" if row["default"] == "null" else secret,
        "named_texts": "Mapping[str, str]",
        "named_secrets": f"Mapping[str, {secret}]",
    }
    return known[row["type"]]


WHOLE: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}


def stale(made: dict[Path, str]) -> list[str]:
    """The files that do not contain what they have to."""
    return [
        str(path.relative_to(ROOT))
        for path, text in made.items()
        if not path.exists() or path.read_text("utf-8") != text
    ]


def main() -> int:
    """Exit status 1 if `--check` finds a file that is not current."""
    made = files(kinds())
    if "--check" in sys.argv[1:]:
        for path in (old := stale(made)):
            print(f"{path} does not say what the options are; run `make options`", file=sys.stderr)
        return 1 if old else 0
    for path, text in made.items():
        path.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
