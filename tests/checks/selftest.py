"""Each check finds the breach that it exists for, and leaves the lawful neighbour alone."""

import contextlib
import io
import json
import unittest

import dependencies
import hygiene
import instructions
import layering
import links
import metadata
import names
import purity
import ran
import rust_tests
import rust_text
import sentences
import size
import vocabulary
from tree import Check, Floors, Tree, read_levels

LEVELS = read_levels("""
engine = [
  { name = "low", modules = ["uri", "limits"] },
  { name = "mid", modules = ["hub", "catalog"] },
  { name = "pair", modules = ["engine", "connection"], together = true },
]
""")


def found(check: Check, **files: str) -> list[str]:
    """The findings of `check` in a tree; `a__b_rs` is the file `a/b.rs`."""
    tree = Tree({spell(name): text for name, text in files.items()}, LEVELS)
    return [f"{finding.line}: {finding.message}" for finding in check(tree)]


def core(check: Check, path: str, text: str) -> list[str]:
    """The findings of `check` in one file of the core."""
    tree = Tree({f"core/engine/src/{path}": text}, LEVELS)
    return [f"{finding.line}: {finding.message}" for finding in check(tree)]


def spell(name: str) -> str:
    path, _, ext = name.replace("__", "/").rpartition("_")
    return f"{path}.{ext}".replace("bindings_", "bindings-")


MANIFEST = """
[workspace.package]
version = "1.0.0"
repository = "https://forge.example/team/mcp-resources"
[workspace.dependencies]
own = { path = "core/own", version = "=1.0.0" }
"""
CRATE = """
[package]
description = "x"
license.workspace = true
authors.workspace = true
repository.workspace = true
readme = "README.md"
keywords = ["x"]
categories = ["x"]
[package.metadata.docs.rs]
all-features = true
"""
PYTHON = """
[project]
description = "x"
license = "MIT"
authors = [{ name = "x" }]
readme = "README.md"
keywords = ["x"]
urls = { Repository = "https://forge.example/team/mcp-resources" }
classifiers = ["x"]
"""
NODE = dict.fromkeys(metadata._NODE_FIELDS, "x") | {"version": "1.0.0"}


class Metadata(unittest.TestCase):
    def files(self, **other: str) -> list[str]:
        files = {
            "Cargo_toml": MANIFEST,
            "core__own__Cargo_toml": CRATE,
            "core__own__README_md": "# own",
            "pyproject_toml": PYTHON,
            "package_json": json.dumps(NODE),
        }
        return found(metadata.check, **files | other)

    def test_what_is_complete(self) -> None:
        assert self.files() == []

    def test_a_missing_field(self) -> None:
        assert len(self.files(core__own__Cargo_toml=CRATE.replace('keywords = ["x"]', ""))) == 1
        assert len(self.files(pyproject_toml=PYTHON.replace('readme = "README.md"', ""))) == 1
        assert len(self.files(package_json=json.dumps(NODE | {"bugs": ""}))) == 1

    def test_another_version(self) -> None:
        assert len(self.files(package_json=json.dumps(NODE | {"version": "1.0.1"}))) == 1
        assert len(self.files(Cargo_toml=MANIFEST.replace('"=1.0.0"', '"1.0.0"'))) == 1

    def test_another_address(self) -> None:
        assert len(self.files(docs__a_md="https://forge.example/other/mcp-resources/issues")) == 1
        assert self.files(docs__a_md="https://forge.example/other/project") == []


class Names(unittest.TestCase):
    def test_two_meanings(self) -> None:
        two = found(names.check, core__engine__src__a_rs="struct Slot;", core__host__src__b_rs="\nenum Slot {}")
        two = [line for line in two if "Slot" in line]
        assert two == ["2: `Slot` is another type in core/engine/src/a.rs: name this one by its subject"]

    def test_one_concept(self) -> None:
        one = found(names.check, core__engine__src__a_rs="struct Slot;", bindings_node__src__b_rs="struct Slot;")
        assert not any("Slot" in line for line in one)
        own = core(names.check, "a.rs", "// struct Slot;\nstruct Slot;\n#[cfg(test)]\nmod tests { struct Slot; }")
        assert not any("Slot" in line for line in own)

    def test_an_exception_that_is_none_any_more(self) -> None:
        assert any("take it from the list" in line for line in core(names.check, "a.rs", "struct ReadRequest;"))


class Sentences(unittest.TestCase):
    def test_question_words(self) -> None:
        plain = "/// The options.\n" * 99
        assert core(sentences.check, "a.rs", f"{plain}/// What is served.\n") == []
        found = core(sentences.check, "a.rs", f"{plain}\n//! How it is.\n    /// Who asks.\n")
        assert found == [
            "101: `//! How` begins a doc comment of core/engine",
            "102: `/// Who` begins a doc comment of core/engine",
        ]

    def test_other_comments(self) -> None:
        assert core(sentences.check, "a.rs", "// What is served.\n/// However it is.\n") == []


class Dependencies(unittest.TestCase):
    def test_input_and_output(self) -> None:
        lines = ["mcp-resources-engine v0.1.0 (core/engine)", "tokio v1.54.0 (*)", "", "serde v1.0.229"]
        assert dependencies.impure(lines) == ["tokio"]

    def test_features(self) -> None:
        host = {"pipe": ["dep:x"], "server": ["pipe", "x/y"]}
        lawful = {"pipe": ["mcp-resources-runtime/pipe"], "server": ["pipe", "mcp-resources-runtime/server"]}
        assert dependencies.unlike(lawful, host) == []
        assert dependencies.unlike({**lawful, "server": ["mcp-resources-runtime/server"]}, host) == ["server"]

    def test_this_tree(self) -> None:
        assert list(dependencies.check(Tree({}, LEVELS))) == []


class Layering(unittest.TestCase):
    def floors(self, **files: str) -> list[str]:
        floors = (Floors("bindings-python/src", (("values",), ("calls",), ("client", "serve")), 1),)
        scripts = (Floors("bindings-node/js", (), 1),)
        tree = Tree({spell(name): text for name, text in files.items()}, LEVELS, floors + scripts)
        return [finding.message for finding in layering.check(tree)]

    def test_a_lower_floor_imports_no_higher_one(self) -> None:
        files = {
            "bindings_python__src__values__a_rs": "",
            "bindings_python__src__calls__b_rs": "use crate::{lib, values::a::A};",
            "bindings_python__src__serve__c_rs": "use crate::calls::{self, b::{B, C}};",
            "bindings_python__src__client__mod_rs": "",
        }
        assert self.floors(**files) == []
        upwards = self.floors(**files, bindings_python__src__values__d_rs="use crate::calls::b::B;")
        assert upwards == ["`values/d.rs` imports `calls/b.rs`, which is not on a lower floor"]
        sideways = self.floors(**files, bindings_python__src__serve__d_rs="\nuse super::super::client::Caller;")
        assert sideways == ["`serve/d.rs` imports `client/mod.rs`, which is not on a lower floor"]

    def test_files_in_a_circle(self) -> None:
        rust = {"calls__a_rs": "use super::b::B;", "calls__b_rs": "use crate::calls::a::A;"}
        found = self.floors(**{f"bindings_python__src__{name}": text for name, text in rust.items()})
        assert found == ["2 files import each other, at most 1: calls/a.rs, calls/b.rs"]
        script = {
            "a_ts": "import type { B } from './b.js';",
            "b_ts": "export * from './c.js';",
            "c_ts": "import './a.js';",
        }
        found = self.floors(**{f"bindings_node__js__{name}": text for name, text in script.items()})
        assert found == ["3 files import each other, at most 1: a.ts, b.ts, c.ts"]

    def test_upwards(self) -> None:
        assert core(layering.check, "uri.rs", "\nuse crate::hub::Hub;") == ["2: `uri` reaches upwards to `hub`"]

    def test_sideways(self) -> None:
        assert core(layering.check, "hub/table.rs", "use crate::{catalog::Item, uri};") == [
            "1: `hub` reaches sideways to `catalog`"
        ]

    def test_through_super(self) -> None:
        assert len(core(layering.check, "hub/table.rs", "use super::super::engine::Engine;")) == 1
        assert len(core(layering.check, "uri.rs", "use super::hub;")) == 1

    def test_a_path_without_use(self) -> None:
        assert len(core(layering.check, "uri.rs", "fn f(h: crate::hub::Hub) {}")) == 1

    def test_the_crate_root_and_an_unknown_module(self) -> None:
        assert len(core(layering.check, "hub/table.rs", "use crate::Uri;")) == 1
        assert len(core(layering.check, "novel.rs", "")) == 1

    def test_each_crate_has_its_own_levels(self) -> None:
        assert found(layering.check, core__runtime__src__uri_rs="use crate::hub::Hub;") == []

    def test_lawful(self) -> None:
        lawful = "use crate::uri::Uri; use super::notice::Notice; // crate::engine"
        tests = "#[cfg(test)] mod tests { use crate::engine; }"
        assert core(layering.check, "hub/table.rs", f"{lawful}\n{tests}") == []
        assert core(layering.check, "engine.rs", "use crate::connection::Peer;") == []


class Purity(unittest.TestCase):
    def test_each_source(self) -> None:
        for impure in (
            "use std::fs;",
            "use std::{fmt, env};",
            "use std::net::{IpAddr, TcpStream};",
            "let t = std::time::Instant::now();",
            'println!("x");',
        ):
            assert len(core(purity.check, "hub/table.rs", impure)) == 1, impure

    def test_hosts_tests_and_words_are_free(self) -> None:
        assert found(purity.check, core__host__src__stdio_rs="use std::fs;") == []
        assert core(purity.check, "hub/tests.rs", "use std::fs;") == []
        assert core(purity.check, "hub/table.rs", "#[cfg(test)] mod tests { use std::fs; } // std::env") == []
        assert core(purity.check, "hub/table.rs", "use std::{fmt, net::IpAddr};") == []


class Vocabulary(unittest.TestCase):
    def test_rust(self) -> None:
        for wordy in (
            'f("resources/read")',
            "let code = -32602;",
            r'f("{\"uri\": 1}")',
            'f(r#"{"a":1}"#)',
            'f("jsonrpc")',
        ):
            assert len(found(vocabulary.check, bindings_python__src__lib_rs=wordy)) == 1, wordy

    def test_python(self) -> None:
        for wordy in ("f('resources/read')", "code = -32602", "f('{\"uri\": 1}')", "f('io.modelcontextprotocol/x')"):
            assert len(found(vocabulary.check, bindings_python__python__m__s_py=wordy)) == 1, wordy

    def test_typescript(self) -> None:
        for word in ("f('resources/read')", "request.headers['mcp-session-id']", "{ requestId: id }", '"Mcp-Method"'):
            assert len(found(vocabulary.check, bindings_node__js__index_ts=word)) == 1, word

    def test_comments_and_docstrings_may_explain(self) -> None:
        assert found(vocabulary.check, bindings_python__src__lib_rs="// resources/read is -32602") == []
        docs = '"""Answers resources/read."""\ndef f():\n    """Is -32602."""\n    return -1  # jsonrpc\n'
        assert found(vocabulary.check, bindings_python__python__m__s_py=docs) == []
        assert found(vocabulary.check, bindings_node__js__index_ts="// resources/read\nf(1)") == []


class Size(unittest.TestCase):
    def test_long_file(self) -> None:
        assert len(found(size.check, a__b_py="x = 1\n" * 801)) == 1
        assert found(size.check, a__b_py="x = 1\n" * 800) == []

    def test_length_of_functions(self) -> None:
        body = "    f();\n" * 59
        tree = Tree({"core/engine/src/a.rs": f"fn long() {{\n{body}}}\nfn short() {{}}\n"}, LEVELS)
        assert size.figures(tree) == "functions: median 61, 90th percentile 61, longest 61 lines"

    def test_fat_binding(self) -> None:
        for name, share in size.BINDING_SHARE.items():
            most, path = round(100 * share), name.replace("-", "_") + "__src__lib_rs"
            core_text, binding = "f();\n" * 100, "f();\n" * (most + 1)
            assert len(found(size.check, **{"core__engine__src__uri_rs": core_text, path: binding})) == 1
            thin = "f();\n// why\n\n" * most
            assert found(size.check, **{"core__engine__src__uri_rs": core_text, path: thin}) == []


class Hygiene(unittest.TestCase):
    def test_rust(self) -> None:
        for bad in (
            "unsafe { f() }",
            "#![cfg_attr(not(a), allow(dead_code))]",
            "#[allow(dead_code)]",
            "#[expect(dead_code)]",
        ):
            assert len(core(hygiene.check, "uri.rs", bad)) == 1, bad
        assert core(hygiene.check, "uri.rs", '#[expect(dead_code, reason = "so")] // unsafe { }') == []
        assert core(hygiene.check, "base64.rs", "unsafe { f() }") == []
        assert len(core(hygiene.check, "uri.rs", f"x;\n    /// {'word ' * 30}\n")) == 1
        assert core(hygiene.check, "uri.rs", f'//! {"─" * 130}\nlet x = "{"word " * 30}";\n') == []

    def test_panics(self) -> None:
        assert len(core(hygiene.check, "uri.rs", "x.unwrap();\n")) == 1
        assert core(hygiene.check, "uri.rs", "x.unwrap();\n" + "f();\n" * 1000) == []
        assert core(hygiene.check, "uri.rs", "#[cfg(test)] mod tests { fn f() { x.unwrap(); } }") == []

    def test_marks_and_paths(self) -> None:
        for bad in (
            "// TO" + "DO: later",
            "to" + "do!()",
            'open("/ro' + 'ot/x")',
            "#[igno" + "re]",
            "@pytest.mark.sk" + "ip",
        ):
            assert len(found(hygiene.check, a__b_py=bad)) == 1, bad
        lawful = (
            'f("file:///ro' + 'ot/x") # todoist\n@pytest.mark.skipif(WINDOWS, reason="no pipes")\n#[ignore = "slow"]'
        )
        assert found(hygiene.check, a__b_py=lawful) == []


class Links(unittest.TestCase):
    def test_links_and_targets(self) -> None:
        makefile = Tree({"README.md": "[a](gone.md) `make fly`", "Makefile": "test: setup\n\ttrue\n"})
        assert len(list(links.check(makefile))) == 2
        anchors = Tree(
            {"README.md": "# A\n[a](#a) [b](#b) [c](b.md#c-d) [d](b.md#a)", "b.md": "## `C`, d\n```\n# A\n```\n"}
        )
        assert len(list(links.check(anchors))) == 2
        lawful = Tree(
            {"README.md": "[a](b/c.md#d) [b](b) [w](https://x) `make test`", "b/c.md": "# D", "Makefile": "test:\n"}
        )
        assert list(links.check(lawful)) == []


class RustText(unittest.TestCase):
    def test_strings_comments_and_lifetimes(self) -> None:
        text = 'fn f<\'a>(x: &\'a str) { g(\'{\', "}", r#""}"#); /* } */ } fn h();'
        assert [function.name for function in rust_text.functions(text)] == ["f"]
        assert [literal for _, literal in rust_text.strings(text)] == ['"}"', 'r#""}"#']

    def test_offsets_survive(self) -> None:
        text = 'a "b\nc" // d\ne'
        assert len(rust_text.code(text)) == len(text)
        assert rust_text.code(text).count("\n") == 2


class RustTests(unittest.TestCase):
    def test_names_and_documentation(self) -> None:
        text = (
            "/// R-001: a comment.\n#[test]\n#[should_panic]\nfn one() {\n    // R-009\n}\n\n"
            "/// R-002\nfn helper() {}\nmod inner {\n"
            "    /// R-003\n    #[tokio::test]\n    async fn two() {}\n}\n#[test]\nfn three() {}\n"
        )
        assert list(rust_tests.tests("core/engine/src/hub/table.rs", text)) == [
            ("hub::table::one", " R-001: a comment."),
            ("hub::table::inner::two", " R-003"),
            ("hub::table::three", ""),
        ]
        assert list(rust_tests.tests("core/engine/src/hub/mod.rs", "#[test]\nfn a() {}")) == [("hub::a", "")]
        assert list(rust_tests.tests("core/fuzz/tests/smoke.rs", "#[test]\nfn a() {}")) == [("a", "")]


def record(*entries: object) -> ran.Run:
    return ran.read("python", [json.dumps(entry) for entry in entries])


class Ran(unittest.TestCase):
    def test_ranges(self) -> None:
        assert list(ran.ids("R-009 to R-011, S-05; X-01 and DEC-20, R-133 … R-134.")) == [
            *("R-009", "R-010", "R-011", "S-05", "DEC-20", "R-133", "R-134")
        ]

    def test_what_did_not_run_covers_nothing(self) -> None:
        run = record(
            {"of": "a", "cites": "R-001"}, {"of": "b", "left_out": "why"}, {"of": "b", "cites": "R-002"}, {"of": "c"}
        )
        assert run.covered == {"R-001": {"a"}}
        assert not run.ended

    def test_missing_stale_and_unknown_requirements(self) -> None:
        run = record({"of": "a", "cites": "R-001 R-002 R-004"})
        known = [{"id": "R-001"}, {"id": "R-002", "untested": "why"}, {"id": "R-003"}]
        assert [line.partition(":")[0] for line in ran.uncovered([run], known)] == ["R-002", "R-003", "R-004"]

    def test_another_count_of_a_reason(self) -> None:
        run = record({"of": "a", "left_out": "x"}, {"of": "b", "left_out": "x"}, {"of": "c", "left_out": "new"})
        assert list(ran.unexpected([run], {"python": {"x": 2, "new": 1}})) == []
        assert list(ran.unexpected([run], {"python": {"x": [0, 2], "new": 1}})) == []
        assert len(list(ran.unexpected([run], {"python": {"x": 3, "gone": 1}}))) == 3

    def test_a_suite_that_is_missing_or_did_not_end(self) -> None:
        runs = [ran.Run(suite, ended=True) for suite in ("rust", "python", "node-20", "node-24")]
        assert list(ran.incomplete(runs)) == []
        assert len(list(ran.incomplete(runs[:3]))) == 1
        assert len(list(ran.incomplete(runs[1:]))) == 1
        assert len(list(ran.incomplete([*runs[1:], ran.Run("rust")]))) == 1


class Instructions(unittest.TestCase):
    def test_what_costs_more_than_its_budget_fails(self) -> None:
        for counted, failed in ((109, False), (111, True), (50, False)):
            with self.subTest(counted=counted), contextlib.redirect_stdout(io.StringIO()):
                assert instructions.compare({"read": counted}, {"read": 100}) == failed

    def test_what_has_no_budget_or_is_gone_fails(self) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            assert instructions.compare({"read": 1, "new": 1}, {"read": 1}) == 1
            assert instructions.compare({"read": 1}, {"read": 1, "gone": 1}) == 1

    def test_a_raise_is_a_further_entry_with_its_reason(self) -> None:
        before: list[instructions.Entry] = [{"count": 100, "why": "first"}]
        assert [entry["count"] for entry in instructions.extended(before, 90, "less")] == [90]
        raised = instructions.extended(before, 120, "a new check")
        assert [(entry["count"], entry["why"]) for entry in raised] == [(100, "first"), (120, "a new check")]
        assert instructions.unexplained({"read": before}) == []
        assert len(instructions.unexplained({"read": [*before, {"count": 120, "why": " "}]})) == 1
