"""Fingerprints of code: the same in every process, and others for what does something else."""

import functools
import json
from collections.abc import Iterable, Mapping
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

from weft.dsl.importable import holds_secret, importable_name, options_of

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
        return [self.read(it) for it in parts]

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
