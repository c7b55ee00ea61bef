"""The state of a run as bytes and back, so that a run with a long history need not be folded.

The codec follows from the types of the state. A snapshot is a cache: one of another format is
ignored, and any change of the types changes the format.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import (
    Any,
    Final,
    Literal,
    TypeAlias,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from pydantic_core import from_json, to_json

from weft.engine.persistent import Fifo, KeyLog, Log, SharedDict
from weft.engine.rows import Snapshot
from weft.engine.state import State
from weft.engine.timers import Timer, Timers

#: The version of the handlers: raise it when they change but the types of the state do not.
_MEANING: Final = 1

#: Makes a value of what JSON gives for it.
_Reader: TypeAlias = Callable[[Any], Any]

#: These are JSON themselves.
_PLAIN: Final = frozenset({str, int, float, bool, object, Any, NoneType, Literal})

#: What is written as a list or an object, and created again from it.
_SEQUENCES: Final[dict[object, _Reader]] = {
    Log: Log,
    Fifo: Fifo,
    KeyLog: KeyLog,
    tuple: tuple,
    frozenset: frozenset,
    list: list,
}
_MAPPINGS: Final[dict[object, _Reader]] = {
    Mapping: dict,
    dict: dict,
    SharedDict: SharedDict,
    Timers: Timers,
}


def take_snapshot(state: State) -> Snapshot:
    """Return the snapshot of a state."""
    return Snapshot(state.seq, current_format(), state.digest, dump(state))


def restore(snapshot: Snapshot, digest: str) -> State | None:
    """Return the state of a snapshot; None if its format or the digest of its workflow differs."""
    if (snapshot.format, snapshot.digest) != (current_format(), digest):
        return None
    return load(snapshot.content)


def dump(state: State) -> bytes:
    """Return a state as bytes."""
    return to_json(state, fallback=_plain)


def load(content: bytes) -> State:
    """Return the state that `dump` has written."""
    return _state_reader()(from_json(content))


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever JSON has no form for
    return dict(cast("Mapping[Any, Any]", value)) if isinstance(value, Mapping) else list(value)


# -- the readers of types


def _reader(hint: Any) -> _Reader | None:  # noqa: ANN401 - any type
    """Return what reads a type; None if its values are JSON. Raises TypeError if none can."""
    origin, args = get_origin(hint) or hint, get_args(hint)
    if origin in _PLAIN:
        return None
    if origin in (Union, UnionType):
        return _union_reader(args)
    if origin is Timers:
        args = (str, Timer)
    if origin in _MAPPINGS:
        return _mapping_reader(_MAPPINGS[origin], *args)
    if origin in _SEQUENCES:
        return _sequence_reader(_SEQUENCES[origin], args)
    if is_typeddict(hint):
        if any(_reader(each_hint) for each_hint in get_type_hints(hint).values()):
            raise TypeError(f"{hint.__name__} must be JSON, to be part of a snapshot")
        return None
    if isinstance(hint, type) and is_dataclass(hint):
        return _dataclass_reader(hint)
    if isinstance(hint, type) and hasattr(hint, "_fields"):
        return _named_tuple_reader(hint)
    raise TypeError(f"{hint} cannot be part of a snapshot")


def _union_reader(args: tuple[Any, ...]) -> _Reader | None:
    readers = [reader for reader in map(_reader, args) if reader is not None]
    if not readers:
        return None
    (read,) = readers  # Beside None: JSON does not tell two types apart.
    return lambda value: None if value is None else read(value)


def _mapping_reader(make: _Reader, key: object, value: object) -> _Reader | None:
    read = _reader(value)
    if key is int:
        each = read or _same
        return lambda found: make({int(name): each(item) for name, item in found.items()})
    if read is None:
        return None if make is dict else make
    return lambda found: make({name: read(item) for name, item in found.items()})


def _sequence_reader(make: _Reader, args: tuple[Any, ...]) -> _Reader | None:
    if make is tuple and args[-1] is not ...:
        readers = [_reader(hint) or _same for hint in args]
        return lambda found: tuple(read(item) for read, item in zip(readers, found, strict=True))
    read = _reader(args[0]) if args else None
    if read is None:
        return None if make is list else make
    return lambda found: make(map(read, found))


def _dataclass_reader(kind: type[Any]) -> _Reader:
    readers = _field_readers(kind)

    def read(found: dict[str, Any]) -> object:
        for name, reader in readers:
            found[name] = reader(found[name])
        return kind(**found)

    return read


def _named_tuple_reader(kind: Any) -> _Reader:  # noqa: ANN401 - a class of tuples
    places = {name: place for place, name in enumerate(kind._fields)}
    readers = [(places[name], reader) for name, reader in _field_readers(kind)]

    def read(found: list[Any]) -> object:
        for place, reader in readers:
            found[place] = reader(found[place])
        return kind(*found)

    return read


def _field_readers(kind: type[Any]) -> list[tuple[str, _Reader]]:
    hints = get_type_hints(kind).items()
    readers = ((name, _reader(hint)) for name, hint in hints)
    return [(name, reader) for name, reader in readers if reader is not None]


def _same(value: Any) -> Any:  # noqa: ANN401 - JSON
    return value


@cache
def _state_reader() -> _Reader:
    return _dataclass_reader(State)


# -- the format


def shape_of(hint: Any) -> str:  # noqa: ANN401 - any type
    """Return a text that differs for types that are written differently."""
    found: dict[str, str] = {}
    _add_shape(hint, found)
    return repr(sorted(found.items()))


def _add_shape(hint: Any, found: dict[str, str]) -> None:  # noqa: ANN401 - any type
    for inner in get_args(hint):
        _add_shape(inner, found)
    name = str(hint)
    if name in found or not (is_dataclass(hint) or is_typeddict(hint) or hasattr(hint, "_fields")):
        return
    hints = get_type_hints(hint)
    found[name] = str(hints)
    for inner in hints.values():
        _add_shape(inner, found)


@cache
def current_format() -> str:
    """Return the format of the snapshots that are written: it changes with the types."""
    shape = f"{_MEANING} {shape_of(State)} {shape_of(Timer)}"
    return hashlib.sha256(shape.encode()).hexdigest()[:16]
