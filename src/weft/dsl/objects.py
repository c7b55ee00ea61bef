"""Objects given in code: how a spec refers to them, and the table of those it cannot import."""

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
    """What an object is made of, as text."""

    text: str
    #: Whether another object with this text is bound to do the same: it holds nothing that may
    #: change, and nothing that could not be written down.
    certain: bool


def fingerprint(it: object) -> Fingerprint:
    """Return the fingerprint of an object in code."""
    reader = _Reader()
    text = reader.read(it)
    return Fingerprint(text, reader.certain)


class _Reader:
    """Writes down what an object is made of, and what that is made of in turn."""

    def __init__(self) -> None:
        self.certain = True
        #: What is being read: a function may refer to itself.
        self._within: list[object] = []

    def read(self, it: Any, name: str = "") -> str:  # noqa: ANN401 - any object
        if type(it) in _PLAIN:
            if not holds_secret(name, it):
                return f"{type(it).__name__} {it!r}"
            self.certain = False  # The text is hashed, and a short secret could be guessed.
            return "secret"
        if any(it is one for one in self._within):
            return "itself"
        self._within.append(it)
        try:
            return self._composed(it)
        finally:
            self._within.pop()

    def _composed(self, it: Any) -> str:  # noqa: ANN401
        match it:
            case CodeType():
                return self._code(it)
            case FunctionType():
                return importable_name(it) or self._function(it)
            case functools.partial():
                given = cast("functools.partial[Any]", it)
                return f"partial {self._all((given.func, given.args, given.keywords))}"
            case MethodType():
                return f"method {self._all((it.__func__, it.__self__))}"
            case type() | BuiltinFunctionType():
                return importable_name(it) or self._unsure(it.__qualname__)
            case ModuleType():
                return f"module {it.__name__}"
            case _:
                return self._value(it)

    def _value(self, it: Any) -> str:  # noqa: ANN401
        match it:
            case tuple():
                return f"tuple {self._all(cast('tuple[object, ...]', it))}"
            case frozenset():
                return f"frozenset {sorted(map(self.read, cast('frozenset[object]', it)))}"
            case Enum():
                return f"{type(it).__qualname__} {it.name}"
            case list():
                return self._unsure(f"list {self._all(cast('list[object]', it))}")
            case set():
                return self._unsure(f"set {sorted(map(self.read, cast('set[object]', it)))}")
            case dict():
                return self._unsure(f"dict {self._named(cast('dict[object, object]', it))}")
            case _:
                options = json.dumps(options_of(it), sort_keys=True)
                return self._unsure(f"{type(it).__qualname__} {options}")

    def _unsure(self, text: str) -> str:
        self.certain = False
        return text

    def _all(self, parts: Iterable[object]) -> list[str]:
        return [self.read(part) for part in parts]

    def _named(self, parts: Mapping[Any, object]) -> list[str]:
        return sorted(f"{self.read(key)}: {self.read(it, str(key))}" for key, it in parts.items())

    def _code(self, it: CodeType) -> str:
        return f"code {it.co_code!r} {it.co_names} {it.co_freevars} {self._all(it.co_consts)}"

    def _function(self, it: FunctionType) -> str:
        cells: dict[str, object] = {}
        for name, cell in zip(it.__code__.co_freevars, it.__closure__ or (), strict=True):
            try:
                cells[name] = cell.cell_contents
            except ValueError:  # It is set later.
                self.certain = False
        if not all(isinstance(value, FunctionType | type | ModuleType) for value in cells.values()):
            self.certain = False  # What is called may set it anew.
        parts = [self.read(it.__code__), str(self._named(cells))]
        parts += [self.read(it.__defaults__), str(self._named(it.__kwdefaults__ or {}))]
        return " ".join([*parts, *([self.read(vars(it))] if vars(it) else [])])


def importable_name(it: Any) -> str | None:  # noqa: ANN401 - any object
    """Return `module:name` if any process can import an object by it."""
    module, name = getattr(it, "__module__", None), getattr(it, "__qualname__", None)
    if not module or not name or module == "__main__" or "<" in name:
        return None
    found: Any = sys.modules.get(module)
    for step in name.split("."):
        found = getattr(found, step, None)
    return f"{module}:{name}" if found is it else None


def options_of(it: Any) -> dict[str, Json] | None:  # noqa: ANN401 - any object
    """Return what an object was made with, as far as its attributes tell.

    None if they do not, or if it is a secret: specs are kept with every run, and shown.
    """
    options = _dumped(it) if isinstance(it, BaseModel) else _attributes(it)
    return None if options is None or holds_secret("", options) else options


def _dumped(it: BaseModel) -> dict[str, Json] | None:
    if any(isinstance(value, SecretStr | SecretBytes) for _, value in it):
        return None
    try:
        return it.model_dump(mode="json", exclude_defaults=True, warnings=False)
    except ValueError:  # It holds what JSON cannot say.
        return None


def _attributes(it: Any) -> dict[str, Json] | None:  # noqa: ANN401
    try:
        parameters = inspect.signature(it.__class__).parameters.values()
    except (TypeError, ValueError):
        return None
    options: dict[str, Json] = {}
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            return None
        if not hasattr(it, parameter.name):
            return None
        value = getattr(it, parameter.name)
        if type(parameter.default) is type(value) and parameter.default == value:
            continue
        try:
            options[parameter.name] = to_jsonable_python(value)
        except ValueError:
            return None
        if options[parameter.name] != value:  # JSON would make something else of it.
            return None
    return options


def holds_secret(name: str, value: object) -> bool:
    """Tell whether a value seems to be a secret, or to hold one, given what it is called."""
    match value:
        case None | bool() | "":
            return False
        case str():
            return names_a_key(name) or secret_in(name, value) is not None
        case Mapping():
            inner = cast("Mapping[object, object]", value)
            return any(holds_secret(str(key), it) for key, it in inner.items())
        case list() | tuple():
            return any(holds_secret(name, it) for it in cast("list[object]", value))
        case _:
            return names_a_key(name)


#: What only this process has, of specs that were built here: a spec is data and cannot hold it.
_OF_SPECS: Final[dict[int, "LocalObjects"]] = {}


def keep_objects(spec: object, objects: "LocalObjects") -> None:
    """Remember what a spec refers to, for as long as there is the spec."""
    _OF_SPECS[id(spec)] = objects
    finalize(spec, _OF_SPECS.pop, id(spec), None)


def kept_objects(spec: object) -> "LocalObjects":
    """Return what a spec that was built here refers to."""
    return _OF_SPECS.get(id(spec)) or LocalObjects()


class Reference(NamedTuple):
    """How a spec refers to an object: a name, and what a class is made with."""

    name: str
    options: dict[str, Json]


def given_key(name: str, options: Mapping[str, Json]) -> str:
    """Return what an object that was made with options is kept under."""
    return f"{name} {sorted(options.items())!r}"


class LocalObjects:
    """Objects that only this process has, by the names under which a spec refers to them."""

    def __init__(self) -> None:
        self.table: dict[str, object] = {}
        #: Objects that can be made anywhere, as they were given here.
        self.given: dict[str, object] = {}

    def refer(self, it: object, label: str = "") -> Reference:
        """Return how a spec refers to an object: importable by name, or as one of this process.

        The label is what the object is for, such as the name of its step: it tells objects of this
        process apart whose code is the same.
        """
        if inspect.isclass(it) or inspect.isroutine(it):
            return Reference(importable_name(it) or self._kept(it, label), {})
        name = importable_name(type(it))
        options = options_of(it) if name else None
        if name and options is not None:
            # Here it is the object itself that is called; elsewhere one that is made like it.
            given = self.given.setdefault(given_key(name, options), it)
            if _are_one(given, it):
                return Reference(name, options)
        return Reference(self._kept(it, label), {})

    def name(self, it: Callable[..., Any] | str, label: str = "") -> str:
        """Return how a spec refers to a function; text is taken as it is."""
        return it if isinstance(it, str) else self.refer(it, label).name

    def _kept(self, it: object, label: str) -> str:
        """Keep an object, under a name that no other has which may do something else.

        A resumed run calls the object that has the name then; the order of objects does not matter.
        """
        if isinstance(it, type):  # All its steps share one object of it.
            known = next((name for name, kept in self.table.items() if kept is it), None)
            if known is not None:
                return known
        own = getattr(it, "__qualname__", None) or type(it).__qualname__
        plain = "".join(one if one.isalnum() else "_" for one in own.rpartition(">.")[2])
        found = fingerprint(it)
        told = found.text if found.certain else f"{found.text} for {label}"
        mark = hashlib.sha256(told.encode()).hexdigest()[:8]
        base = f"{LOCAL}{plain.strip('_') or 'function'}_{mark}"
        name, number = base, 1
        while name in self.table:
            kept = self.table[name]
            if _are_one(kept, it) or (found.certain and _globals(kept) is _globals(it)):
                return name
            number += 1
            name = f"{base}_{number}"
        self.table[name] = it
        return name


def _are_one(kept: object, it: object) -> bool:
    """Tell whether one object can stand for another: it is the same, or an equal plain value."""
    kind = type(it)
    is_value = kind.__eq__ is not object.__eq__ and kind.__hash__ is not None  # pyright: ignore[reportUnnecessaryComparison]
    return kept is it or (is_value and kept == it)


def _globals(it: object) -> object:
    return getattr(it, "__globals__", None)
