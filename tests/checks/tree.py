"""The files that the checks look at, and what a finding is.

Knows nothing of any check. A `Tree` is plain data, so that the self-test can hand in one with a breach.
"""

import subprocess
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

LAYERS = Path(__file__).with_name("layers.toml")


@dataclass(frozen=True)
class Finding:
    """One breach: where it is and what is wrong."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclass(frozen=True)
class Level:
    """One row of the table of layers: its crate, by the folder under `core`, and the modules."""

    crate: str
    name: str
    modules: tuple[str, ...]
    together: bool = False


@dataclass(frozen=True)
class Floors:
    """The folders of one binding, lowest first, and the most files that may import each other in a circle."""

    folder: str
    floors: tuple[tuple[str, ...], ...]
    circle: int


@dataclass(frozen=True)
class Tree:
    """File texts by path (relative to the root, with slashes), and the tables of layers and floors."""

    files: dict[str, str]
    levels: tuple[Level, ...] = field(default_factory=lambda: read_levels(LAYERS.read_text("utf-8")))
    floors: tuple[Floors, ...] = field(default_factory=lambda: read_floors(LAYERS.read_text("utf-8")))

    def under(self, *folders: str, ext: tuple[str, ...] = (".rs",)) -> Iterator[tuple[str, str]]:
        """The files below any of `folders` (all when none is named) that end in one of `ext`."""
        for path, text in sorted(self.files.items()):
            inside = not folders or any(path.startswith(folder + "/") for folder in folders)
            if inside and path.endswith(ext):
                yield path, text


Check = Callable[[Tree], Iterator[Finding]]


def read_levels(table: str) -> tuple[Level, ...]:
    """Parses the table of layers."""
    return tuple(
        Level(crate, **{**row, "modules": tuple(row["modules"])})
        for crate, rows in tomllib.loads(table).items()
        if crate != "floors"
        for row in rows
    )


def read_floors(table: str) -> tuple[Floors, ...]:
    """Parses the table of floors."""
    rows = tomllib.loads(table).get("floors", [])
    return tuple(Floors(row["folder"], tuple(map(tuple, row["floors"])), row["circle"]) for row in rows)


def load(root: Path) -> Tree:
    """Every file that git tracks or would track."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=root,
        check=True,
        capture_output=True,
    )
    files = {}
    for name in listing.stdout.decode().split("\0"):
        path = root / name
        if name and path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            # A binary file, such as a picture, is only the goal of links.
            files[name] = "" if b"\0" in data[:8192] else data.decode("utf-8", "replace")
    return Tree(files)


def module_of(path: str) -> tuple[str, ...]:
    """The module that a file of a crate is: `core/engine/src/hub/table.rs` is `("hub", "table")`, `lib.rs` is `()`."""
    parts = PurePosixPath(path).with_suffix("").parts
    parts = parts[parts.index("src") + 1 :]
    return parts[:-1] if parts[-1] in ("mod", "lib") else parts


def line_at(text: str, offset: int) -> int:
    """The line number of an offset, from 1."""
    return text.count("\n", 0, offset) + 1
