"""References from a spec to objects in code, and the table of those that cannot be imported."""

import functools
import hashlib
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from types import (
    BuiltinFunctionType,
    CodeType,
    EllipsisType,
    FunctionType,
    MethodType,
    ModuleType,
    NoneType,
)
from typing import Any, Final, NamedTuple, cast
from weakref import finalize

from pydantic import BaseModel, SecretBytes, SecretStr
from pydantic_core import to_jsonable_python

from weft.check.secrets import names_a_key, secret_in
from weft.findings import Json
from weft.spec.tools import LOCAL

_PLAIN: Final = frozenset({NoneType, bool, int, float, complex, str, bytes, EllipsisType})


class Fingerprint(NamedTuple):
    """The content of an object as text."""

    text: str
    #: Whether any object with this text behaves the same: it contains nothing mutable and nothing
    #: that has no text.
    certain: bool


def fingerprint(value: object) -> Fingerprint:
    """Return the fingerprint of an object in code."""
    reader = _Reader()
    text = reader.read(value)
    return Fingerprint(text, reader.certain)


class _Reader:
    """Converts an object and its parts to text, recursively."""

    def __init__(self) -> None:
        self.certain = True
        #: The objects in progress: a function may refer to itself.
        self._within: list[object] = []

    def read(self, value: Any, name: str = "") -> str:  # noqa: ANN401 - any object
        if type(value) in _PLAIN:
            if not holds_secret(name, value):
                return f"{type(value).__name__} {value!r}"
            self.certain = False  # The text is hashed, and a short secret could be guessed.
            return "secret"
        if any(value is one for one in self._within):
            return "itself"
        self._within.append(value)
        try:
            return self._composed(value)
        finally:
            self._within.pop()

    def _composed(self, value: Any) -> str:  # noqa: ANN401
        match value:
            case CodeType():
                return self._code(value)
            case FunctionType():
                return importable_name(value) or self._function(value)
            case functools.partial():
                given = cast("functools.partial[Any]", value)
                return f"partial {self._read_all((given.func, given.args, given.keywords))}"
            case MethodType():
                return f"method {self._read_all((value.__func__, value.__self__))}"
            case type() | BuiltinFunctionType():
                return importable_name(value) or self._unsure(value.__qualname__)
            case ModuleType():
                return f"module {value.__name__}"
            case _:
                return self._value(value)

    def _value(self, value: Any) -> str:  # noqa: ANN401
        match value:
            case tuple():
                return f"tuple {self._read_all(cast('tuple[object, ...]', value))}"
            case frozenset():
                return f"frozenset {sorted(map(self.read, cast('frozenset[object]', value)))}"
            case Enum():
                return f"{type(value).__qualname__} {value.name}"
            case list():
                return self._unsure(f"list {self._read_all(cast('list[object]', value))}")
            case set():
                return self._unsure(f"set {sorted(map(self.read, cast('set[object]', value)))}")
            case dict():
                return self._unsure(f"dict {self._read_items(cast('dict[object, object]', value))}")
            case _:
                options = json.dumps(options_of(value), sort_keys=True)
                return self._unsure(f"{type(value).__qualname__} {options}")

    def _unsure(self, text: str) -> str:
        self.certain = False
        return text

    def _read_all(self, parts: Iterable[object]) -> list[str]:
        return [self.read(part) for part in parts]

    def _read_items(self, parts: Mapping[Any, object]) -> list[str]:
        return sorted(
            f"{self.read(key)}: {self.read(part, str(key))}" for key, part in parts.items()
        )

    def _code(self, code: CodeType) -> str:
        constants = self._read_all(code.co_consts)
        return f"code {code.co_code!r} {code.co_names} {code.co_freevars} {constants}"

    def _function(self, function: FunctionType) -> str:
        cells: dict[str, object] = {}
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            try:
                cells[name] = cell.cell_contents
            except ValueError:  # It is set later.
                self.certain = False
        if not all(isinstance(value, FunctionType | type | ModuleType) for value in cells.values()):
            self.certain = False  # The called code may set it again.
        parts = [self.read(function.__code__), str(self._read_items(cells))]
        parts += [
            self.read(function.__defaults__),
            str(self._read_items(function.__kwdefaults__ or {})),
        ]
        return " ".join([*parts, *([self.read(vars(function))] if vars(function) else [])])


def importable_name(value: Any) -> str | None:  # noqa: ANN401 - any object
    """Return `module:name` if any process can import the object by it."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not module or not name or module == "__main__" or "<" in name:
        return None
    found: Any = sys.modules.get(module)
    for step in name.split("."):
        found = getattr(found, step, None)
    return f"{module}:{name}" if found is value else None


def options_of(value: Any) -> dict[str, Json] | None:  # noqa: ANN401 - any object
    """Return the constructor arguments of an object, read from its attributes.

    None if that is not possible, or if one is a secret: specs are stored with runs, and shown.
    """
    options = _dumped(value) if isinstance(value, BaseModel) else _attributes(value)
    return None if options is None or holds_secret("", options) else options


def _dumped(model: BaseModel) -> dict[str, Json] | None:
    if any(isinstance(value, SecretStr | SecretBytes) for _, value in model):
        return None
    try:
        return model.model_dump(mode="json", exclude_defaults=True, warnings=False)
    except ValueError:  # It has values that JSON cannot express.
        return None


def _attributes(instance: Any) -> dict[str, Json] | None:  # noqa: ANN401
    try:
        parameters = inspect.signature(instance.__class__).parameters.values()
    except (TypeError, ValueError):
        return None
    options: dict[str, Json] = {}
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            return None
        if not hasattr(instance, parameter.name):
            return None
        value = getattr(instance, parameter.name)
        if type(parameter.default) is type(value) and parameter.default == value:
            continue
        try:
            options[parameter.name] = to_jsonable_python(value)
        except ValueError:
            return None
        if options[parameter.name] != value:  # JSON would change the value.
            return None
    return options


def holds_secret(name: str, value: object) -> bool:
    """Return whether a value seems to be or to contain a secret, judging also by its name."""
    match value:
        case None | bool() | "":
            return False
        case str():
            return names_a_key(name) or secret_in(name, value) is not None
        case Mapping():
            inner = cast("Mapping[object, object]", value)
            return any(holds_secret(str(key), item) for key, item in inner.items())
        case list() | tuple():
            return any(holds_secret(name, item) for item in cast("list[object]", value))
        case _:
            return names_a_key(name)


#: The objects of this process by spec: a spec is data and cannot hold them.
_OF_SPECS: Final[dict[int, "LocalObjects"]] = {}


def keep_objects(spec: object, objects: "LocalObjects") -> None:
    """Remember the objects of a spec as long as the spec exists."""
    _OF_SPECS[id(spec)] = objects
    finalize(spec, _OF_SPECS.pop, id(spec), None)


def kept_objects(spec: object) -> "LocalObjects":
    """Return the objects that a spec built in this process refers to."""
    return _OF_SPECS.get(id(spec)) or LocalObjects()


class Reference(NamedTuple):
    """A reference to an object: its name, and the constructor arguments of a class."""

    name: str
    options: dict[str, Json]


def given_key(name: str, options: Mapping[str, Json]) -> str:
    """Return the key of an object that has constructor arguments."""
    return f"{name} {sorted(options.items())!r}"


class LocalObjects:
    """The objects of this process, by the names that a spec uses."""

    def __init__(self) -> None:
        self.table: dict[str, object] = {}
        #: Objects that can be created anywhere, as they were passed here.
        self.given: dict[str, object] = {}

    def refer(self, value: object, label: str = "") -> Reference:
        """Return the reference of a spec to an object: an importable name, or local:NAME.

        The label is the use of the object, such as the name of its step: it distinguishes local
        objects with the same code.
        """
        if inspect.isclass(value) or inspect.isroutine(value):
            return Reference(importable_name(value) or self._kept(value, label), {})
        name = importable_name(type(value))
        options = options_of(value) if name else None
        if name and options is not None:
            # Here the object itself is called; elsewhere an equal one is created.
            given = self.given.setdefault(given_key(name, options), value)
            if _are_one(given, value):
                return Reference(name, options)
        return Reference(self._kept(value, label), {})

    def name(self, value: Callable[..., Any] | str, label: str = "") -> str:
        """Return the name of a function in a spec; a text is returned unchanged."""
        return value if isinstance(value, str) else self.refer(value, label).name

    def _kept(self, value: object, label: str) -> str:
        """Keep an object under a name that no object with another behaviour has.

        A resumed run calls the object with this name; the order of objects does not matter.
        """
        if isinstance(value, type):  # All its steps share one object.
            known = next((name for name, kept in self.table.items() if kept is value), None)
            if known is not None:
                return known
        own = getattr(value, "__qualname__", None) or type(value).__qualname__
        plain = "".join(one if one.isalnum() else "_" for one in own.rpartition(">.")[2])
        found = fingerprint(value)
        content = found.text if found.certain else f"{found.text} for {label}"
        mark = hashlib.sha256(content.encode()).hexdigest()[:8]
        base = f"{LOCAL}{plain.strip('_') or 'function'}_{mark}"
        name, number = base, 1
        while name in self.table:
            kept = self.table[name]
            if _are_one(kept, value) or (found.certain and _globals(kept) is _globals(value)):
                return name
            number += 1
            name = f"{base}_{number}"
        self.table[name] = value
        return name


def _are_one(kept: object, value: object) -> bool:
    """Return whether two objects are interchangeable: the same object, or equal plain values."""
    kind = type(value)
    is_value = kind.__eq__ is not object.__eq__ and kind.__hash__ is not None  # pyright: ignore[reportUnnecessaryComparison]
    return kept is value or (is_value and kept == value)


def _globals(value: object) -> object:
    return getattr(value, "__globals__", None)
