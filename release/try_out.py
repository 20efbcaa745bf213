"""Installs each package into an empty environment without a compiler, uses it as the README says, and removes it.

`make test-dist` calls it, and the release workflow on the machines of each platform.
"""

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import project
from project import LICENSES, NAME, ROOT, ReleaseError, run

# A compiler or a tool of Rust: nothing that is installed may need it.
TOOLCHAIN = re.compile(
    r"^(cargo|rust.*|cc|c\+\+|c[89]9|gcc.*|g\+\+.*|clang.*|cpp.*|ld|ld\..*|gold|as|make|.*-linux-gnu-.*)$"
)
TOOLS = ROOT / "target" / "release-tools"
CARGO_TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
# The longest time of `pip install` and `npm install` from a file, in seconds of the processor: other
# work on the machine does not add to them.
INSTALLED_WITHIN = 15
CLIENT = """
import asyncio
from pathlib import Path
from mcp_resources import Client

async def main():
    async with Client(["mcp-resources", "serve", "project"]) as client:
        print(await client.read("file:///project/docs/hello.md"), end="")
        async for change in client.watch("file:///project/docs/hello.md"):
            print(change.contents, end="")
            if "again" in str(change.contents):
                break
            Path("project/docs/hello.md").write_text("Hello again\\n")

asyncio.run(asyncio.wait_for(main(), 60))
"""
NODE_CLIENT = """
import { writeFileSync } from 'node:fs';
import { Client } from 'mcp-resources';

const client = new Client(['mcp-resources', 'serve', 'project']);
process.stdout.write(await client.read('file:///project/docs/hello.md'));
for await (const { contents } of client.watch('file:///project/docs/hello.md')) {
  process.stdout.write(String(contents));
  if (String(contents).includes('again')) break;
  writeFileSync('project/docs/hello.md', 'Hello again\\n');
}
await client.close();
"""
SEEN = "Hello\nHello\nHello again\n"


class Place:
    """An empty folder with a home of its own, and a `PATH` without a compiler."""

    def __init__(self, folder: Path, programs: Path, *more: Path) -> None:
        """`more` are folders of programs that were installed for this place."""
        folder.mkdir(parents=True)
        self.folder = folder
        # Settings of the network and of registries, which belong to the machine.
        settings = ("PIP_", "SSL_", "NODE_EXTRA_CA_CERTS", "npm_config_", "LC_", "LANG")
        kept = {key: os.environ[key] for key in os.environ if key.startswith(settings)}
        path = os.pathsep.join(str(part) for part in (*more, programs))
        self.environment = {**kept, "HOME": str(folder), "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        for name in (".npmrc", ".config/pip/pip.conf"):
            if (own := Path.home() / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(own, folder / name)

    def run(self, *command: "str | Path", status: int = 0, at: Path | None = None) -> str:
        """Runs a command and returns stdout; with another status, stderr too."""
        done = subprocess.run(
            [str(word) for word in command],
            cwd=at or self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=300,
            check=False,
        )
        if done.returncode != status:
            said = f"{done.stdout}{done.stderr}"[-2000:]
            raise ReleaseError(f"{' '.join(map(str, command))}: status {done.returncode}, not {status}\n{said}")
        return done.stdout if status == 0 else done.stdout + done.stderr

    def timed(self, what: str, *command: "str | Path") -> None:
        """Runs an installation from a file, which must be short."""
        start, before = time.monotonic(), _processor_time()
        self.run(*command)
        took, used = time.monotonic() - start, _processor_time() - before
        print(f"   {what}: {took:.1f} s, {used:.1f} s of the processor")
        if used > INSTALLED_WITHIN:
            raise ReleaseError(f"{what} took {used:.1f} s of the processor, more than {INSTALLED_WITHIN}")

    def project(self) -> None:
        """The folder of the README."""
        (self.folder / "project" / "docs").mkdir(parents=True, exist_ok=True)
        (self.folder / "project" / "README.md").write_text("# Notes\n")
        (self.folder / "project" / "docs" / "hello.md").write_text("Hello\n")


def _processor_time() -> float:
    """That of all programs that were run, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def expect(found: str, *parts: str) -> None:
    """Compares what a program printed."""
    for part in parts:
        if part not in found:
            raise ReleaseError(f"{part!r} is not in the output:\n{found[-2000:]}")


def block(language: str, name: str) -> str:
    """A program of the README."""
    found = re.search(
        rf"^```{language} {re.escape(name)}\n(.*?)^```",
        (ROOT / "README.md").read_text("utf-8"),
        re.DOTALL | re.MULTILINE,
    )
    if not found:
        raise ReleaseError(f"README.md has no program {name}")
    return found[1]


def programs(folder: Path) -> Path:
    """Links to the programs of the system, but for compilers, Python and Node."""
    folder.mkdir()
    for source in (Path("/bin"), Path("/usr/bin")):
        for path in sorted(source.iterdir()):
            own = re.match(r"^(python|pip|node|npm|npx|corepack)", path.name)
            if not own and not TOOLCHAIN.match(path.name) and not (folder / path.name).exists():
                (folder / path.name).symlink_to(path)
    for name in ("cc", "cargo", "gcc", "rustc", "python3", "node"):
        if shutil.which(name, path=str(folder)):
            raise ReleaseError(f"{name} is in {folder}")
    return folder


def only(folder: Path, pattern: str) -> Path:
    """The one file of this form."""
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise ReleaseError(f"{folder} has {len(found)} files {pattern}, not one; run `make dist`")
    return found[0]


def pythons() -> list[Path]:
    """The oldest and the newest Python that are supported and installed."""
    found: dict[tuple[int, int], Path] = {}
    for path in (
        Path(sys.executable),
        *Path.home().glob(".pyenv/versions/*/bin/python3"),
        *map(Path, ("/usr/bin/python3", "/usr/local/bin/python3")),
    ):
        if path.is_file():
            said = run(f"asking {path}", path, "-c", "import sys; print(*sys.version_info[:2])").split()
            number = (int(said[0]), int(said[1]))
            if number >= (3, 11):
                found.setdefault(number, path)
    return [found[number] for number in sorted({min(found), max(found)})]


def nodes() -> list[Path]:
    """Node 20 or what is installed, and Node 24."""
    own = shutil.which(os.environ.get("NODE", "node"))
    if not own:
        raise ReleaseError("Node is not installed")
    newer = run("installing Node 24", ROOT / "tests" / "node" / "newer-node").strip()
    return [Path(own).resolve(), Path(newer)]


def tools() -> Path:
    """Bundlers, pnpm and the tool of `.mcpb`, in `target`."""
    TOOLS.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        text = (ROOT / "release" / name).read_bytes()
        if not (TOOLS / name).is_file() or (TOOLS / name).read_bytes() != text:
            (TOOLS / name).write_bytes(text)
            shutil.rmtree(TOOLS / "node_modules", ignore_errors=True)
    if not (TOOLS / "node_modules").is_dir():
        npm = os.environ.get("NPM", "npm")
        run(
            "npm ci of the tools",
            npm,
            "ci",
            "--ignore-scripts",
            "--loglevel=error",
            "--no-audit",
            "--no-fund",
            at=TOOLS,
        )
    return TOOLS / "node_modules" / ".bin"


def try_wheel(dist: Path, folder: Path, system: Path, python: Path) -> None:
    """`pip install`, a server and a client, `pip uninstall`; then the same with `uvx`."""
    wheel = only(dist, "*.whl")
    environment = folder / "environment"
    run("venv", python, "-m", "venv", environment)
    place = Place(folder / "work", system, environment / "bin")
    place.project()
    pip = (environment / "bin" / "python", "-m", "pip")
    place.timed("pip install", *pip, "install", "--quiet", "--only-binary=:all:", "--no-index", wheel)
    serve = (NAME, "serve", "project")
    expect(place.run(NAME, "ls", "--", *serve), "file:///project/docs/hello.md")
    (place.folder / "client.py").write_text(CLIENT)
    if (seen := place.run("python", "client.py")) != SEEN:
        raise ReleaseError(f"the client saw {seen!r}")
    # The tools of the server of the README need pydantic.
    place.run(*pip, "install", "--quiet", "--only-binary=:all:", f"{wheel}[tools]")
    (place.folder / "notes.py").write_text(block("python", "notes.py"))
    expect(place.run(NAME, "read", "notes://day/monday", "--", "python", "notes.py"), "Buy milk")
    place.run(*pip, "uninstall", "--quiet", "--yes", NAME)
    left = [path for path in environment.rglob("*mcp_resources*") if "__pycache__" not in path.parts]
    if left or (environment / "bin" / NAME).exists():
        raise ReleaseError(f"pip uninstall leaves {left or environment / 'bin' / NAME}")
    place.project()
    uvx = Path(sys.executable).with_name("uvx")
    own = (uvx, "--python", python, "--offline", "--from", wheel)
    expect(place.run(*own, NAME, "ls", "--", *map(str, own), *serve), "file:///project/docs/hello.md")


def try_sums(dist: Path, *_: Path) -> None:
    """The sums, and what registries ask of the metadata."""
    run("sha256sum", "sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS", at=dist)
    files = [only(dist, "*.whl"), *dist.glob("mcp_resources-*.tar.gz")]
    run("twine check", sys.executable, "-m", "twine", "check", "--strict", *files)


def try_npm(dist: Path, folder: Path, system: Path, node: Path) -> None:
    """`npm install`, a server and a client, `npx`, `npm uninstall`."""
    place = _node_place(folder, system, node)
    packages = _packages(dist)
    # Those of other platforms are not published with these files.
    place.timed("npm install", "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", *packages)
    place.environment["PATH"] = f"{place.folder / 'node_modules' / '.bin'}:{place.environment['PATH']}"
    _serve_with_node(place, "npx")
    place.run("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "zod@4.6.7")
    (place.folder / "notes.mjs").write_text(block("ts", "notes.ts"))
    expect(place.run(NAME, "read", "notes://day/tuesday", "--", "node", "notes.mjs"), "Water the plants")
    try_platforms(place)
    try_bundles(place)
    place.run("npm", "uninstall", "--ignore-scripts", *[path.name.rpartition("-")[0] for path in packages])
    if left := list((place.folder / "node_modules").glob(f"{NAME}*")):
        raise ReleaseError(f"npm uninstall leaves {left}")


def _packages(dist: Path) -> tuple[Path, Path]:
    name = f"{NAME}-{project.target(None).node}"
    return only(dist, f"{NAME}-[0-9]*.tgz"), only(dist, f"{name}-[0-9]*.tgz")


def _node_place(folder: Path, system: Path, node: Path) -> Place:
    bin_folder = folder / "bin"
    bin_folder.mkdir(parents=True)
    (bin_folder / "node").symlink_to(node)
    for name in ("npm", "npx"):
        if found := shutil.which(os.environ.get("NPM", "npm") if name == "npm" else name):
            (bin_folder / name).symlink_to(Path(found).resolve())
    place = Place(folder / "work", system, bin_folder)
    (place.folder / "package.json").write_text('{"private": true, "type": "module"}\n')
    place.project()
    return place


def _serve_with_node(place: Place, *runner: str) -> None:
    serve = (*runner, NAME, "serve", "project")
    expect(place.run(*runner, NAME, "ls", "--", *serve), "file:///project/docs/hello.md")
    (place.folder / "client.mjs").write_text(NODE_CLIENT)
    if (seen := place.run("node", "client.mjs")) != SEEN:
        raise ReleaseError(f"the client saw {seen!r}")
    place.project()


def try_pnpm(dist: Path, folder: Path, system: Path, node: Path) -> None:
    """`pnpm add`, a server and a client."""
    place = _node_place(folder, system, node)
    pnpm = tools() / "pnpm"
    package, part = _packages(dist)
    # pnpm shows a package only what it names itself: the part of the platform, which here is a file.
    overrides = f"overrides:\n  {part.name.rpartition('-')[0]}: file:{part}\n"
    (place.folder / "pnpm-workspace.yaml").write_text(overrides)
    place.timed("pnpm add", pnpm, "add", "--ignore-scripts", package)
    place.environment["PATH"] = f"{place.folder / 'node_modules' / '.bin'}:{place.environment['PATH']}"
    _serve_with_node(place)


def try_platforms(place: Place) -> None:
    """A system without a package gets one sentence that names those that there are."""
    for platform, cpu in (("win32", "x64"), ("linux", "riscv64"), ("freebsd", "x64")):
        program = (
            f"Object.defineProperty(process, 'platform', {{ value: '{platform}' }});"
            f"Object.defineProperty(process, 'arch', {{ value: '{cpu}' }});"
            f"require('{NAME}');"
        )
        said = place.run("node", "--input-type=commonjs", "--eval", program, status=1)
        expect(said, f"there is no build of {NAME} for {platform} on {cpu}, only for Linux", "macOS", "WSL")
    # Another C library, and its package is not there.
    hidden = place.folder / "node_modules" / f"{NAME}-{project.target(None).node}"
    away = hidden.with_name("away")
    hidden.rename(away)
    said = place.run("node", "--input-type=commonjs", "--eval", f"require('{NAME}')", status=1)
    away.rename(hidden)
    expect(said, "npm install", "glibc", "musl", "macOS")


def try_bundles(place: Place) -> None:
    """A program that a bundler has taken in says what to do, and works if it is left out."""
    bundlers = tools()
    program = """
        import { ResourceServer } from 'mcp-resources';
        new ResourceServer({ name: 'x' }).resource('a://b', () => 'c');
        console.log('works');
    """
    (place.folder / "app.mjs").write_text(program)
    esbuild = (bundlers / "esbuild", "app.mjs", "--bundle", "--platform=node", "--log-level=error")
    (place.folder / "out").mkdir()
    place.run(*esbuild, "--outfile=out/inside.cjs")
    # Where the package is not at hand either.
    elsewhere = place.folder.parent / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    shutil.copyfile(place.folder / "out" / "inside.cjs", elsewhere / "inside.cjs")
    expect(place.run("node", "inside.cjs", status=1, at=elsewhere), f"esbuild --external:{NAME}")
    place.run(*esbuild, f"--external:{NAME}", "--format=esm", "--outfile=out/outside.mjs")
    expect(place.run("node", "out/outside.mjs"), "works")
    place.run(bundlers / "vite", "build", "--ssr", "app.mjs", "--outDir", "vite", "--logLevel", "error")
    expect(place.run("node", only(place.folder / "vite", "app.*js")), "works")


def try_archive(dist: Path, folder: Path, system: Path) -> None:
    """The command from its archive, with its manual; and from the bundle for Claude Desktop."""
    place = Place(folder / "work", system)
    place.project()
    target = project.target(None)
    with tarfile.open(only(dist, f"{NAME}-*-{target.triple}.tar.gz")) as archive:
        archive.extractall(place.folder, filter="data")
    (own,) = place.folder.glob(f"{NAME}-*")
    names = {str(path.relative_to(own)) for path in own.rglob("*") if path.is_file()}
    for name in (*LICENSES, "README.md", f"man/{NAME}.1", f"man/{NAME}-serve.1", f"completions/{NAME}.bash"):
        if name not in names:
            raise ReleaseError(f"the archive of the command has no {name}")
    command = own / NAME
    expect(place.run(command, "ls", "--", command, "serve", "project"), "file:///project/docs/hello.md")
    expect(place.run(command, "--version"), project.version())
    bundle = only(dist, f"{NAME}-*-{target.node}.mcpb")
    mcpb = tools() / "mcpb"
    unpacked = place.folder / "bundle"
    run("mcpb unpack", mcpb, "unpack", bundle, unpacked)
    run("mcpb validate", mcpb, "validate", unpacked / "manifest.json")
    served = unpacked / "server" / NAME
    served.chmod(0o755)  # As the application does with an entry point of type `binary`.
    expect(place.run(command, "read", "file:///project/docs/hello.md", "--", served, "serve", "project"), "Hello")


def try_crates(dist: Path, folder: Path) -> None:
    """A program that depends on the packages of the crates alone. This one compiles."""
    crates = folder / "crates"
    crates.mkdir(parents=True)
    for name in project.CRATES:
        with tarfile.open(dist / "crates" / f"{name}-{project.version()}.crate") as archive:
            archive.extractall(crates, filter="data")
    own = folder / "notes"
    run("cargo init", "cargo", "init", "--quiet", "--vcs=none", "--name=notes", own)
    source = re.search(r"^```rust,no_run\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL | re.MULTILINE)
    if not source:
        raise ReleaseError("README.md has no program in Rust")
    (own / "src" / "main.rs").write_text(source[1])
    patches = "".join(f'{name} = {{ path = "{crates / f"{name}-{project.version()}"}" }}\n' for name in project.CRATES)
    with (own / "Cargo.toml").open("a") as manifest:
        manifest.write(f"\n[patch.crates-io]\n{patches}")
    path = crates / f"{NAME}-{project.version()}"
    run("cargo add", "cargo", "add", "--quiet", NAME, "--path", path, at=own)
    run("cargo add", "cargo", "add", "--quiet", "tokio@1", "--features=macros,rt", at=own)
    (own / "Cargo.lock").write_bytes((ROOT / "Cargo.lock").read_bytes())
    # As `make dist` compiles the crates from their packages: what they stand on is compiled once for both.
    plain = {"CARGO_PROFILE_DEV_DEBUG": "none", "CARGO_TARGET_DIR": str(CARGO_TARGET)}
    run("cargo build", "cargo", "build", "--quiet", at=own, env=plain, shown=True)
    program = CARGO_TARGET / "debug" / "notes"
    command = folder / NAME
    target = project.target(None)
    with tarfile.open(only(dist, f"{NAME}-*-{target.triple}.tar.gz")) as archive:
        command.write_bytes(archive.extractfile(f"{NAME}-{project.version()}-{target.triple}/{NAME}").read())  # type: ignore[union-attr]
    command.chmod(0o755)
    expect(run("reading", command, "read", "notes://day/monday", "--", program), "Buy milk")


def steps(dist: Path, folder: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """What is tried, with its name, in order."""
    system = programs(folder / "system")
    yield "sums", partial(try_sums, dist)
    for python in pythons():
        name = f"wheel {_version(python)}"
        yield name, partial(try_wheel, dist, folder / name, system, python)
    for node in nodes():
        name = f"npm {_version(node)}"
        yield name, partial(try_npm, dist, folder / name, system, node)
    yield "pnpm", lambda: try_pnpm(dist, folder / "pnpm", system, nodes()[-1])
    yield "archive", partial(try_archive, dist, folder / "archive", system)
    if (dist / "crates").is_dir():
        yield "crates", partial(try_crates, dist, folder / "rust")


def main() -> int:
    """Exit status 1 at the first package that does not work."""
    parser = argparse.ArgumentParser(description="Tries the packages of this platform.")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="the folder of the packages [default: dist]")
    parser.add_argument("--only", action="append", help="a step, such as wheel; may be repeated [default: all]")
    options = parser.parse_args()
    name = "preparing"
    with tempfile.TemporaryDirectory(prefix="mcp-resources-try-") as folder:
        try:
            for name, step in steps(options.dist.resolve(), Path(folder)):
                if not options.only or name.split()[0] in options.only:
                    start = time.monotonic()
                    print(f"== {name}", flush=True)
                    step()
                    print(f"   {time.monotonic() - start:.0f} s", flush=True)
        except ReleaseError as error:
            print(f"error: {name}: {error}", file=sys.stderr)
            return 1
    return 0


def _version(program: Path) -> str:
    return run(f"asking {program}", program, "--version").split()[-1].removeprefix("v")


if __name__ == "__main__":
    sys.exit(main())
