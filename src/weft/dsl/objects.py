"""Objects given in code: how a spec refers to them, and the table of those it cannot import."""

import hashlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple
from weakref import finalize

from weft.dsl.fingerprint import fingerprint
from weft.dsl.importable import importable_name, options_of
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

        A run that is resumed calls what has the name then: the order of objects is no part of it.
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
