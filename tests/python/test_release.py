"""The scripts of the release: what stops them, and that nothing is half written then.

The packages themselves are tried by `release/try_out.py`.
"""

import base64
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from vectors import ROOT

sys.path += [str(ROOT / "release"), str(ROOT / "tests" / "checks")]

import archives
import collect
import compile as compiling
import dist
import metadata
import plan
import project
import tree
from staging import staged


def git(folder: Path, *words: str) -> None:
    own = ("-c", "user.name=x", "-c", "user.email=x@example.com")
    subprocess.run(["git", *own, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init")
    (tmp_path / "a.txt").write_text("a")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "a")
    return tmp_path


def test_a_dirty_tree_is_named(repository: Path) -> None:
    project.check_clean(repository)
    (repository / "a.txt").write_text("b")
    (repository / "new.txt").write_text("c")
    with pytest.raises(project.ReleaseError, match=r"not committed: a\.txt, new\.txt; commit them"):
        project.check_clean(repository)


def test_a_tag_that_exists_is_named(repository: Path) -> None:
    project.check_tag(repository, "1.2.3")
    git(repository, "tag", "v1.2.3")
    with pytest.raises(project.ReleaseError, match=r"the tag v1\.2\.3 exists"):
        project.check_tag(repository, "1.2.3")
    project.check_tag(repository, "1.2.4")


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("package.json", '"version": "0.1.0"', '"version": "0.1.1"'),
        ("package-lock.json", '"version": "0.1.0"', '"version": "0.1.1"'),
        (
            "server.json",
            '"identifier": "mcp-resources",\n      "version": "0.1.0"',
            '"identifier": "x", "version": "0.1.1"',
        ),
        (
            "Cargo.lock",
            'name = "mcp-resources-cli"\nversion = "0.1.0"',
            'name = "mcp-resources-cli"\nversion = "0.1.1"',
        ),
        ("CHANGELOG.md", "## [Unreleased]", "## [0.1.1] - 2026-12-01"),
    ],
)
def test_a_version_that_differs_in_one_file_is_named(path: str, before: str, after: str) -> None:
    files = tree.load(ROOT).files
    for name in ("package-lock.json", "Cargo.lock"):
        files.setdefault(name, (ROOT / name).read_text("utf-8"))
    assert [*metadata.versions(tree.Tree(files))] == []
    assert before in files[path]
    found = [*metadata.versions(tree.Tree({**files, path: files[path].replace(before, after, 1)}))]
    assert {finding.path for finding in found} == {path}
    assert "0.1.1, that of Cargo.toml 0.1.0" in str(found[0])


def test_the_plan_refuses_the_tag_of_another_version(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(project, "check_clean", lambda: None)
    for word, status in ((f"v{project.version()}", 0), ("dry-run", 0), ("v9.9.9", 1), ("9.9.9", 1)):
        monkeypatch.setattr(sys, "argv", ["plan.py", word])
        assert plan.main() == status
    assert "the tag v9.9.9 is not of the version" in capsys.readouterr().err


def beyond_a_limit(folder: Path) -> None:
    """Files of this process cannot grow."""
    (folder / "a").write_text("second")
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limit[1]))
    try:
        (folder / "b").write_bytes(bytes(100_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)


def onto_a_full_device(folder: Path) -> None:
    """A device of the system that is full."""
    (folder / "a").write_text("second")
    (folder / "b").symlink_to("/dev/full")
    (folder / "b").write_bytes(bytes(100_000))


def test_a_full_disk_leaves_everything_as_it_was(tmp_path: Path) -> None:
    out = tmp_path / "dist"
    with staged(out) as staging:
        (staging / "a").write_text("first")
    for fill in (beyond_a_limit, onto_a_full_device):
        with pytest.raises(project.ReleaseError, match=r"dist is as it was"), staged(out) as staging:
            fill(staging)
        assert (out / "a").read_text() == "first"
        assert os.listdir(tmp_path) == ["dist"]
    with staged(out) as staging:
        (staging / "c").write_text("third")
    assert [path.name for path in out.iterdir()] == ["c"]
    assert os.listdir(tmp_path) == ["dist"]


def test_a_run_that_is_ended_leaves_everything_as_it_was(tmp_path: Path) -> None:
    program = (
        "import os, pathlib, signal, sys\n"
        f"sys.path.insert(0, {str(ROOT / 'release')!r})\n"
        "from staging import staged\n"
        f"with staged(pathlib.Path({str(tmp_path / 'dist')!r})) as staging:\n"
        "    (staging / 'new').write_text('new')\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == 128 + signal.SIGTERM
    assert os.listdir(tmp_path) == []


def test_a_step_that_fails_leaves_everything_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "dist"
    out.mkdir()
    (out / "old").write_text("old")

    def broken(build: compiling.Build) -> None:
        raise project.ReleaseError("cargo build failed, with status 101: cargo")

    monkeypatch.setattr(compiling.Build, "programs", broken)
    monkeypatch.setattr(sys, "argv", ["dist.py", "--allow-dirty", "--only", "command", "--out", str(out)])
    assert dist.main() == 1
    assert "error: cargo build failed" in capsys.readouterr().err
    assert {path.name: path.read_text() for path in out.iterdir()} == {"old": "old"}
    assert os.listdir(tmp_path) == ["dist"]


def test_a_fresh_clone_has_no_folder_of_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dist, "TARGET", tmp_path / "target")
    dist.make((), compiling.Build(project.target(None), "dev"), tmp_path, limits=False)
    assert os.listdir(tmp_path / "target") == []


def test_a_command_that_fails_is_named_with_its_last_words() -> None:
    with pytest.raises(project.ReleaseError, match=r"(?s)the step failed, with status 3: .*out of space"):
        project.run("the step", "sh", "-c", "echo out of space >&2; exit 3")
    with pytest.raises(project.ReleaseError, match="the step: no-such-program is not installed"):
        project.run("the step", "no-such-program")


def test_a_platform_without_packages_is_told_which_there_are() -> None:
    with pytest.raises(
        project.ReleaseError, match=r"x86_64-pc-windows-msvc; the platforms are .*x86_64-unknown-linux-gnu"
    ):
        project.target("x86_64-pc-windows-msvc")
    assert {found.node for found in project.targets()} == {
        "linux-x64-gnu",
        "linux-x64-musl",
        "linux-arm64-gnu",
        "linux-arm64-musl",
        "darwin-x64",
        "darwin-arm64",
    }


def test_an_archive_has_the_same_bytes_in_every_run(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "text").write_text("x")
    (folder / "program").write_text("y")
    (folder / "program").chmod(0o700)
    archives.tar(folder, tmp_path / "1.tar.gz")
    os.utime(folder / "program", (1, 1))
    archives.tar(folder, tmp_path / "2.tar.gz")
    assert (tmp_path / "1.tar.gz").read_bytes() == (tmp_path / "2.tar.gz").read_bytes()
    with tarfile.open(tmp_path / "1.tar.gz") as archive:
        found = {member.name: (member.mode, member.uid, member.uname) for member in archive}
    assert found["own/program"] == (0o755, 0, "")
    assert found["own/deep/text"] == (0o644, 0, "")


def test_a_bundle_starts_its_program_with_the_chosen_folders(tmp_path: Path) -> None:
    program = tmp_path / "mcp-resources"
    program.write_text("#!/bin/sh\n")
    target = project.targets()[0]
    archive = archives.bundle(program, target, tmp_path)
    with zipfile.ZipFile(archive) as bundle:
        manifest = json.loads(bundle.read("manifest.json"))
        server = manifest["server"]
        mode = bundle.getinfo(server["entry_point"]).external_attr >> 16
    assert mode == 0o100755
    assert server["mcp_config"]["command"] == "${__dirname}/" + server["entry_point"]
    assert server["mcp_config"]["args"] == ["serve", "${user_config.folders}"]
    assert manifest["user_config"]["folders"]["type"] == "directory"
    entry = json.loads(archives.registry_entry(tmp_path).read_text())
    assert entry["packages"][-1]["fileSha256"] == archives.sha256(archive)
    assert check(tmp_path / "server.json") == 0
    archives.sums(tmp_path)
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=tmp_path, check=True)


def check(path: Path) -> int:
    schema = ROOT / "release" / "server.schema.json"
    checker = Path(sys.executable).with_name("check-jsonschema")
    return subprocess.run([checker, "--schemafile", schema, path], capture_output=True, check=False).returncode


@pytest.mark.parametrize(
    "wrong",
    [
        {"description": "x" * 101},
        {"name": "mcp-resources"},
        {"version": "^0.1"},
        {"packages": []},
        {
            "packages": [
                {
                    "registryType": "mcpb",
                    "identifier": "https://a/mcp.mcpb",
                    "version": "0.1.0",
                    "transport": {"type": "stdio"},
                }
            ]
        },
        {"packages": [{"registryType": "pypi", "identifier": "x", "version": "0.1.0", "transport": {"type": "http"}}]},
        {"other": 1},
    ],
)
def test_a_wrong_entry_of_the_registry_is_refused(tmp_path: Path, wrong: dict[str, object]) -> None:
    entry = json.loads((ROOT / "server.json").read_text())
    path = tmp_path / "server.json"
    path.write_text(json.dumps(entry))
    assert check(path) == 0
    path.write_text(json.dumps(entry | wrong))
    assert check(path) == 1


def test_a_release_without_a_platform_is_not_collected(tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    version = project.version()
    for target in project.targets():
        folder = parts / f"dist-{target.triple}"
        folder.mkdir(parents=True)
        (folder / "SHA256SUMS").write_text("")
        for name in (f"mcp-resources-{target.node}-{version}.tgz", f"mcp-resources-{version}-{target.triple}.tar.gz"):
            (folder / name).write_text("x")
    out = tmp_path / "out"
    out.mkdir()
    collect.collect(parts, out)
    assert len((out / "SHA256SUMS").read_text().splitlines()) == 2 * 6 + 1
    (folder / f"mcp-resources-{target.node}-{version}.tgz").unlink()
    (tmp_path / "other").mkdir()
    with pytest.raises(project.ReleaseError, match=f"{target.node}-{version}.tgz is missing"):
        collect.collect(parts, tmp_path / "other")


def test_the_links_of_the_readme_install_the_command() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    entry = {"command": "uvx", "args": ["mcp-resources", "serve", "${workspaceFolder}"]}
    (editor,) = re.findall(r"\((https://insiders\.vscode\.dev/redirect\?[^)]+)\)", text)
    (address,) = parse_qs(urlsplit(editor).query)["url"]
    assert address.startswith("vscode:mcp/install?")
    assert json.loads(unquote(urlsplit(address).query)) == {"name": "mcp-resources", **entry}
    (cursor,) = re.findall(r"\((https://cursor\.com/install-mcp\?[^)]+)\)", text)
    found = parse_qs(urlsplit(cursor).query)
    assert found["name"] == ["mcp-resources"]
    assert json.loads(base64.b64decode(found["config"][0])) == entry


def test_every_crate_that_may_be_published_is_after_those_that_it_needs() -> None:
    listed = json.loads(
        project.run("cargo metadata", "cargo", "metadata", "--format-version=1", "--no-deps", "--locked", "--offline")
    )["packages"]
    published = {package["name"]: package for package in listed if package["publish"] is None}
    assert sorted(project.CRATES) == sorted(published)
    for name in project.CRATES:
        # What a test alone needs may come later: it is not in the package.
        needs = {need["name"] for need in published[name]["dependencies"] if need["kind"] != "dev"}
        before = set(project.CRATES[: project.CRATES.index(name)])
        assert needs & set(published) <= before, name


def test_packages_of_an_earlier_build_are_forgotten(tmp_path: Path) -> None:
    unpacked = tmp_path / "registry" / "src"
    ours, published = (
        f"{place}/{dist.CRATES[0]}-{project.version()}" for place in ("-e40df0bf95b02185", "crates-1949cf8c")
    )
    for path in (ours, published):
        (unpacked / path / "src").mkdir(parents=True)
    dist.forget_unpacked(tmp_path)
    assert [path for path in (ours, published) if (unpacked / path).exists()] == [published]


def test_a_crate_that_was_not_compiled_or_warns_is_named() -> None:
    said = "".join(f"   Verifying {name} v0.1.0 (/tree)\n   Compiling {name} v0.1.0\n" for name in project.CRATES)
    count = len(project.CRATES)
    assert dist.verified(said) == f"{count} of {count} verified, warnings: none"
    with pytest.raises(project.ReleaseError, match="did not compile mcp-resources from its package"):
        dist.verified(said.replace("Verifying mcp-resources v", "Packaged mcp-resources v"))
    with pytest.raises(project.ReleaseError, match="warning: manifest has no documentation"):
        dist.verified(said + "warning: manifest has no documentation, homepage or repository\n")
