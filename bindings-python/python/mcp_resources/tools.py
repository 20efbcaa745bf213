"""Prepares the functions of tools and prompts: the schemas of their arguments and results, from their annotations.

Imported when the first tool or prompt is registered. Tools need pydantic; prompts only for the types that it knows.
"""

import functools
import inspect
import math
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Annotated, Any, Generic, Literal, NotRequired, ParamSpec, TypeVar

from ._core import Edit, Function, unexpected
from .blocks import Audio, Embedded, Image, PromptMessage, PromptResult, ResourceLink, Shape, Text, ToolResult
from .checks import shown
from .encoding import Encoder, is_bytes
from .errors import McpError, RegistrationError
from .functions import CONTEXT, Slot, Slots, annotation_of, build, check, evaluated, full_name, helper, is_context
from .options import PromptArgument, PromptDetails, ToolDetails
from .parameters import Analysis, Param, analyse
from .results import Completion, Contents, InputRequired, MethodResult, ReadResult
from .sdk_results import is_of_sdk

__all__ = ["PromptHandler"]

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

_OUR_RESULTS = (
    *(Audio, Embedded, Image, PromptMessage, PromptResult, ResourceLink, Text, ToolResult),
    *(Completion, Contents, InputRequired, MethodResult, ReadResult),
)
_PYDANTIC = "a tool needs pydantic for the schema of its arguments: pip install 'mcp-resources[tools]'"
_MOST_FAULTS = 8
"""The most faults of arguments that are reported at once."""
_MOST_EXAMINED = 1_000
"""The most faults whose places are asked for: pydantic makes an object for each."""
_NAMELESS = {
    inspect.Parameter.POSITIONAL_ONLY: "can be passed by position alone",
    inspect.Parameter.VAR_POSITIONAL: "is *{}",
    inspect.Parameter.VAR_KEYWORD: "is **{}",
}
"""The kinds of parameters that cannot be arguments, for messages."""


class ArgumentsError(McpError):
    """Arguments that do not fit. The members are those of the core's error."""

    kind = "invalid_parameter"

    def __init__(self, parameter: str, reason: str, value: str = "") -> None:
        super().__init__(f"{parameter}: {reason}")
        self.parameter = parameter
        self.reason = reason
        self.value = value


def tool(
    function: Callable[..., object],
    name: str | None,
    schemas: tuple[Mapping[str, object] | None, Mapping[str, object] | None],
    details: ToolDetails,
    encoder: Encoder | None,
) -> list[Edit]:
    """The edits that register a tool. `schemas`: those of arguments and result, if they are given.

    Raises:
        RegistrationError: a parameter cannot be an argument, or an annotation has no JSON schema.
    """
    options, inline, replaces = _options(function, name, "tool", {**details})
    input_schema, output_schema = schemas
    shape: Shape | None = None if encoder is None else Shape(None, encoder)
    if input_schema is not None:
        options["input_schema"] = _schema_text("input_schema", input_schema)
        called = _by_hand(function, inline, shape)
    else:
        arguments = _Arguments(function, options["name"])
        options["input_schema"] = arguments.schema
        if output_schema is None:
            returned = _Returned.of(function)
            if returned is not None:
                options["output_schema"] = returned.schema
                shape = Shape(returned.dump, encoder)
        called = build(function, [*arguments.context, arguments.slot], inline, (None, shape), streams=False)
    if output_schema is not None:
        options["output_schema"] = _schema_text("output_schema", output_schema)
    removal = [Edit.remove_tool(options["name"])] if replaces else []
    return [*removal, Edit.add_tool(options, called)]


class PromptHandler(Generic[P, R]):
    """A registered prompt. `ResourceServer.prompt` makes it; calling it calls the function."""

    def __init__(
        self,
        publish: Callable[[list[Edit]], None],
        function: Callable[P, R],
        name: str | None,
        arguments: Iterable[PromptArgument] | None,
        details: PromptDetails,
    ) -> None:
        if isinstance(function, PromptHandler):  # decorated twice: one function behind two names
            function = function.__wrapped__
        self.__wrapped__: Callable[P, R] = function
        self.__doc__ = function.__doc__
        self._publish = publish
        options, inline, replaces = _options(function, name, "prompt", {**details})
        self.name: str = options["name"]
        self._options = options
        self._completers: dict[str, Function] = {}
        if arguments is None:
            known = _Texts(function)
            options["arguments"] = known.described
            self._function = build(function, [*known.context, known.slot], inline, (None, None), streams=False)
        else:
            options["arguments"] = [dict(argument) for argument in arguments]
            self._function = _by_hand(function, inline, None)
        self._register(again=replaces)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls the function itself, without the server."""
        return self.__wrapped__(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<PromptHandler {self.name!r}>"

    def complete(self, argument: str, *, inline: bool = False) -> Callable[[F], F]:
        """Registers the decorated function as the completer of an argument.

        It is called with the text that the user has typed and, if it takes a second argument, with a `dict` of the
        arguments that are chosen already. It returns a list of texts, best first, or a `Completion`.

        Args:
            argument: the name of the argument.
            inline: whether a `def` runs on the event loop. Default `False`: on a worker thread.

        Raises:
            RegistrationError: the prompt has no such argument.
        """
        if not isinstance(argument, str):
            raise TypeError('complete needs the argument: write .complete("…") above the function')
        names = [one["name"] for one in self._options["arguments"]]
        if argument not in names:
            raise RegistrationError(f"the prompt {self.name}: {unexpected('argument', argument, names)}")

        def register(function: F) -> F:
            self._completers[argument] = helper(function, ("value", "arguments"), inline)
            self._register(again=True)
            return function

        return register

    def remove(self) -> None:
        """Removes the prompt from the server. Can be called from any thread."""
        self._publish([Edit.remove_prompt(self.name)])

    def _register(self, *, again: bool) -> None:
        options = self._options | {"completes": [*self._completers]}
        removal = [Edit.remove_prompt(self.name)] if again else []
        self._publish([*removal, Edit.add_prompt(options, self._function, dict(self._completers))])


def _options(
    function: Callable[..., object], name: str | None, kind: str, details: dict[str, Any]
) -> tuple[dict[str, Any], bool, bool]:
    """The options for the core, and the switches `inline` and `replace`."""
    check(function)
    if name is not None and not isinstance(name, str):
        raise TypeError(f'{kind} takes a name, got {shown(name)}; write @server.{kind}("…")')
    own = getattr(function, "__name__", None)
    if name is None and (own is None or own == "<lambda>"):
        raise TypeError(f'{full_name(function)} has no name of its own; write server.{kind}("…")')
    switches = [details.pop(switch, False) for switch in ("inline", "replace")]
    for switch, given in zip(("inline", "replace"), switches, strict=True):
        if not isinstance(given, bool):
            raise TypeError(f"{switch} is {given!r}, expected True or False")
    doc = inspect.getdoc(function) if inspect.isroutine(function) else None
    options = {"name": own if name is None else name, "description": doc or None, **details}
    return options, switches[0], switches[1]


def _schema_text(name: str, schema: object) -> str:
    from .results import object_json

    return object_json(schema, name)


def _by_hand(function: Callable[..., object], inline: bool, shape: object) -> Function:
    """A function that gets all arguments as a `dict`, as they were sent."""
    import json

    prepared = Slots(function)
    slots: list[Slot] = []
    for parameter in prepared.parameters():
        if any(slot[0] == "value" for slot in slots):
            prepared.pass_over(parameter, "is one too many: it is called with (arguments)")
        else:
            slots.append(("value", None, "arguments", json.loads, True, None))
            prepared.list.append(slots[-1])
    return build(function, prepared.list, inline, (None, shape), streams=False)


class _Parameters:
    """The parameters of a function that are arguments, and the slot of its context."""

    def __init__(self, function: Callable[..., object], kind: str) -> None:
        self.slots = Slots(function)
        self.context: list[Slot] = []
        self.parameters: dict[str, inspect.Parameter] = {}
        for parameter in self.slots.every():
            if parameter.kind in _NAMELESS:
                what = _NAMELESS[parameter.kind].format(parameter.name)
                raise self.slots.refusal(parameter, f"{what}; the arguments of a {kind} have names of their own")
            if is_context(parameter):
                self.context.append((CONTEXT[0], parameter.name, *CONTEXT[2:]))
            elif parameter.name in ("self", "cls") and parameter.annotation is parameter.empty:
                why = f"makes this a method; register it of an object: server.{kind}()(thing.method)"
                raise self.slots.refusal(parameter, why)
            else:
                self.parameters[parameter.name] = parameter


class _Arguments:
    """The arguments of a tool: their JSON schema, and the conversion of JSON text."""

    def __init__(self, function: Callable[..., object], name: str) -> None:
        self._name = name
        known = _Parameters(function, "tool")
        self.context = known.context
        self._slots = known.slots
        fields = {own: self._field(parameter) for own, parameter in known.parameters.items()}
        adapter = self._adapter(fields)
        self.schema = _text(adapter, "validation")
        self._validate = adapter.validate_json
        self._refused = _pydantic().ValidationError
        self.slot: Slot = ("spread", None, "arguments", self.parse, True, None)

    def parse(self, text: str) -> dict[str, Any]:
        """The arguments of a call, by parameter.

        Raises:
            ArgumentsError: they do not fit their types.
        """
        try:
            return self._validate(text)  # type: ignore[no-any-return]
        except self._refused as error:
            refused = error
        count = refused.error_count()
        if count > _MOST_EXAMINED:
            raise ArgumentsError("arguments", f"{count} values do not fit their types")
        errors = refused.errors(include_url=False, include_context=False, include_input=False)
        faults = [_fault(one) for one in errors[:_MOST_FAULTS]]
        first, *others = faults
        reason = "; ".join([first[1], *(f"{place}: {why}" for place, why in others)])
        more = count - len(faults)
        raise ArgumentsError(first[0], f"{reason}; and {more} more" if more > 0 else reason)

    def _field(self, parameter: inspect.Parameter) -> tuple[Any, bool]:
        """The type of an argument as pydantic takes it, and whether it must be given."""
        try:
            given = Any if parameter.annotation is parameter.empty else annotation_of(self._slots.function, parameter)
        except RegistrationError as error:
            raise self._slots.refusal(parameter, f"has an unusable annotation: {error}") from error
        own, metadata = _described(self._slots, parameter, given)
        if parameter.default is None:
            own = typing.Optional[own]  # noqa: UP045
        is_given = parameter.default is not parameter.empty
        default = _default(parameter.default) if is_given else {}
        field = next((item for item in metadata if hasattr(item, "is_required")), None)
        if default and (field is None or field.is_required()):
            metadata.append(_pydantic().Field(json_schema_extra=default))
        annotation = Annotated[(own, *metadata)] if metadata else own
        return annotation, not is_given and (field is None or field.is_required())

    def _adapter(self, fields: dict[str, tuple[Any, bool]]) -> Any:
        pydantic = _pydantic()
        members = {
            name: annotation if is_required else NotRequired[annotation]
            for name, (annotation, is_required) in fields.items()
        }
        made = _typed_dict(self._name, members)
        made.__pydantic_config__ = pydantic.ConfigDict(extra="forbid")
        try:
            adapter = pydantic.TypeAdapter(made)
            _text(adapter, "validation")
        except pydantic.UserError as error:
            raise self._refusal(fields) or error from None
        return adapter

    def _refusal(self, fields: dict[str, tuple[Any, bool]]) -> Exception | None:
        """The error that names the first parameter whose type has no JSON schema."""
        for name, (annotation, _) in fields.items():
            fault = _fault_of(annotation, "validation")
            if fault is not None:
                parameter = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)
                return self._slots.refusal(parameter, f"has an annotation without a JSON form: {fault}")
        return None


class _Returned:
    """The type of a tool's structured result."""

    def __init__(self, adapter: Any) -> None:
        self._adapter = adapter
        self.schema = _text(adapter, "serialization")

    @classmethod
    def of(cls, function: Callable[..., object]) -> "_Returned | None":
        """The type by the return annotation; `None` if that promises no value.

        Raises:
            RegistrationError: it has no JSON schema.
        """
        try:
            given = inspect.signature(function).return_annotation
        except ValueError:
            return None
        given = evaluated(function, given) if isinstance(given, str) else given
        if given is inspect.Signature.empty or not _is_structured(given):
            return None
        fault = _fault_of(given, "serialization")
        if fault is not None:
            raise RegistrationError(
                f"{full_name(function)}: its return annotation has no JSON form: {fault}; annotate it with a type that"
                " has one, or with object"
            )
        return cls(_pydantic().TypeAdapter(given))

    def dump(self, value: object) -> object:
        """Plain JSON values of a result. A result of a similar type is converted first, such as a `dict` for a model.

        Raises:
            TypeError: a plain container in it has bytes.
            ValueError: such a container has a number that is not finite, or itself; or it is not of the annotated type.
        """
        _refuse_values(value, "the result")
        how: dict[str, Any] = {"mode": "json", "by_alias": True}
        try:
            return self._adapter.dump_python(value, warnings="error", **how)
        except _pydantic().SerializationError:
            return self._adapter.dump_python(self._adapter.validate_python(value), warnings=False, **how)


class _Texts:
    """The arguments of a prompt, which are texts, and their conversion."""

    def __init__(self, function: Callable[..., object]) -> None:
        known = _Parameters(function, "prompt")
        self.context = known.context
        self._convert: dict[str, Callable[[Any], object] | None] = {}
        self._absent: dict[str, object] = {}
        self.described: list[dict[str, object]] = []
        for name, parameter in known.parameters.items():
            found = self._analysed(known.slots, parameter)
            has_default = parameter.default is not parameter.empty
            if found.optional and not has_default:
                self._absent[name] = None
            entry: dict[str, object] = {"name": name, "required": not (has_default or found.optional)}
            entry |= {"description": found.param.description} if found.param.description is not None else {}
            entry |= {"values": [*found.param.values]} if found.param.values is not None else {}
            self.described.append(entry)
            self._convert[name] = found.convert
        self.slot: Slot = ("spread", None, "arguments", self.parse, True, None)

    def parse(self, text: str) -> dict[str, object]:
        """The arguments of a request, by parameter.

        Raises:
            ArgumentsError: there is no such argument, or a text is not one of its type.
        """
        import json

        given: dict[str, str] = json.loads(text)
        found = dict(self._absent)
        for name, value in given.items():
            if name not in self._convert:
                raise ArgumentsError(name, "there is no such argument", value)
            convert = self._convert[name]
            try:
                found[name] = value if convert is None else convert(value)
            except KeyError:
                raise ArgumentsError(name, "it is none of its values", value) from None
            except ValueError as error:
                raise ArgumentsError(name, str(error), value) from None
        return found

    def _analysed(self, slots: Slots, parameter: inspect.Parameter) -> Analysis:
        if parameter.annotation is parameter.empty:
            return Analysis()
        try:
            found = analyse(annotation_of(slots.function, parameter))
        except RegistrationError as error:
            raise slots.refusal(parameter, f"has an unusable annotation: {error}") from error
        if found.kind in ("list", "map"):
            raise slots.refusal(parameter, f"is annotated as a {found.kind}; the arguments of a prompt are texts")
        return found


@functools.cache
def _pydantic() -> Any:
    """The names of pydantic that are used here.

    Raises:
        RegistrationError: it is not installed.
    """
    try:
        from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
        from pydantic.errors import PydanticUserError
        from pydantic.json_schema import GenerateJsonSchema
        from pydantic_core import PydanticSerializationError, to_jsonable_python
    except ImportError as error:
        raise RegistrationError(_PYDANTIC) from error

    class PlainSchema(GenerateJsonSchema):
        """Without the titles that repeat the names of members."""

        ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

        def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
            """Never."""
            return False

    return types.SimpleNamespace(
        ConfigDict=ConfigDict,
        Field=Field,
        PlainSchema=PlainSchema,
        SerializationError=PydanticSerializationError,
        TypeAdapter=TypeAdapter,
        UserError=PydanticUserError,
        ValidationError=ValidationError,
        to_jsonable_python=to_jsonable_python,
    )


def _typed_dict(name: str, members: dict[str, Any]) -> Any:
    # Before Python 3.12 pydantic takes only that of typing_extensions, which it brings.
    import typing_extensions

    make: Any = typing_extensions.TypedDict
    return make(name, members)


def _text(adapter: Any, mode: Literal["validation", "serialization"]) -> str:
    """The JSON schema of a type as text."""
    import json

    schema = adapter.json_schema(mode=mode, schema_generator=_pydantic().PlainSchema)
    schema.pop("title", None)
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def _fault_of(annotation: Any, mode: Literal["validation", "serialization"]) -> str | None:
    """The reason why a type has no JSON schema, in one line."""
    pydantic = _pydantic()
    try:
        _text(pydantic.TypeAdapter(annotation), mode)
    except pydantic.UserError as error:
        return str(error).split("\n")[0].split(". Set `arbitrary")[0]
    return None


def _described(slots: Slots, parameter: inspect.Parameter, annotation: Any) -> tuple[Any, list[Any]]:
    """The type without `Annotated`, and its metadata; a text, a `Doc` and a `Param` become the description."""
    if typing.get_origin(annotation) is not Annotated:
        return annotation, []
    own, *metadata = typing.get_args(annotation)
    kept: list[Any] = []
    for item in metadata:
        text = item if isinstance(item, str) else getattr(item, "documentation", None)
        if isinstance(item, Param):
            if item.type is not None or item.values is not None or item.pattern is not None:
                why = "has a Param with rules, which are for texts of a URI: use Literal[…], an Enum, or Field(…)"
                raise slots.refusal(parameter, why)
            text = item.description
        if isinstance(text, str):
            kept.append(_pydantic().Field(description=text))
        elif not isinstance(item, Param):
            kept.append(item)
    return own, kept


def _default(value: object) -> dict[str, object]:
    """The default for the schema, unless it has no JSON form."""
    try:
        return {"default": _pydantic().to_jsonable_python(value)}
    except (_pydantic().SerializationError, ValueError):
        return {}


def _fault(error: Mapping[str, Any]) -> tuple[str, str]:
    """The place of a fault in the arguments, and the reason."""
    place = ".".join(map(str, error["loc"])) or "arguments"
    known = {"missing": "it is required", "extra_forbidden": "there is no such argument"}
    return place, known.get(error["type"], error["msg"].removeprefix("Value error, "))


def _is_structured(annotation: Any) -> bool:
    """Whether a return annotation promises a JSON value, and not a text or a block."""
    if typing.get_origin(annotation) is Annotated:
        return _is_structured(typing.get_args(annotation)[0])
    plain = (None, type(None), str, bytes, typing.NoReturn, typing.Never)
    if _is_any(annotation) or any(annotation is one for one in plain):
        return False
    items = [item for item in typing.get_args(annotation) if item is not ...]
    is_list = (typing.get_origin(annotation) or annotation) in _LISTS
    return not (is_list and all(map(_is_any, items))) and not _mentions_ours(annotation)


_LISTS = (list, tuple, Sequence, Iterable, Collection)
"""Lists of anything may be lists of blocks, which have no JSON form."""


def _is_any(annotation: object) -> bool:
    return annotation is Any or annotation is object


def _mentions_ours(annotation: Any) -> bool:
    if isinstance(annotation, type) and (issubclass(annotation, _OUR_RESULTS) or is_of_sdk(annotation)):
        return True
    return any(_mentions_ours(inner) for inner in typing.get_args(annotation))


_HARMLESS = frozenset((str, int, bool, type(None)))


def _refuse_values(value: object, path: str, depth: int = 100) -> None:
    """Refuses bytes and NaN in plain containers, which pydantic would turn into texts and `None`."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{path} is {value}, which JSON does not have; use None, or a text")
    if isinstance(value, bytes | bytearray | memoryview) and is_bytes(value):
        raise TypeError(
            f"{path} is {shown(value)}, which has no JSON form; return it alone as Image(…), Audio(…) or"
            " Embedded(…), or encode it as base64 text"
        )
    if depth == 0 or not isinstance(value, dict | list | tuple):
        return
    for at, item in value.items() if isinstance(value, dict) else enumerate(value):
        if type(item) not in _HARMLESS:
            place = f"{path}.{at}" if isinstance(at, str) and at.isidentifier() else f"{path}[{at!r}]"
            _refuse_values(item, place, depth - 1)
