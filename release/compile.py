"""The compiled parts: the command, the library of Node and the wheel, in the profile that ships.

On Linux, zig is the linker and the C compiler, so that the result needs an old C library only. All three are built with
the same target, linker and compiler, so that what they stand on is compiled once.
"""

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from project import NAME, ROOT, Target, run

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
# Where a macro leaves the types of what Node sees.
TYPES = TARGET / "release-types"
BINDING = "mcp-resources-node"


@dataclass(frozen=True)
class Build:
    """A way to compile: the platform and the profile."""

    target: Target
    profile: str = "release"

    @property
    def folder(self) -> Path:
        """Where cargo leaves the results."""
        return TARGET / self.target.triple / "release" if self.profile == "release" else TARGET / "debug"

    @property
    def options(self) -> tuple[str, ...]:
        """The options for cargo and maturin."""
        return ("--release", "--target", self.target.triple) if self.profile == "release" else ()

    @property
    def environment(self) -> dict[str, str]:
        """The linker and the compiler. The development profile has those of the machine, as `make setup`."""
        types = TYPES if self.profile == "release" else TARGET / "napi-types"
        common = {"PYO3_PYTHON": sys.executable, "NAPI_TYPE_DEF_TMP_FOLDER": str(types)}
        if self.profile != "release" or not self.target.is_linux:
            return common
        name = self.target.triple.replace("-", "_")
        tools = _zig(self.target)
        linker = {f"CARGO_TARGET_{name.upper()}_LINKER": str(tools / "cc")}
        compilers = {"CC": "cc", "CXX": "c++", "AR": "ar", "RANLIB": "ranlib"}
        return common | linker | {f"{tool}_{name}": str(tools / file) for tool, file in compilers.items()}

    def programs(self) -> tuple[Path, Path]:
        """The command, and the library of Node."""
        environment = self.environment
        types = Path(environment["NAPI_TYPE_DEF_TMP_FOLDER"])
        types.mkdir(parents=True, exist_ok=True)
        if self.profile == "release":
            environment["NAPI_FORCE_BUILD_MCP_RESOURCES_NODE"] = _token(types)
        run(
            "cargo build",
            *("cargo", "build", "--locked", *self.options, "--package=mcp-resources-cli", f"--package={BINDING}"),
            env=environment,
            shown=True,
        )
        return self.folder / NAME, self.folder / self.target.library("mcp_resources_node")

    def wheel(self, out: Path) -> Path:
        """The wheel, for every Python from 3.11 on."""
        tag = ("--compatibility", self.target.wheel, "--compression-level=9") if self.profile == "release" else ()
        maturin = Path(sys.executable).with_name("maturin")
        run(
            "maturin build",
            *(maturin, "build", "--locked", *self.options, *tag, "--interpreter", sys.executable, "--out", out),
            env=self.environment,
            shown=True,
        )
        (wheel,) = out.glob("*.whl")
        return wheel


def _token(types: Path) -> str:
    """The same text in every build until the types are lost: cargo compiles the crate anew for another text.

    A macro writes the types while the crate is compiled.
    """
    file = types.with_name(f"{types.name}-token")
    if not (types / BINDING).exists() or not file.is_file():
        file.write_text(str(time.time_ns()))
    return file.read_text()


def _zig(target: Target) -> Path:
    """Programs that call zig for this platform, with what maturin knows about the differences to gcc."""
    folder = TARGET / "zig" / target.zig
    folder.mkdir(parents=True, exist_ok=True)
    maturin = Path(sys.executable).with_name("maturin")
    arch = target.triple.partition("-")[0]
    system = f"{arch}-linux-{target.zig.rpartition('-')[2]}"
    version = run("asking zig for its version", sys.executable, "-m", "ziglang", "version").strip()
    head = (
        "#!/bin/sh\n"
        f"export CARGO_ZIGBUILD_ZIG_VERSION={version}\n"
        f"export CARGO_ZIGBUILD_ZIG_COMMAND='{sys.executable}' CARGO_ZIGBUILD_ZIG_COMMAND_ARGS='-m ziglang'\n"
    )
    compiler = f"-g -fno-sanitize=all -target {system}"
    for name, words in (
        ("cc", f"cc -- {compiler}"),
        ("c++", f"c++ -- {compiler}"),
        ("ar", "ar --"),
        ("ranlib", "ranlib --"),
    ):
        text = f"{head}exec '{maturin}' zig {words} \"$@\"\n"
        path = folder / name
        # Cargo would compile again for a new file.
        if not path.is_file() or path.read_text() != text:
            path.write_text(text)
            path.chmod(0o755)
    return folder
