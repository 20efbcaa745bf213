"""A folder that is replaced as a whole or not at all."""

import errno
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from project import ReleaseError


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """A new folder beside `folder`, which takes its place at the end. After an error, `folder` is as it was."""
    # As after an interruption: what is below `finally` runs.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    folder.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        yield staging
        staging.chmod(0o755)
        _replace(folder, staging)
    except OSError as error:
        place = error.filename or staging
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise ReleaseError(f"{place}: {error.strerror}; {folder} is as it was") from error
        raise ReleaseError(f"{place}: {error.strerror or error}; {folder} is as it was") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _replace(folder: Path, staging: Path) -> None:
    old = staging.with_name(f"{staging.name}-old")
    if folder.exists():
        folder.rename(old)
    try:
        staging.rename(folder)
    except OSError:
        if old.exists():
            old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)
