"""A Google Drive on loopback: the program `serve-drive` of `tests/rust`."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = "application/vnd.google-apps.document"
CREDENTIALS = {"type": "authorized_user"} | dict.fromkeys(("client_id", "client_secret", "refresh_token"), "canary")


class LoopbackDrive:
    """One that runs; see `listening`."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self._process = process
        self.url = url

    def put(self, id: str, name: str, text: str, *, mime_type: str = DOCUMENT, drive: str | None = None) -> None:
        """Puts a file into My Drive or a shared drive, in the place of what was there."""
        self.command(put={"id": id, "name": name, "mimeType": mime_type, "text": text, "drive": drive})

    def command(self, **members: object) -> list[str]:
        """Does what the members say; the requests so far."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(members) + "\n")
        self._process.stdin.flush()
        return list(json.loads(self._process.stdout.readline()))


@contextmanager
def listening() -> Iterator[LoopbackDrive]:
    """One with two documents, until the block ends."""
    found = subprocess.run(
        [ROOT / "tests" / "rust" / "program", "serve-drive"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=1800,
    )
    program = ROOT / found.stdout.strip()
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        drive = LoopbackDrive(process, process.stdout.readline().strip())
        drive.put("doc1", "Plan", "# Plan\n\nOpen the shop in Kawagoe.\n")
        drive.put("txt2", "notes.txt", "Espresso is in the kitchen.", mime_type="text/plain")
        yield drive
