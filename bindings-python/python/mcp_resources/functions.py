"""Prepares functions for the core: which arguments they take, from where, and on which thread they run."""

import collections.abc
import functools
import inspect
import re
import sys
import types
import typing
from collections.abc import AsyncIterable, AsyncIterator, Callable, Container, Iterator, Mapping
from typing import Annotated, Any, Literal, TypeAlias, cast

from ._core import Context, Function, Gather, UriTemplate, Variable, closest, suggested_template, unexpected
from .encoding import Encoder
from .errors import RegistrationError
from .parameters import Analysis, Param, analyse
from .shapes import is_of_sdk

Mode: TypeAlias = Literal["async", "inline", "pool"]
Slot: TypeAlias = tuple[str, str | None, str, Callable[[Any], object] | None, bool, tuple[object] | None]
"""The source of an argument: kind, keyword, name, conversion, whether that takes a whole list, and default.

The kinds: `value`; `list` and `map`, which are empty without a value; `rest`, which is then left out; `context`;
`gather`; `spread`, whose conversion returns all other arguments by keyword.
"""

How: TypeAlias = tuple[bool, bool, Encoder | None]

JSON = "application/json"
_JSON_ORIGINS = (collections.abc.Mapping, collections.abc.Sequence)
CONTEXT: Slot = ("context", None, "", None, False, None)
_GATHER: Slot = ("gather", None, "", None, False, None)
_ANYTHING = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def describe(function: Callable[..., object]) -> tuple[str | None, str | None]:
    """The function's name, and the first paragraph of its docstring: the defaults of `name` and `description`."""
    name = getattr(function, "__name__", None)
    doc = inspect.getdoc(function) if inspect.isroutine(function) else None
    paragraph = (doc or "").strip().split("\n\n")[0]
    return None if name == "<lambda>" else name, " ".join(paragraph.split()) or None


class Reader:
    """A function that reads a resource, and the parameters of the template from its annotations."""

    __slots__ = ("converts", "function", "parameters")

    def __init__(self, function: Function, parameters: dict[str, Param], slots: list[Slot]) -> None:
        self.function = function
        self.parameters = parameters
        self.converts = {slot[2]: (slot[3], slot[4]) for slot in slots if slot[3] is not None}


class Slots:
    """The arguments of one function, in order. They are passed by position up to the first that is skipped."""

    def __init__(self, function: Callable[..., object]) -> None:
        self.function = function
        self.list: list[Slot] = []
        self.takes_rest = False
        self.takes_any = False
        self.context: str | None = None
        self._gap = False

    def parameters(self) -> Iterator[inspect.Parameter]:
        """Those that are neither `*args`, `**kwargs` nor the context."""
        for parameter in self.every():
            if parameter.kind in _ANYTHING:
                self.takes_rest |= parameter.kind is inspect.Parameter.VAR_KEYWORD
                self.takes_any |= parameter.kind is inspect.Parameter.VAR_POSITIONAL
            elif is_context(parameter):
                self.context = parameter.name
                self.add(parameter, CONTEXT)
            else:
                yield parameter

    def every(self) -> Iterator[inspect.Parameter]:
        """All of them, also those that a call cannot fill."""
        for own in self._signature().parameters.values():
            yield _without_field(self.function, own)

    def _signature(self) -> inspect.Signature:
        try:
            return inspect.signature(self.function)
        except ValueError:
            raise RegistrationError(
                f"{full_name(self.function)}: Python does not know its parameters; register a function that calls it,"
                f" such as lambda: {getattr(self.function, '__name__', 'it')}()"
            ) from None

    def add(self, parameter: inspect.Parameter, slot: Slot) -> None:
        """Fills a parameter from a slot."""
        by_name = self._gap or parameter.kind is inspect.Parameter.KEYWORD_ONLY
        if by_name and parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            raise self.refusal(parameter, "follows one that is not passed, so it cannot be passed by position alone")
        self.list.append((slot[0], parameter.name, *slot[2:]) if by_name else slot)

    def pass_over(self, parameter: inspect.Parameter, why: str) -> None:
        """Leaves a parameter to its default. Without one it is refused, because of `why`."""
        if parameter.default is parameter.empty:
            raise self.refusal(parameter, why)
        self._gap = True

    def refusal(self, parameter: inspect.Parameter, why: str) -> RegistrationError:
        """The error that names the function and the parameter."""
        return RegistrationError(f"{full_name(self.function)}: parameter {parameter.name!r} {why}")


def reader(
    function: Callable[..., object], template: UriTemplate | str | None, given: Mapping[str, Param], how: How
) -> Reader:
    """Prepares the function behind a resource, or behind a template.

    `template` is the URI of a resource, or `None` where several may use the function. `how`: inline, whether JSON is to
    be typed, and the encoder of JSON.

    Raises:
        RegistrationError: its parameters and the template's variables disagree.
    """
    check(function)
    variables = template.variables if isinstance(template, UriTemplate) else {}
    of = f"of {template}" if variables else "of this resource, which has none"
    unknown = [name for name in given if name not in variables]
    if unknown:
        hint = unexpected("variable", unknown[0], [*variables]) if variables else f"{unknown[0]!r} is no variable {of}"
        raise RegistrationError(f"parameters: {hint}")
    slots = Slots(function)
    found: dict[str, Analysis] = {}
    for parameter in slots.parameters():
        variable = variables.get(parameter.name)
        if variable is None:
            slots.pass_over(parameter, f"is no variable {of}{_meant(parameter.name, template, variables)}")
        else:
            known = given.get(parameter.name)
            found[parameter.name] = _analyse(slots, parameter, variable, str(template), known)
            slots.add(parameter, _value(slots, parameter, found[parameter.name], variable))
    rest = [name for name in variables if name not in found]
    if rest and not slots.takes_rest:
        raise RegistrationError(
            f"{full_name(function)}: no parameter takes the variable {rest[0]!r} {of}; add the parameter, or **kwargs"
        )
    slots.list.extend(("rest", name, name, None, False, None) for name in rest)
    inline, types_json, encoder = how
    return Reader(
        build(function, slots.list, inline, (JSON if types_json else None, encoder)),
        dict(given) | {name: analysis.param for name, analysis in found.items()},
        slots.list,
    )


def helper(function: Callable[..., object], supplied: tuple[str, ...], inline: bool, shape: object = None) -> Function:
    """Prepares a completer, a `.list` callback or a custom method. It may take the first few of `supplied`, in order.

    `shape` is passed on to the function that converts its results.

    Raises:
        RegistrationError: it takes more arguments.
    """
    check(function)
    slots = Slots(function)
    names = list(supplied)
    for parameter in slots.parameters():
        if names and _is_own(parameter, names[0]):
            slots.pass_over(parameter, "")
            continue
        name = names.pop(0) if names else None
        if name is None:
            slots.pass_over(parameter, f"is one too many: it is called with ({', '.join(supplied)})")
        else:
            slots.add(parameter, ("value", None, name, None, False, None))
    return build(function, slots.list, inline, (None, shape), streams=False)


def kinds(function: Callable[..., object], names: Container[str]) -> dict[str, Literal["list", "map"]]:
    """The parameters of these names that are annotated as lists or maps."""
    slots = Slots(function)
    analyses = {
        parameter.name: _annotated(slots, parameter) for parameter in slots.parameters() if parameter.name in names
    }
    return {name: analysis.kind for name, analysis in analyses.items() if analysis.kind in ("list", "map")}


def takes(function: Callable[..., object], name: str) -> bool:
    """Whether the function takes the argument `name` in addition to the context."""
    return any(not _is_own(parameter, name) for parameter in Slots(function).parameters())


def _is_own(parameter: inspect.Parameter, name: str) -> bool:
    """Whether a parameter only carries a default, as in `lambda region=region: …`, and must not be passed."""
    return parameter.name != name and parameter.default is not parameter.empty and parameter.default is not None


def json_of(function: Callable[..., object]) -> str | None:
    """The media type for the return annotation: that of JSON or of bytes; `None` for other annotations."""
    try:
        given = inspect.signature(function).return_annotation
        given = evaluated(function, given) if isinstance(given, str) else given
    except (RegistrationError, ValueError, TypeError, SyntaxError):
        return None
    origin = typing.get_origin(given) or given
    if not isinstance(origin, type) or given is inspect.Signature.empty:
        return None
    if origin in (bytes, bytearray, memoryview):
        return "application/octet-stream"
    holds = typing.get_args(given)
    if any(isinstance(held, type) and (_is_ours(held) or is_of_sdk(held)) for held in holds):
        return None
    is_json = issubclass(origin, dict | list | tuple | set | frozenset | int | float) or origin in _JSON_ORIGINS
    is_model = hasattr(origin, "model_dump_json") and not is_of_sdk(origin)
    return JSON if is_json or is_model or _is_record(origin) else None


def _is_record(cls: type) -> bool:
    return hasattr(cls, "__dataclass_fields__") and not _is_ours(cls) and not is_of_sdk(cls)


def _is_ours(cls: type) -> bool:
    return cls.__module__.split(".")[0] == "mcp_resources"


def check(function: object) -> None:
    """Refuses what cannot be called."""
    if isinstance(function, staticmethod | classmethod | property):
        kind = type(function).__name__
        raise RegistrationError(f"a {kind} object cannot be called; put the decorator of the server below @{kind}")
    if not callable(function):
        raise TypeError(f"{function!r} is not a function")


def _meant(name: str, template: UriTemplate | str | None, variables: Mapping[str, Variable]) -> str:
    """Advice for a parameter that is not a variable of the URI."""
    meant = suggested_template(str(template))
    if meant is not None and name in UriTemplate(meant).variables:
        return f'; did you mean "{meant}"?'
    near = closest(name, [*variables])
    if near is not None:
        return f'; did you mean "{near}"?'
    if name in ("self", "cls"):
        return f': this is a method; register it of an object: server.resource("{template}")(thing.method)'
    return "; give it a default, or annotate it as Context if that is what it is"


def build(
    function: Callable[..., object],
    slots: list[Slot],
    inline: bool,
    results: tuple[str | None, object],
    *,
    streams: bool = True,
) -> Function:
    """The function as the core calls it.

    `streams`: whether a generator yields chunks of contents. Otherwise it yields the items of a list.
    """
    call = function
    mode: Mode = "inline" if inline else "pool"
    target = underlying(function)
    if inspect.isasyncgenfunction(target) and not streams:
        mode, call = "async", _AsyncItems(function)
    elif inspect.isasyncgenfunction(target):
        mode, call, slots = "async", _AsyncChunks(function), [_GATHER, *slots]
    elif inspect.isgeneratorfunction(target) and streams:
        call, slots = _Chunks(function), [_GATHER, *slots]
    elif inspect.iscoroutinefunction(target):
        mode = "async"
    return Function(full_name(function), call, mode, *results, slots)


def gathered(gather: Gather, chunks: Iterator[Any]) -> Gather:
    """Passes the chunks of a generator to the core, until the answer is no longer needed."""
    try:
        for chunk in chunks:
            if not gather.push(chunk):
                break
    finally:
        close = getattr(chunks, "close", None)
        if close is not None:
            close()
    return gather


async def _gathered_async(gather: Gather, chunks: AsyncIterable[Any]) -> Gather:
    try:
        async for chunk in chunks:
            if not gather.push(chunk):
                break
    finally:
        close = getattr(chunks, "aclose", None)
        if close is not None:
            await close()
    return gather


def is_generator(value: object) -> bool:
    """Whether this is a generator, of Python or of a library that compiles functions."""
    return hasattr(type(value), "__next__") and hasattr(type(value), "throw")


def is_unfinished(value: object, is_read: bool) -> bool:
    """Whether a function has returned something that must be awaited or run before it is a result.

    That is an awaitable, an asynchronous iterator or, from a read, a generator.
    """
    cls = type(value)
    return hasattr(cls, "__await__") or hasattr(cls, "__aiter__") or (is_read and is_generator(value))


async def finished(value: Any, gather: Gather | None) -> object:
    """The result behind what a function has returned, called by the core on the event loop.

    A function behind a decorator or a lambda returns the coroutine or generator of another one. `gather` takes the
    chunks of a read; without it the items of an asynchronous iterator are a list.
    """
    while hasattr(type(value), "__await__"):
        value = await value
    if hasattr(type(value), "__aiter__"):
        return [item async for item in value] if gather is None else await _gathered_async(gather, value)
    return gathered(gather, value) if gather is not None and is_generator(value) else value


class _Chunks:
    def __init__(self, function: Callable[..., object]) -> None:
        self.function = cast("Callable[..., Iterator[Any]]", function)

    def __call__(self, gather: Gather, *args: object, **kwargs: object) -> Gather:
        return gathered(gather, self.function(*args, **kwargs))


class _AsyncChunks:
    def __init__(self, function: Callable[..., object]) -> None:
        self.function = cast("Callable[..., AsyncIterator[Any]]", function)

    async def __call__(self, gather: Gather, *args: object, **kwargs: object) -> Gather:
        return await _gathered_async(gather, self.function(*args, **kwargs))


class _AsyncItems:
    def __init__(self, function: Callable[..., object]) -> None:
        self.function = cast("Callable[..., AsyncIterator[Any]]", function)

    async def __call__(self, *args: object, **kwargs: object) -> list[Any]:
        return [item async for item in self.function(*args, **kwargs)]


def underlying(function: Callable[..., object]) -> Callable[..., object]:
    """The function inside partials, and behind an object's `__call__`."""
    while isinstance(function, functools.partial):
        function = function.func
    if not inspect.isroutine(function) and not isinstance(function, type):
        return cast("Callable[..., object]", type(function).__call__)
    return function


def full_name(function: Callable[..., object]) -> str:
    """The name of a function with its module, for messages."""
    target = function if hasattr(function, "__qualname__") else type(function)
    return f"{getattr(target, '__module__', None) or '?'}.{target.__qualname__}"


_STATE = re.compile(r"\bContext\[.*\]")
"""The type of the lifespan's value, in an annotation that is a text."""


def is_context(parameter: inspect.Parameter) -> bool:
    """Whether a parameter gets the request."""
    annotation = parameter.annotation
    if annotation is parameter.empty:
        return parameter.name == "ctx"
    if isinstance(annotation, str):  # the class may be imported for type checkers alone
        plain = annotation.strip("\"' ")
        optional = re.fullmatch(r"(?:typing\.)?Optional\[(.*)\]", plain)
        plain = _STATE.sub("Context", optional[1] if optional else plain)
        names = {part.strip("\"' ") for part in plain.split("|")} - {"None"}
        return names in ({"Context"}, {"mcp_resources.Context"})
    if isinstance(annotation, typing.ForwardRef):
        return is_context(parameter.replace(annotation=annotation.__forward_arg__))
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        rest = [arg for arg in typing.get_args(annotation) if arg is not type(None)]
        return len(rest) == 1 and is_context(parameter.replace(annotation=rest[0]))
    return annotation is Context or typing.get_origin(annotation) is Context


def _analyse(
    slots: Slots, parameter: inspect.Parameter, variable: Variable, template: str, given: Param | None
) -> Analysis:
    analysis = _annotated(slots, parameter, given)
    if analysis.kind == "scalar" and variable.kind in ("list", "map"):
        exploded, reserved = f"{{{parameter.name}*}}", f"{{+{parameter.name}}}"
        hint = f"; did you mean {reserved}, which takes slashes?" if exploded in template else ""
        why = f"must be annotated as a list, tuple, set or dict: the variable is a {variable.kind}{hint}"
        raise slots.refusal(parameter, why)
    return analysis


def _annotated(slots: Slots, parameter: inspect.Parameter, given: Param | None = None) -> Analysis:
    if parameter.annotation is parameter.empty:
        return Analysis(given)
    try:
        return analyse(annotation_of(slots.function, parameter), given)
    except RegistrationError as error:
        raise slots.refusal(parameter, f"has an unusable annotation: {error}") from error


def _without_field(function: Callable[..., object], parameter: inspect.Parameter) -> inspect.Parameter:
    """A parameter whose default is a `Field` of pydantic has the field's default, and the field in its annotation."""
    field: Any = parameter.default
    if type(field).__name__ != "FieldInfo" or not hasattr(field, "is_required"):
        return parameter
    known = parameter.annotation is not parameter.empty
    own: Any = annotation_of(function, parameter) if known else Any
    annotation = Annotated[(own, field)]
    default = parameter.empty if field.is_required() else field.get_default(call_default_factory=True)
    return parameter.replace(annotation=annotation, default=default)


def annotation_of(function: Callable[..., object], parameter: inspect.Parameter) -> object:
    """The annotation. One that is a text is evaluated in the scope of the function."""
    annotation = parameter.annotation
    return evaluated(function, annotation) if isinstance(annotation, str) else annotation


def evaluated(function: Callable[..., object], annotation: str) -> object:
    """The annotation behind its text.

    Raises:
        RegistrationError: a name in it is not known.
    """
    target, names = _scope(function)
    code: Any = getattr(target, "__code__", None)
    cells = zip(code.co_freevars if code else (), getattr(target, "__closure__", None) or (), strict=False)
    scope = names | {name: value for name, cell in cells for value in _contents(cell)}
    try:
        return eval(annotation, getattr(target, "__globals__", {}), scope)
    except NameError as error:
        fix = "import it also when the program runs"
        if "<locals>" in getattr(target, "__qualname__", ""):
            fix = f"{fix}, or move it out of the function to the module"
        raise RegistrationError(f"{annotation!r} cannot be evaluated: {error}; {fix}") from error


def _scope(function: Callable[..., object]) -> tuple[Any, dict[str, Any]]:
    """The function whose annotations these are, and further names of their scope.

    A class is called through its `__init__`, whose annotations may be made from those of its fields, as in a dataclass.
    """
    target: Any = inspect.unwrap(underlying(function))
    if not isinstance(target, type):
        return target, {}
    cls: Any = target
    module = sys.modules.get(cls.__module__)
    return inspect.unwrap(cls.__init__), {} if module is None else dict(vars(module))


def _contents(cell: Any) -> list[object]:
    """The value of a variable of an enclosing function, which has none before its definition."""
    try:
        return [cell.cell_contents]
    except ValueError:
        return []


def _value(slots: Slots, parameter: inspect.Parameter, analysis: Analysis, variable: Variable) -> Slot:
    default: tuple[object] | None = None
    if parameter.default is not parameter.empty:
        default = (parameter.default,)
    elif analysis.optional:
        default = (None,)
    elif analysis.kind in ("list", "map"):
        return (analysis.kind, None, parameter.name, analysis.convert, analysis.whole, None)
    elif not variable.required:
        raise slots.refusal(parameter, "needs a default: the URI may leave the variable out")
    return ("value", None, parameter.name, analysis.convert, analysis.whole, default)
