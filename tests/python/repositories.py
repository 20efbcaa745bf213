"""Git repositories for tests, made with the git program."""

import os
import subprocess
from pathlib import Path


def git(folder: Path, *arguments: str) -> str:
    """Runs git without the configuration of this machine."""
    environment = os.environ | {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Ada",
        "GIT_AUTHOR_EMAIL": "ada@example.org",
        "GIT_COMMITTER_NAME": "Ada",
        "GIT_COMMITTER_EMAIL": "ada@example.org",
    }
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, env=environment, capture_output=True, check=True, text=True
        )
    except FileNotFoundError:
        raise AssertionError("these tests make repositories with the git program; install git") from None
    return done.stdout


def commit(folder: Path, subject: str) -> str:
    """Commits all that is there; its id."""
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", subject)
    return git(folder, "rev-parse", "HEAD").strip()


def make_repository(folder: Path) -> Path:
    """Two commits on `main`, and the branch `feature/x` at the first."""
    project = folder / "project"
    project.mkdir()
    git(project, "init", "-q", "-b", "main")
    (project / "a.txt").write_text("one\n")
    (project / "secret").write_text("CANARY\n")
    commit(project, "First")
    git(project, "branch", "feature/x")
    (project / "a.txt").write_text("two\n")
    (project / "secret").write_text("CANARY again\n")
    commit(project, "Second")
    return project
