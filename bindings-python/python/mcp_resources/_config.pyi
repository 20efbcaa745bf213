"""A part of `_core`: servers from a configuration file."""

from typing import final

@final
class Config:
    """An opened configuration file, for one server."""
    def __new__(cls, path: str, watch: bool) -> Config: ...
    @staticmethod
    def options() -> list[str]: ...
    @property
    def name(self) -> str: ...
