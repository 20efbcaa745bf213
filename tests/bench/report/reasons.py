"""Why goals are short: `reasons.toml`, by key."""

import tomllib
from dataclasses import dataclass
from datetime import date
from pathlib import Path


@dataclass(frozen=True)
class Reason:
    """What a profile showed, and the day on which somebody wrote it down."""

    text: str
    written: date


_READ = tomllib.loads((Path(__file__).parent / "reasons.toml").read_text("utf-8"))
REASONS = {key: Reason(" ".join(reason["why"].split()), reason["written"]) for key, reason in _READ.items()}
