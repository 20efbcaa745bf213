"""A registered function, and what else can be said of its template."""

from collections.abc import Callable, Mapping
from typing import Any, Generic, ParamSpec, TypeVar

from ._core import Edit, Function, Resource, UriTemplate, Variable, unexpected
from .errors import RegistrationError
from .functions import describe, helper, json_of, kinds, reader, takes
from .parameters import Param
from .results import expand
from .watches import Watches

__all__ = ["ResourceHandler"]

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


class ResourceHandler(Generic[P, R]):
    """What `ResourceServer.resource` returns. It is called as the function itself.

    `complete`, `list` and `on_watch` say more.
    """

    def __init__(
        self,
        registrar: tuple[Callable[[list[Edit]], None], Watches],
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
        self._publish, self._watches = registrar
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
        self._pages = False
        self._register()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls the function, as if it were not registered."""
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<ResourceHandler {self.uri!r}>"

    def complete(self, variable: str, *, inline: bool = False) -> Callable[[F], F]:
        """Completes a variable with the decorated function, which is called with what was typed.

        If it takes a second argument, that is a `dict` of the values chosen so far. It returns texts, best first, or a
        `Completion`.

        Raises:
            RegistrationError: the template has no such variable.
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
        """Lists the concrete resources of the template with the decorated function.

        It returns `Resource`s, or the values of the template's variables: a `dict` each, or one value each if there is
        one variable. What they do not say of themselves is what the template says, but for the title. It is called for
        each page of a walk, unless `Limits.list_ttl` keeps what it gives. If it takes an argument, that is a cursor,
        `None` at first, and it returns a `ListPage`. Items are listed in the order of their URIs; one with a bad URI is
        left out and logged.

        Raises:
            RegistrationError: this is no template.
        """
        if not callable(function):
            raise TypeError(f"list takes the function itself: write @{self._name}.list above it, without parentheses")
        if self._template is None:
            raise RegistrationError(f"{self.uri} is no template, so there is nothing to list")
        self._lister = helper(function, ("cursor",), self._inline, self._template)
        self._pages = takes(function, "cursor")
        self._register(again=True)
        return function

    def on_watch(self, function: F) -> F:
        """Calls the decorated function when clients begin to watch a URI (`True`) and when the last ceases (`False`).

        It is called on a thread of its own, one change at a time; what is undone before its turn is left out. URIs are
        in canonical form. Register it before the server serves.

        Raises:
            TypeError: it is no plain function.
        """
        self._watches.add(self.uri, function)
        return function

    def expand(self, **values: object) -> str:
        """The URI with these values of the template's variables; the URI itself of a resource without variables.

        Raises:
            TypeError: a variable is unknown, or a value is missing that every URI has.
        """
        if self._template is not None:
            return expand(self._template, values)
        if values:
            raise TypeError(f"{self.uri} has no variables, so it takes no values: {', '.join(values)}")
        return self.uri

    @property
    def _name(self) -> str:
        return getattr(self._function, "__name__", "handler")

    def remove(self) -> None:
        """Removes it from the server. From any thread."""
        self._watches.remove(self.uri)
        self._publish([Edit.remove_resource(self.uri) if self._template is None else Edit.remove_template(self.uri)])

    def _register(self, *, again: bool = False) -> None:
        if self._template is None:
            removal = [Edit.remove_resource(self.uri)] if self._replace else []
            self._publish([*removal, Edit.add_resource(Resource(self.uri, **self._details), self._reader.function)])
            return
        extra = {
            "completes": [*self._completers],
            "parameters": [_fields(name, param) for name, param in self._reader.parameters.items()],
            "pages": self._pages if self._lister else None,
        }
        functions = (self._reader.function, self._completers, self._lister)
        removal = [Edit.remove_template(self.uri)] if again or self._replace else []
        self._publish([*removal, Edit.add_template(self._template, self._details | extra, functions)])


def _template(uri: str, function: Callable[..., object], details: dict[str, Any]) -> UriTemplate:
    """The template. A variable is a list or a map if the function's annotation says so, and `vars` nothing else."""
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
    """An option that has a value for each of some variables."""
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
