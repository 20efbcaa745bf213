"""Why goals are short: `reasons.toml`, by key."""

import tomllib
from pathlib import Path

_TOLD = tomllib.loads((Path(__file__).parent / "reasons.toml").read_text("utf-8"))
REASONS = {key: " ".join(text.split()) for key, text in _TOLD.items()}
