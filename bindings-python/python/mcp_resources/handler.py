"""A registered function, and what else can be said of its template."""

from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

from ._core import Edit, Function, Resource, UriTemplate, Variable
from .errors import RegistrationError
from .functions import describe, helper, kinds, reader, takes
from .parameters import Param

__all__ = ["ResourceHandler"]

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


class ResourceHandler(Generic[P, R]):
    """What `ResourceServer.resource` returns. It is called as the function itself; `complete` and `list` say more."""

    def __init__(
        self,
        publish: Callable[[list[Edit]], None],
        uri: str,
        function: Callable[P, R],
        details: dict[str, Any],
    ) -> None:
        self.uri = uri
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        self._function = function
        self._publish = publish
        self._inline = bool(details.pop("inline", False))
        self._template = _template(uri, function, details) if "{" in uri else None
        parameters = details.pop("parameters", {})
        self._reader = reader(function, self._template, parameters, (self._inline, "mime_type" not in details))
        name, description = describe(function)
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
        if self._template is None or variable not in self._template.variables:
            raise RegistrationError(f"{variable!r} is no variable of {self.uri}")

        def register(function: F) -> F:
            self._completers[variable] = helper(function, ("value", "arguments"), inline)
            self._register(again=True)
            return function

        return register

    def list(self, function: F) -> F:
        """Lists the concrete resources of the template with the decorated function, which returns `Resource`s.

        It is called for each page of a walk, unless `Limits.list_ttl` keeps what it gives. If it takes an argument,
        that is a cursor, `None` at first, and it returns a `ListPage`.

        Raises:
            RegistrationError: this is no template.
        """
        if self._template is None:
            raise RegistrationError(f"{self.uri} is no template, so there is nothing to list")
        self._lister, self._pages = helper(function, ("cursor",), self._inline), takes(function) > 0
        self._register(again=True)
        return function

    def remove(self) -> None:
        """Removes it from the server. From any thread."""
        self._publish([Edit.remove_resource(self.uri) if self._template is None else Edit.remove_template(self.uri)])

    def _register(self, *, again: bool = False) -> None:
        if self._template is None:
            self._publish([Edit.add_resource(Resource(self.uri, **self._details), self._reader.function)])
            return
        extra = {
            "completes": [*self._completers],
            "parameters": [(name, *_parts(param)) for name, param in self._reader.parameters.items()],
            "pages": self._pages if self._lister else None,
        }
        functions = (self._reader.function, self._completers, self._lister)
        removal = [Edit.remove_template(self.uri)] if again else []
        self._publish([*removal, Edit.add_template(self._template, self._details | extra, functions)])


def _template(uri: str, function: Callable[..., object], details: dict[str, Any]) -> UriTemplate:
    """The template. A variable is a list or a map if the function's annotation says so, and `vars` nothing else."""
    given: dict[str, Variable] = dict(details.pop("vars", {}))
    extra_query = details.pop("extra_query", "ignore")
    template = UriTemplate(uri, given, extra_query=extra_query)
    free = [name for name, variable in template.variables.items() if name not in given and variable.kind == "scalar"]
    own = {name: Variable(kind=kind) for name, kind in kinds(function, free).items()}
    return UriTemplate(uri, given | own, extra_query=extra_query) if own else template


def _parts(param: Param) -> tuple[str | None, list[str] | None, str | None, str | None]:
    return param.type, None if param.values is None else [*param.values], param.pattern, param.description
