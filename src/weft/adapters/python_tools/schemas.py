"""The schema of a function for models, and the validation of its arguments."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from inspect import Parameter
from typing import Annotated, Any, Final, NotRequired, TypeAlias, cast, get_args, get_type_hints

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, to_jsonable_python
from typing_extensions import TypedDict

from weft.errors import RetryModel
from weft.findings import Json
from weft.ports.model import ToolSchema
from weft.runtime.tools.context_variables import Context
from weft.runtime.variables.json_values import own_copy

#: A type hint of an author: a class, an alias, a special form.
Hint: TypeAlias = Any
_CONTEXT: Final = "context_variables"
_SHORT_CONTEXT: Final = "context"

#: The most errors that a model gets: correcting the first often corrects the others.
_MOST_FAULTS: Final = 10

#: Keys of a schema that contain values, not schemas.
_PLAIN_VALUES: Final = frozenset({"default", "const", "enum", "examples", "required"})
_SECTION: Final = re.compile(r"(?:Args|Arguments|Parameters):\s*\Z")
_ENTRY: Final = re.compile(r"\*{0,2}(?P<name>\w+)\s*(?:\([^)]*\))?:\s*(?P<text>.*)\Z")


@dataclass(frozen=True, slots=True)
class Signature:
    """The signature of a function for models, and for calls."""

    schema: ToolSchema
    #: The parameters that the run fills, not the model.
    injected: tuple[str, ...]
    #: Whether the function takes arguments it does not name.
    is_open: bool
    _reader: TypeAdapter[dict[str, Any]]

    def named(self, fields: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return the fields of a reply that the function names, or all if it takes any."""
        own = self.schema.parameters["properties"]
        return fields if self.is_open else {name: v for name, v in fields.items() if name in own}

    def read(self, arguments: Mapping[str, Json]) -> dict[str, Any]:
        """Return validated arguments; raises RetryModel with the errors."""
        try:
            # A copy: the function may change its arguments, and the journal must not change.
            return self._reader.validate_python(
                {name: own_copy(v) for name, v in arguments.items()}
            )
        except ValidationError as error:
            raise RetryModel(self._faults(error)) from None

    def _faults(self, error: ValidationError) -> str:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        known = ", ".join(self.schema.parameters["properties"]) or "no arguments"
        errors = [_sentence(fault, known) for fault in found[:_MOST_FAULTS]]
        more = len(found) - len(errors)
        rest = [f"There {'is 1 more fault' if more == 1 else f'are {more} more faults'}."]
        name = self.schema.name
        return " ".join([f"The arguments of {name} are invalid.", *errors, *(rest if more else ())])


def _sentence(fault: ErrorDetails, known: str) -> str:
    where = ".".join(str(part) for part in fault["loc"])
    match fault["type"]:
        case "missing":
            return f"{where} is missing."
        case "extra_forbidden":
            return f"{where} is unknown; the tool takes {known}."
        case _:
            message = fault["msg"].removeprefix("Input ")
            return f"{where} {message}." if message != fault["msg"] else f"{where}: {message}."


@dataclass
class _Draft:
    """The parameters of a function while they are read."""

    fields: dict[str, Hint] = field(default_factory=dict[str, Hint])
    injected: list[str] = field(default_factory=list[str])
    faults: list[str] = field(default_factory=list[str])
    #: Whether the function takes arguments it does not name.
    open: bool = False


def read_signature(name: str, function: Callable[..., Any]) -> Signature | list[str]:
    """Return the signature of a function, or all reasons why models cannot call it."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError) as error:
        return [f"its parameters cannot be read: {error}"]
    draft = _Draft()
    texts = parameter_texts(function)
    for parameter in parameters.values():
        _add(draft, function, parameter, texts.get(parameter.name))
    return draft.faults or _signature(name, function, draft)


def _add(
    draft: _Draft, function: Callable[..., Any], parameter: Parameter, text: str | None
) -> None:
    if parameter.kind is Parameter.VAR_POSITIONAL:
        return
    if parameter.kind is Parameter.VAR_KEYWORD:
        draft.open = True
        return
    if parameter.kind is Parameter.POSITIONAL_ONLY:
        draft.faults.append(f"{parameter.name} cannot be given by name: remove the / after it")
        return
    try:
        hint = _hint(function, parameter)
        entry = _field(parameter, hint, text)
    except Exception as error:  # noqa: BLE001 - a hint in quotes is code of the author, run here
        draft.faults.append(f"the type hint of {parameter.name} cannot be read: {error}")
        return
    if hint is Context or Context in get_args(hint):
        draft.injected.append(parameter.name)
    else:
        draft.fields[parameter.name] = entry


def _hint(function: Callable[..., Any], parameter: Parameter) -> Hint:
    """Return the type of a parameter, or Context for one that the run fills."""
    bare = parameter.annotation is Parameter.empty
    if parameter.name == _CONTEXT or (parameter.name == _SHORT_CONTEXT and bare):
        return Context
    if bare:
        return Any

    # One at a time: an unreadable hint matters only if it is needed.
    holder = type("Holder", (), {"__annotations__": {parameter.name: parameter.annotation}})
    names = getattr(inspect.unwrap(function), "__globals__", {})
    return get_type_hints(holder, globalns=names, include_extras=True)[parameter.name]


def _field(parameter: Parameter, hint: Hint, text: str | None) -> Hint:
    """Return a parameter as a field with description and default."""
    notes = getattr(hint, "__metadata__", ())
    described = any(isinstance(note, FieldInfo) and note.description for note in notes)
    description = next((note for note in notes if isinstance(note, str)), text)
    extra: dict[str, Any] = {} if described or not description else {"description": description}
    if parameter.default is Parameter.empty:
        return Annotated[hint, Field(json_schema_extra=extra)]
    if parameter.default is None:
        hint = hint | None
    extra |= _default(parameter.default)
    return NotRequired[Annotated[hint, Field(json_schema_extra=extra)]]


def _default(value: object) -> dict[str, Any]:
    """Return the default for the schema; one that JSON cannot represent is left out."""
    try:
        return {"default": to_jsonable_python(value)}
    except ValueError:
        return {}


def _signature(name: str, function: Callable[..., Any], draft: _Draft) -> Signature | list[str]:
    # Types may define their own validation, so code of the author runs here.
    unfit = list(_unfit(function, draft))
    if unfit:
        return unfit
    reader = _reader(draft.fields, is_open=draft.open)
    schema = ToolSchema(name, summary(function), _untitled(reader.json_schema()))
    return Signature(schema, tuple(draft.injected), draft.open, reader)


def _unfit(function: Callable[..., Any], draft: _Draft) -> Iterator[str]:
    for name, entry in draft.fields.items():
        try:
            _reader({name: entry}, is_open=False).json_schema()
        except Exception as error:  # noqa: BLE001 - types of the author may fail in any way
            annotation = inspect.signature(function).parameters[name].annotation
            shown = inspect.formatannotation(annotation, getattr(function, "__module__", None))
            reason = str(error).partition("\n")[0]
            yield f"{name} has the type {shown}, which a model cannot fill in ({reason})"


def _reader(fields: dict[str, Hint], *, is_open: bool) -> TypeAdapter[dict[str, Any]]:
    arguments = cast("Any", TypedDict)("Arguments", fields)
    arguments.__pydantic_config__ = ConfigDict(extra="allow" if is_open else "forbid")
    return TypeAdapter(arguments)


def _untitled(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without the titles pydantic generates, which only cost tokens."""
    return {key: _inside(key, value) for key, value in schema.items() if key != "title"}


def _inside(key: str, value: Any) -> Any:  # noqa: ANN401 - a schema is whatever JSON it is
    match value:
        case dict() if key in ("properties", "$defs"):
            # The keys are names of properties here, and one may be `title`.
            return {name: _untitled(inner) for name, inner in cast("dict[str, Any]", value).items()}
        case dict() if key not in _PLAIN_VALUES:
            return _untitled(cast("dict[str, Any]", value))
        case list() if key not in _PLAIN_VALUES:
            return [_inside("", item) for item in cast("list[Any]", value)]
        case _:
            return value


def summary(function: Callable[..., Any]) -> str:
    return (inspect.getdoc(function) or "").partition("\n")[0].strip()


def parameter_texts(function: Callable[..., Any]) -> dict[str, str]:
    """Return the descriptions of parameters below "Args:", each as one line."""
    texts: dict[str, list[str]] = {}
    entry: list[str] = []
    margin = 0
    for indent, line in _section((inspect.getdoc(function) or "").splitlines()):
        margin = margin or indent
        found = _ENTRY.match(line) if indent <= margin else None
        if found is None:
            entry.append(line)
        else:
            entry = texts.setdefault(found["name"], [])
            entry.append(found["text"])
    return {name: " ".join(filter(None, lines)) for name, lines in texts.items()}


def _section(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines of the "Args:" section with their indent."""
    inside = False
    for line in lines:
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        if inside and text and not indent:
            return
        if inside and text:
            yield indent, text
        inside = inside or _SECTION.match(line) is not None
