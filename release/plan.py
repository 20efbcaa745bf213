"""Checks whether a tag can be released from this commit, before anything is built.

With `--crates`, prints the options of `cargo publish` for all crates.
"""

import sys

import project
from project import CRATES, ReleaseError

DRY_RUN = "dry-run"


def main() -> int:
    """Exit status 1 with a sentence on stderr."""
    (word,) = sys.argv[1:] or [DRY_RUN]
    if word == "--crates":
        print(*(f"--package={name}" for name in CRATES))
        return 0
    try:
        project.check_versions()
        project.check_clean()
        project.check_tag()
        if word not in (DRY_RUN, f"v{project.version()}"):
            raise ReleaseError(
                f"the tag {word} is not of the version {project.version()}: give v{project.version()} or {DRY_RUN}"
            )
    except ReleaseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{word}: version {project.version()}, of {', '.join(found.triple for found in project.targets())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
