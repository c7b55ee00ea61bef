"""Snapshots: the format follows from the types, and a snapshot of another format is ignored."""

from dataclasses import make_dataclass
from typing import Literal, NamedTuple, TypedDict

import pytest

from support.engine_play import Play, workflow
from weft.engine import snapshot
from weft.engine.persistent import Log
from weft.engine.reduce import fold
from weft.engine.snapshot import current_format, restore, shape_of, take_snapshot


class Pair(NamedTuple):
    left: int
    right: Log[str] | None


class Wrong(TypedDict):
    found: Log[int]


def test_a_snapshot_is_restored_with_the_same_format_and_digest():
    play = Play(workflow())
    play.start()
    taken = take_snapshot(play.state)
    assert (taken.seq, taken.format, taken.digest) == (play.state.seq, current_format(), "digest")
    assert restore(taken, "digest") == play.state == fold(play.compiled, "r", play.events)
    assert restore(taken, "another") is None
    assert restore(taken._replace(format="1"), "digest") is None


def test_any_change_of_the_types_changes_the_shape():
    first = make_dataclass("Part", [("name", str), ("pair", Pair)])
    shapes = {
        shape_of(make_dataclass("Part", changed))
        for changed in (
            [("pair", Pair), ("name", str)],
            [("name", str), ("pair", Pair | None)],
            [("name", Literal["a"]), ("pair", Pair)],
            [("name", str), ("pair", Pair), ("more", int)],
            [("title", str), ("pair", Pair)],
        )
    }
    assert len(shapes) == 5
    assert shape_of(first) not in shapes
    assert shape_of(first) == shape_of(make_dataclass("Part", [("name", str), ("pair", Pair)]))
    assert "Pair" in shape_of(list[dict[str, first]])


@pytest.mark.parametrize(
    ("hint", "message"),
    [(complex, "cannot be part of a snapshot"), (Wrong, "Wrong must be JSON")],
)
def test_a_type_without_a_form_is_refused(hint, message):
    with pytest.raises(TypeError, match=message):
        snapshot._reader(hint)


def test_values_are_read_as_their_types_say():
    assert snapshot._reader(Pair)([1, ["a"]]) == Pair(1, Log(["a"]))
    assert snapshot._reader(Pair)([1, None]) == Pair(1, None)
    assert snapshot._reader(dict[int, Pair])({"2": [1, None]}) == {2: Pair(1, None)}
    assert snapshot._reader(dict[int, str])({"2": "b"}) == {2: "b"}
    assert snapshot._reader(tuple[str, Pair])(["a", [1, None]]) == ("a", Pair(1, None))
    assert snapshot._reader(list[str] | None) is None
