"""`ResourceHandler`: a registered function, with the completers and the lister of its template."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from ._core import Edit, Function, Resource, UriTemplate, Variable, unexpected
from .access import access
from .errors import RegistrationError
from .functions import describe, helper, json_of, kinds, reader, takes
from .parameters import Param
from .results import expand, named
from .watches import Watches

if TYPE_CHECKING:
    from .blocks import ResourceLink

__all__ = ["ResourceHandler"]

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

_LINKED = ("name", "description", "mime_type", "audience", "priority", "last_modified", "icons")
"""The details of a resource that a link to it has."""


class ResourceHandler(Generic[P, R]):
    """A registered function. `ResourceServer.resource` makes it; calling it calls the function.

    `complete`, `list`, `access` and `on_watch` add further functions.
    """

    def __init__(
        self,
        registrar: tuple[Callable[[list[Edit]], None], Watches, Callable[[str, str], None]],
        uri: str,
        function: Callable[P, R],
        details: dict[str, Any],
    ) -> None:
        if isinstance(function, ResourceHandler):  # decorated twice: one function behind two URIs
            function = function.__wrapped__
        self.__wrapped__: Callable[P, R] = function
        self.uri = uri
        self.__doc__ = function.__doc__
        self._function = function
        self._publish, self._watches, self._check_link = registrar
        self._inline = _switch(details, "inline")
        self._replace = _switch(details, "replace")
        encoder = details.pop("encoder", None)
        self._template = _template(uri, function, details) if "{" in uri else None
        parameters = _named(details, "parameters", Param, 'Param("…")')
        how = (self._inline, "mime_type" not in details, encoder)
        self._reader = reader(function, self._template or uri, parameters, how)
        name, description = describe(function)
        details.setdefault("mime_type", json_of(function))
        details.setdefault("name", name)
        details.setdefault("description", description)
        self._details = {key: value for key, value in details.items() if value is not None}
        self._completers: dict[str, Function] = {}
        self._lister: Function | None = None
        self._access: Function | None = None
        self._pages = False
        self._register()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls the function itself, without the server."""
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<ResourceHandler {self.uri!r}>"

    def complete(self, variable: str, *, inline: bool = False) -> Callable[[F], F]:
        """Registers the decorated function as the completer of a variable.

        It is called with the text that the user has typed and, if it takes a second argument, with a `dict` of the
        variables that are chosen already. It returns a list of texts, best first, or a `Completion`.

        Args:
            variable: the name of the variable.
            inline: whether a `def` runs on the event loop. Default `False`: on a worker thread.

        Raises:
            RegistrationError: the template has no such variable, or this is not a template.
        """
        if not isinstance(variable, str):
            raise TypeError(f'complete needs the variable: write @{self._name}.complete("…") above the function')
        if self._template is None:
            raise RegistrationError(f"{self.uri} is no template, so there is nothing to complete")
        if variable not in self._template.variables:
            raise RegistrationError(f"{self.uri}: {unexpected('variable', variable, [*self._template.variables])}")

        def register(function: F) -> F:
            self._completers[variable] = helper(function, ("value", "arguments"), inline)
            self._register(again=True)
            return function

        return register

    def list(self, function: F) -> F:
        """Registers the decorated function as the lister of the template: it returns the resources that exist.

        Each item is a `Resource`, or a `dict` of the template's variables, or the value itself if there is only one
        variable, or only one that every URI has. A value has a text of its own, as a number or an `Enum` has. Details
        that an item does not have are those of the template, except for the title.

        The function is called for each page of the list, unless `Limits.list_ttl` lets its result be reused. If it
        takes an argument, it must page itself: the argument is the cursor, `None` for the first page, and it returns a
        `ListPage`. Items are sorted by URI. An item with an invalid URI is left out and logged.

        Raises:
            RegistrationError: this is not a template.
        """
        if not callable(function):
            raise TypeError(f"list takes the function itself: write @{self._name}.list above it, without parentheses")
        if self._template is None:
            raise RegistrationError(f"{self.uri} is no template, so there is nothing to list")
        self._lister = helper(function, ("cursor",), self._inline, self._template)
        self._pages = takes(function, "cursor")
        self._register(again=True)
        return function

    @overload
    def access(self, function: F) -> F: ...
    @overload
    def access(self, *, batch: bool = False, inline: bool = False) -> Callable[[F], F]: ...
    def access(self, function: Any = None, *, batch: bool = False, inline: bool = False) -> Any:
        """Registers the decorated function, which decides who may use the resource, or those of the template.

        It is called with the identity of the person, as `Context.principal` has it, and a `dict` of the variables,
        and returns `True` or `False`. A parameter that is called `ctx` or annotated with `Context` gets the request. It
        is asked about each URI before it is listed, completed, read or watched, and before an update is sent. An
        answer is used again for `Limits.access_ttl` milliseconds, or until `ResourceServer.regrant`. What a person may
        not see looks to them as if it did not exist. An exception means no, and is logged.

        Args:
            function: the function, without parentheses behind `access`.
            batch: whether it gets a list of such dicts, and returns a list of bools, so that a list needs one query
                of a database. Default `False`.
            inline: whether a `def` runs on the event loop. Default `False`: on a worker thread.

        Raises:
            RegistrationError: it does not take two arguments.
        """
        if function is not None and not callable(function):
            raise TypeError(f"access takes a function, got {function!r:.80}; write @{self._name}.access above it")

        def register(function: F) -> F:
            self._access = access(function, self._reader.converts, batch=batch, inline=inline)
            self._register(again=True)
            return function

        return register if function is None else register(function)

    def on_watch(self, function: F) -> F:
        """Calls the decorated function with a URI and `True` when the first client watches it, `False` after the last.

        The function is called on a thread of its own, one call at a time, with the URI in canonical form. Changes that
        cancel out before their call are skipped. Register it before the server starts to serve.

        Raises:
            TypeError: it is not a plain function (`def`).
        """
        self._watches.add(self.uri, function)
        return function

    def expand(self, **values: object) -> str:
        """Returns the URI for these values of the variables, such as `handler.expand(day="monday")`.

        Raises:
            TypeError: the template has no such variable, a required value is missing, or one has no text of its own.
            ValueError: a value is a number that is not finite.
        """
        if self._template is not None:
            return expand(self._template, values)
        if values:
            raise TypeError(f"{self.uri} has no variables, so it takes no values: {', '.join(values)}")
        return self.uri

    def link(self, **values: object) -> "ResourceLink":
        """Returns a link to the resource with these values, for a tool to return: `note.link(day="monday")`.

        It has the description and the media type of the template, and a name from the values.

        Raises:
            TypeError: the template has no such variable, a required value is missing, or one has no text of its own.
            ValueError: a value is not of its variable's type or not finite, or the template would refuse the URI or is
                not registered now.
        """
        from .blocks import ResourceLink

        details = {name: self._details[name] for name in _LINKED if name in self._details}
        if self._template is not None:
            details["name"] = named(self._template, values)
        uri = self.expand(**values)
        if self._template is not None and not (found := self._template.match(uri)):
            raise ValueError(f"{self.uri} does not accept {uri}: {found}")
        self._check_link(self.uri, uri)
        return ResourceLink(uri, **details)

    @property
    def _name(self) -> str:
        return getattr(self._function, "__name__", "handler")

    def remove(self) -> None:
        """Removes the resource or template from the server. Can be called from any thread."""
        self._watches.remove(self.uri)
        self._publish([Edit.remove_resource(self.uri) if self._template is None else Edit.remove_template(self.uri)])

    def _register(self, *, again: bool = False) -> None:
        if self._template is None:
            removal = [Edit.remove_resource(self.uri)] if again or self._replace else []
            resource = Resource(self.uri, **self._details)
            self._publish([*removal, Edit.add_resource(resource, self._reader.function, self._access)])
            return
        extra = {
            "completes": [*self._completers],
            "parameters": [_fields(name, param) for name, param in self._reader.parameters.items()],
            "pages": self._pages if self._lister else None,
        }
        functions = (self._reader.function, self._completers, self._lister, self._access)
        removal = [Edit.remove_template(self.uri)] if again or self._replace else []
        self._publish([*removal, Edit.add_template(self._template, self._details | extra, functions)])


def _template(uri: str, function: Callable[..., object], details: dict[str, Any]) -> UriTemplate:
    """The template. Annotations decide which variables are lists or maps, unless `vars` does."""
    given: dict[str, Variable] = _named(details, "vars", Variable, "Variable(…)")
    extra_query = details.pop("extra_query", "ignore")
    template = UriTemplate(uri, given, extra_query=extra_query)
    free = [name for name, variable in template.variables.items() if name not in given and variable.kind == "scalar"]
    own = {name: Variable(kind=kind) for name, kind in kinds(function, free).items()}
    return UriTemplate(uri, given | own, extra_query=extra_query) if own else template


def _switch(details: dict[str, Any], name: str) -> bool:
    given = details.pop(name, False)
    if not isinstance(given, bool):
        raise TypeError(f"{name} is {given!r}, expected True or False")
    return given


def _named(details: dict[str, Any], name: str, of: type, example: str) -> dict[str, Any]:
    """An option whose values belong to variables, by their names."""
    given = details.pop(name, {})
    if not isinstance(given, Mapping):
        raise TypeError(f"{name} is {given!r}, expected a dict by the names of variables, such as {{'x': {example}}}")
    for variable, value in given.items():
        if not isinstance(value, of):
            raise TypeError(f"{name} has {value!r} for the variable {variable!r}, expected {example}")
    return dict(given)


def _fields(name: str, param: Param) -> dict[str, object]:
    known = {"type": param.type, "values": param.values, "pattern": param.pattern, "description": param.description}
    return {"name": name} | {field: value for field, value in known.items() if value is not None}
