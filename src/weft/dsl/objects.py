"""Objects given in code: how a spec refers to them, and the table of those it cannot import."""

import hashlib
import inspect
import sys
from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any, Final, NamedTuple
from weakref import finalize

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from weft.findings import Json
from weft.spec.tools import LOCAL

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

    def refer(self, it: object) -> Reference:
        """Return how a spec refers to an object: importable by name, or as one of this process."""
        if inspect.isclass(it) or inspect.isroutine(it):
            name = importable_name(it)
            return Reference(name, {}) if name else Reference(self._kept(it), {})
        name = importable_name(type(it))
        options = _options(it) if name else None
        if name and options is not None:
            # Here it is the object itself that is called; elsewhere one that is made like it.
            self.given[given_key(name, options)] = it
            return Reference(name, options)
        return Reference(self._kept(it), {})

    def name(self, it: Callable[..., Any] | str) -> str:
        """Return how a spec refers to a function; text is taken as it is."""
        return it if isinstance(it, str) else self.refer(it).name

    def _kept(self, it: object) -> str:
        known = next((name for name, kept in self.table.items() if kept is it), None)
        if known is not None:
            return known
        own = getattr(it, "__qualname__", None) or type(it).__qualname__
        plain = "".join(one if one.isalnum() else "_" for one in own.rpartition(">.")[2])
        # By its code: another function under the same name is another object.
        code = getattr(it, "__code__", None)
        mark = f"_{_hash(code)}" if code is not None else ""
        base = f"{LOCAL}{plain.strip('_') or 'function'}{mark}"
        name, number = base, 1
        while name in self.table:
            number += 1
            name = f"{base}_{number}"
        self.table[name] = it
        return name


def _hash(code: CodeType) -> str:
    parts = (code.co_code, code.co_names, [it for it in code.co_consts if not _is_code(it)])
    inner = [_hash(it) for it in code.co_consts if _is_code(it)]
    return hashlib.sha256(repr((parts, inner)).encode()).hexdigest()[:8]


def _is_code(it: object) -> bool:
    return isinstance(it, CodeType)


def importable_name(it: Any) -> str | None:  # noqa: ANN401 - any object
    """Return `module:name` if any process can import an object by it."""
    module, name = getattr(it, "__module__", None), getattr(it, "__qualname__", None)
    if not module or not name or module == "__main__" or "<" in name:
        return None
    found: Any = sys.modules.get(module)
    for step in name.split("."):
        found = getattr(found, step, None)
    return f"{module}:{name}" if found is it else None


def _options(it: Any) -> dict[str, Json] | None:  # noqa: ANN401 - any object
    """Return what an object was made with, as far as its attributes tell; None if they do not."""
    if isinstance(it, BaseModel):
        return it.model_dump(mode="json", exclude_defaults=True)
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
        if parameter.default is not parameter.empty and parameter.default == value:
            continue
        try:
            options[parameter.name] = to_jsonable_python(value)
        except ValueError:
            return None
        if options[parameter.name] != value:  # JSON would make something else of it.
            return None
    return options
