"""Configuration files, compared with the readers that programs use: PyYAML, tomllib, python-dotenv and the json module.

`MCP_RESOURCES_DOCUMENTS` sets the number of random documents of each kind, for longer runs, and
`MCP_RESOURCES_SEED` the seed.
"""

import io
import json
import logging
import os
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from datetime import date, datetime, time
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from dotenv import dotenv_values
from stdio_process import read

DOCUMENTS = int(os.environ.get("MCP_RESOURCES_DOCUMENTS", "2000"))
SEED = int(os.environ.get("MCP_RESOURCES_SEED", "20261125"))
MARK = "zz_mark"
"""A key whose value is the document's number. Without it, what is served are the values of an earlier document."""

Reader = Callable[[str], Any]


class Served:
    """A file that the command serves."""

    def __init__(self, program: Path, file: Path, first: str) -> None:
        self.file = file
        file.write_text(first, "utf-8")
        declared = {"config": {"apps": {"x": str(file)}, "allow": ["**"], "reveal": ["**"]}}
        configuration = file.with_name("resources.json")
        configuration.write_text(json.dumps({"providers": [declared]}), "utf-8")
        self.process = subprocess.Popen(
            [program, "serve", "--config", configuration],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def values(self, text: str, number: int) -> dict[str, Any] | None:
        """What is served of a text; `None` if it is refused."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.file.write_bytes(text.encode())
        self.process.stdin.write(read(number, "config:///x"))
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        values = json.loads(answer["result"]["contents"][0]["text"])
        assert isinstance(values, dict)
        return values if str(values.pop(MARK, None)) == str(number) else None

    def end(self) -> None:
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()
        self.process.wait(60)


@pytest.fixture
def served(program: Path, tmp_path: Path) -> Iterator[Callable[[str, str], Served]]:
    begun: list[Served] = []

    def begin(name: str, first: str) -> Served:
        begun.append(Served(program, tmp_path / name, first))
        return begun[-1]

    yield begin
    for server in begun:
        server.end()


class Yaml11(yaml.SafeLoader):
    """PyYAML with the rules of docs/config.md: keys as written, none twice, texts for what JSON has no value for."""


def members(loader: Yaml11, node: yaml.MappingNode) -> dict[str, Any]:
    def name(key: yaml.Node) -> str:
        if not isinstance(key, yaml.ScalarNode):
            raise yaml.YAMLError("a key is no text")
        return "null" if key.tag.endswith(":null") else key.value

    own = [name(key) for key, _ in node.value if not key.tag.endswith(":merge")]
    if len(set(own)) < len(own):
        raise yaml.YAMLError("a key stands twice")
    loader.flatten_mapping(node)
    return {name(key): loader.construct_object(value, deep=True) for key, value in node.value}


def number(construct: Callable[[Yaml11, yaml.ScalarNode], int | float]) -> Callable[[Yaml11, yaml.ScalarNode], Any]:
    def constructed(loader: Yaml11, node: yaml.ScalarNode) -> Any:
        value = construct(loader, node)
        if isinstance(value, int):
            return value if -(2**63) <= value < 2**64 else node.value
        return value if value - value == 0 else node.value

    return constructed


for kind in ("timestamp", "binary", "value"):
    Yaml11.add_constructor(f"tag:yaml.org,2002:{kind}", lambda _, node: node.value)
for kind in ("map", "set"):
    Yaml11.add_constructor(f"tag:yaml.org,2002:{kind}", members)
Yaml11.add_constructor("tag:yaml.org,2002:int", number(Yaml11.construct_yaml_int))
Yaml11.add_constructor("tag:yaml.org,2002:float", number(Yaml11.construct_yaml_float))

# fmt: off
SCALARS = [
    "yes", "No", "ON", "off", "y", "n", "Y", "N", "yEs", "true", "True", "TRUE", "null", "Null", "NULL", "~", "=",
    "0", "-0", "+1", "007", "08", "-08", "0089", "01089", "0644", "0o17", "0x1F", "-0x1f", "0b101", "0b12", "0_7",
    "0x", "0b",
    "1_000", "1__0", "1_", "_1", "1:30", "-1:30", "1:60", "12:30:45", "0:30", "1:30.5", "190:20:30.15",
    "1.5", "1.", ".5", "-.5", "+.5", "1.10", "1e3", "1E5", "1.5e3", "1.5e+3", "1.e-2", "6.8523015e+5",
    "685_230.15", "1.0e+400",
    ".inf", "-.INF", "+.Inf", ".nan", ".NaN", "-.nan", ".", "1.2.3", "1,000", "0.1", "1e", "e1",
    "18446744073709551615", "18446744073709551616", "-9223372036854775808", "-9223372036854775809",
    "0xFFFFFFFFFFFFFFFFFF",
    "2001-01-01", "2001-1-1", "2001-12-14t21:59:43.10-05:00", "2001-12-14 21:59:43.10 -5", "12:00",
    "'x'", '"x\\n\\u00e9"', "''", "'yes'", '"007"', "abc", "a b", "a#b", "検索", "https://a.example:80/x?y=1", "-x",
    "a:b", "<", "C:\\dir",
    "!!str 12", "!!str yes", "!!int '3'", "!!int 0x1f", "!!float 3", "!!float '1e3'", "!!bool on", "!!bool 'Yes'",
    "!!null ''",
    "!!timestamp 2001-01-01", "!!binary aGk=", "!!set {a, b}", "!!map {a: 1}", "!!seq [1]",
]
# fmt: on


def scalar(random: Random) -> str:
    if random.random() < 0.6:
        return random.choice(SCALARS)
    text = "".join(random.choice("0123456789_+-.:eExXobafny") for _ in range(random.randint(1, 8)))
    # What YAML 1.2 reads otherwise, or no reader takes without quotes.
    return "x" if (text.startswith(("-", ":")) and not text[1:2].isdigit()) or text.endswith(":") else text


def flow(random: Random, depth: int) -> str:
    kind = random.random()
    if not depth or kind < 0.7:
        return scalar(random)
    items = range(random.randint(0, 3))
    if kind < 0.85:
        return "[" + ", ".join(flow(random, depth - 1) for _ in items) + "]"
    return "{" + ", ".join(f"k{at}: {flow(random, depth - 1)}" for at in items) + "}"


def block(random: Random, depth: int, indent: str, anchors: list[str]) -> Iterator[str]:
    """Lines of members. `anchors` are those of objects that are complete."""
    for at in range(random.randint(1, 4)):
        key = random.choice([f"k{at}", f"k{at}", scalar(random).replace("!!", "").replace("{", "").replace("[", "")])
        kind = random.random()
        if depth and kind < 0.3:
            name = f"a{random.random()}".replace(".", "")
            yield f"{indent}{key}: &{name}"
            yield from block(random, depth - 1, indent + "  ", anchors)
            anchors.append(name)
        elif depth and kind < 0.4:
            yield f"{indent}{key}:"
            yield from (f"{indent}  - {flow(random, 1)}" for _ in range(random.randint(1, 3)))
        elif kind < 0.48:
            yield f"{indent}{key}: {random.choice('|>')}{random.choice(['', '-', '+'])}"
            yield from (f"{indent}  {line}" for line in ["one", "two 007", "", "# three"][: random.randint(1, 4)])
        elif anchors and kind < 0.58:
            yield f"{indent}{random.choice([key, '<<'])}: *{random.choice(anchors)}"
        else:
            yield f"{indent}{key}: {flow(random, 2)}{random.choice(['', '', ' # comment'])}"


def yaml_document(random: Random) -> str:
    end = random.choice(["\n", "\n", "\n", "\r\n"])
    begin = random.choice(["", "", "", "---\n", "%YAML 1.1\n---\n", "\ufeff", "# comment\n\n"])
    return (begin + "\n".join(block(random, 2, "", [])) + "\n").replace("\n", end)


def named(value: Any) -> Any:
    """Without the keys that have no name: they have no URI."""
    if isinstance(value, dict):
        return {key: named(member) for key, member in value.items() if key}
    return [named(item) for item in value] if isinstance(value, list) else value


def read_yaml(text: str) -> Any:
    try:
        return yaml.load(text, Yaml11)
    except (yaml.YAMLError, ValueError, KeyError, IndexError, AttributeError):
        return None


def test_yaml_is_read_as_pyyaml_reads_it(served: Callable[[str, str], Served]) -> None:
    """S-04: every scalar, tag, key, anchor and merge of YAML 1.1 has the value that PyYAML gives it."""
    random, server = Random(SEED), served("x.yaml", "a: 1")
    documents = [f"a: {text}\n" for text in SCALARS] + [f"{text}: 1\n" for text in SCALARS]
    documents += [yaml_document(random) for _ in range(DOCUMENTS)]
    compared = 0
    for at, text in enumerate(documents):
        expected, found = read_yaml(text), server.values(f"{text}{MARK}: {at}\n", at)
        if expected is None:
            # Not a value that another reader gives, unless the syntax is that of YAML 1.2.
            continue
        expected = named(expected)
        compared += found is not None
        assert found is None or json.dumps(found, sort_keys=True) == json.dumps(expected, sort_keys=True), text
        assert found is not None or at >= 2 * len(SCALARS), f"refused: {text}"
    assert compared > len(documents) * 0.7, f"{compared} of {len(documents)} were compared"


def toml_value(random: Random, depth: int) -> str:
    # fmt: off
    scalars = [
        "0", "-7", "+1_000", "0xff", "0o17", "0b11", "1.5", "-0.0", "1e3", "6.626e-34", "1_0.5", "true", "false",
        '"x\\n"', "'C:\\dir'",
        '"""\nmany\nlines"""', "9223372036854775807", '"\\u00e9"', "''", '"007"', "inf", "nan", "-inf",
        "1979-05-27T07:32:00Z", "1979-05-27", "07:32:00", "1979-05-27T00:32:00.999999-07:00",
    ]
    # fmt: on
    kind = random.random()
    if not depth or kind < 0.7:
        return random.choice(scalars)
    values = [toml_value(random, depth - 1) for _ in range(random.randint(0, 3))]
    if kind < 0.85:
        return "[" + ", ".join(values) + "]"
    return "{" + ", ".join(f"m{at} = {value}" for at, value in enumerate(values)) + "}"


def without_json(value: Any) -> Any:
    """TOML's values as JSON has them: what it has no number or date for is a text."""
    if isinstance(value, dict):
        return {key: without_json(member) for key, member in value.items()}
    if isinstance(value, list):
        return [without_json(item) for item in value]
    if isinstance(value, float) and value - value != 0:
        return "a text"
    return "a text" if isinstance(value, date | time | datetime) else value


def shape(value: Any) -> Any:
    """The same of what is served: texts that may be one of these."""
    if isinstance(value, dict):
        return {key: shape(member) for key, member in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value]
    is_special = isinstance(value, str) and (value in ("inf", "-inf", "nan") or "1979-" in value or value == "07:32:00")
    return "a text" if is_special else value


def test_toml_is_read_as_tomllib_reads_it(served: Callable[[str, str], Served]) -> None:
    """S-04: tables, arrays of tables, dotted keys and every kind of value."""
    random, server = Random(SEED), served("x.toml", "a = 1")
    for at in range(DOCUMENTS):
        lines = [f"{MARK} = {at}"]
        for key in range(3):
            name = random.choice(["k{}", "d.k{}", '"q k{}"', 'd."x.y{}"']).format(key)
            lines.append(f"{name} = {toml_value(random, 2)}")
        lines += [f"[t{n}]\na = {toml_value(random, 1)}" for n in range(random.randint(0, 2))]
        lines += [f"[[l]]\na = {toml_value(random, 1)}" for _ in range(random.randint(0, 2))]
        text = random.choice(["\n", "\r\n"]).join(lines) + "\n"
        expected = without_json(tomllib.loads(text.replace("\r\n", "\n")))
        del expected[MARK]
        found = server.values(text, at)
        assert json.dumps(shape(found), sort_keys=True) == json.dumps(expected, sort_keys=True), text


def json_value(random: Random, depth: int) -> str:
    # fmt: off
    scalars = [
        "0", "-0", "-0.0", "1.5", "1e3", "1E-7", "0.1", "1e400", "-1e400", "1e-400",
        "123456789012345678901234567890", "1.1e-5",
        "18446744073709551615", "18446744073709551616", "-9223372036854775808", "-9223372036854775809", "5e-324",
        "0.30000000000000004", "2.2250738585072014e-308", "true", "null", '"x"', '"1e400"', '"\\"1e400\\\\"',
        '"\\u00e9\\ud83d\\ude00"',
    ]
    # fmt: on
    kind = random.random()
    if not depth or kind < 0.6:
        return random.choice(scalars)
    values = [json_value(random, depth - 1) for _ in range(random.randint(0, 3))]
    if kind < 0.8:
        return "[" + random.choice([",", ", ", "\n,"]).join(values) + "]"
    return "{" + ",".join(f'"m{at} 1e400" : {value}' for at, value in enumerate(values)) + "}"


def test_json_is_read_as_python_reads_it(served: Callable[[str, str], Served]) -> None:
    """S-04: a number that JSON's readers round or refuse is the text that the file has."""

    def whole(text: str) -> int | str:
        return int(text) if -(2**63) <= int(text) < 2**64 else text

    def broken(text: str) -> float | str:
        return float(text) if float(text) - float(text) == 0 else text

    random, server = Random(SEED), served("x.json", '{"a": 1}')
    for at in range(DOCUMENTS):
        text = f'{{"{MARK}": {at}, "a": {json_value(random, 3)}, "b": {json_value(random, 2)}}}'
        expected = json.loads(text, parse_int=whole, parse_float=broken)
        del expected[MARK]
        found = server.values(text, at)
        # `-0` is a whole number here and none in Python; the values are equal.
        assert found == expected, text
        assert json.dumps(found, sort_keys=True).replace("-0.0", "0") == json.dumps(expected, sort_keys=True).replace(
            "-0.0", "0"
        ), text


def env_document(random: Random) -> str:
    names = ["A", "B_1", "1A", "Ä", "a.b-c", "export", "'q k'", "検索"]
    # fmt: off
    values = [
        "b", "b c", "  x  ", "a#b", "a #c", "'s # q'", "'it\\'s'", '"d\\n\\"q\\" \\\\ x"', '"many\nlines"',
        "'many\nlines'", "", "${HOME}",
        "a=b", '"x" # c', "'x' y", "x\\ny", "\t tab", '"\\x\\a"', "é", "'C:\\dir'", '"a\\tb\\vc"',
    ]
    # fmt: on
    others = ["# comment", "", "   ", "  # x", "NOVALUE", "export X", "key: v", "=x", "A B=c"]
    lines = []
    for _ in range(random.randint(1, 6)):
        pair = random.choice(names) + random.choice(["=", " = ", "= "]) + random.choice(values)
        lines.append(random.choice(["", "export ", "  "]) + pair if random.random() < 0.8 else random.choice(others))
    return random.choice(["\n", "\n", "\r\n", "\r"]).join(lines)


def test_env_files_are_read_as_python_dotenv_reads_them(served: Callable[[str, str], Served]) -> None:
    """S-04: names, quotes, escapes, comments and lines that are no assignment."""
    logging.getLogger("dotenv").setLevel(logging.CRITICAL)
    random, server = Random(SEED), served("x.env", "A=1")
    for at in range(DOCUMENTS):
        text = f"{MARK}={at}\n" + env_document(random)
        expected = dotenv_values(stream=io.StringIO(text, newline=""), interpolate=False)
        del expected[MARK]
        # The ends of lines within quotes are LF here, and a name without a value is none.
        values = {
            name: value.replace("\r\n", "\n").replace("\r", "\n")
            for name, value in expected.items()
            if value is not None
        }
        assert server.values(text, at) == values, text


def test_env_files_are_read_as_node_reads_them(served: Callable[[str, str], Served], tmp_path: Path) -> None:
    """S-04: backticks too; where Node and python-dotenv differ, this reads as python-dotenv does."""
    text = 'A=b\nB=\'a "b"\'\nC="a\\nb"\nD=`a \'b\' "c"`\nE=\nF= x # c\nexport G=h\nH="two\nlines"\n# I=1\nJ=a=b\n'
    file = tmp_path / "y.env"
    file.write_text(text, "utf-8")
    script = "const {A,B,C,D,E,F,G,H,J}=process.env; console.log(JSON.stringify({A,B,C,D,E,F,G,H,J}))"
    node = subprocess.run(["node", f"--env-file={file}", "-e", script], capture_output=True, check=True)
    assert served("x.env", "A=1").values(f"{MARK}=0\n{text}", 0) == json.loads(node.stdout)
