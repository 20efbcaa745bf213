"""The part of `_core` for registrations: types only."""

from collections.abc import Mapping
from typing import Any, final

from typing_extensions import Buffer

from ._core import Function, Resource, UriTemplate

@final
class Edit:
    """One registration or removal."""
    @staticmethod
    def add_resource(resource: Resource, source: Function | str | Buffer, access: Function | None = None) -> Edit: ...
    @staticmethod
    def add_page(fields: Mapping[str, object], source: Function | str) -> Edit: ...
    @staticmethod
    def remove_resource(uri: str) -> Edit: ...
    @staticmethod
    def add_template(
        uri_template: UriTemplate,
        fields: Mapping[str, Any],
        functions: tuple[Function, Mapping[str, Function], Function | None, Function | None],
    ) -> Edit: ...
    @staticmethod
    def remove_template(uri_template: str) -> Edit: ...
    @staticmethod
    def add_tool(fields: Mapping[str, Any], function: Function) -> Edit: ...
    @staticmethod
    def remove_tool(name: str) -> Edit: ...
    @staticmethod
    def add_prompt(fields: Mapping[str, Any], function: Function, completers: Mapping[str, Function]) -> Edit: ...
    @staticmethod
    def remove_prompt(name: str) -> Edit: ...
