"""Joins what the machines of all platforms made: `collect.py PARTS DIST`, where PARTS has a folder of each machine."""

import shutil
import sys
from pathlib import Path

import archives
import project
from project import NAME, ReleaseError
from staging import staged


def main() -> int:
    """Exit status 1 with a sentence on stderr: nothing is made."""
    parts, dist = (Path(word).resolve() for word in sys.argv[1:])
    try:
        with staged(dist) as staging:
            collect(parts, staging)
    except ReleaseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def collect(parts: Path, out: Path) -> None:
    """Every platform must be there; what all of them made alike is taken once."""
    for path in sorted(parts.rglob("*")):
        name = path.relative_to(parts).parts[1:]
        if path.is_file() and name not in ((archives.SUMS,), ("server.json",)):
            place = out.joinpath(*name)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)
    version = project.version()
    for target in project.targets():
        for needed in (f"{NAME}-{target.node}-{version}.tgz", f"{NAME}-{version}-{target.triple}.tar.gz"):
            if not (out / needed).is_file():
                raise ReleaseError(f"{needed} is missing: the job of {target.triple} made none")
    archives.registry_entry(out)
    archives.sums(out)


if __name__ == "__main__":
    sys.exit(main())
