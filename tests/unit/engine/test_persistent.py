"""Mappings and timers whose versions share their entries."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.engine.persistent import SharedDict
from weft.engine.timers import NEVER, Timer, Timers

KEYS = st.sampled_from("abcdef")


@given(st.lists(st.tuples(st.integers(0, 30), KEYS, st.none() | st.integers(0, 9)), max_size=30))
def test_every_version_keeps_its_entries_and_their_order(steps):
    """Each step adds an entry to one of the versions so far, or removes one from it."""
    versions = [(SharedDict[str, int](), dict[str, int]())]
    for place, key, value in steps:
        shared, plain = versions[place % len(versions)]
        if value is None:
            versions.append(
                (shared.removed(key), {k: value for k, value in plain.items() if k != key})
            )
        else:
            versions.append((shared.added(key, value), {**plain, key: value}))
    for shared, plain in [*versions, *reversed(versions)]:
        assert shared == plain
        assert list(shared.items()) == list(plain.items())
        assert (len(shared), bool(shared)) == (len(plain), bool(plain))
        assert [shared.get(key, -1) for key in "abcdef"] == [plain.get(k, -1) for k in "abcdef"]


def test_reading_an_older_version_leaves_the_newer_one_as_it_is():
    one = SharedDict({"a": 1})
    two = one.added("b", 2).added("a", 3)
    three = two.removed("b")
    assert (dict(one), dict(two), dict(three)) == ({"a": 1}, {"a": 3, "b": 2}, {"a": 3})
    assert ("b" in one, "b" in two, "b" in three) == (False, True, False)
    assert (two["a"], one["a"]) == (3, 1)
    assert repr(two) == "SharedDict({'a': 3, 'b': 2})"
    with pytest.raises(KeyError):
        one["b"]


def test_removing_what_is_missing_changes_nothing():
    one = SharedDict({"a": 1})
    assert one.removed("b") is one
    assert one.get("b") is None


def test_an_empty_mapping_is_the_beginning_of_independent_mappings():
    empty = SharedDict[str, int]()
    one, two = empty.added("a", 1), empty.added("b", 2)
    assert (dict(empty), dict(one), dict(two)) == ({}, {"a": 1}, {"b": 2})


def timers(*pairs):
    found = Timers()
    for id_, at in pairs:
        found = found.added(Timer(id_, at, 0))
    return found


def test_timers_are_due_by_time_and_id():
    found = timers(("c", 5), ("a", 7), ("b", 5), ("d", 1))
    assert found.due_at == 1
    assert [timer.id for timer in found.due(5)] == ["d", "b", "c"]
    assert found.due(0) == []
    assert (len(found), "a" in found, found["a"].at) == (4, True, 7)
    assert list(found) == ["c", "a", "b", "d"]
    assert Timers().due_at == NEVER


def test_a_timer_that_is_removed_or_set_anew_is_not_due_at_its_old_time():
    found = timers(("a", 1), ("b", 2), ("c", 3), ("a", 9), ("c", 3)).removed("b")
    assert [(timer.id, timer.at) for timer in found.due(10)] == [("c", 3), ("a", 9)]
    assert found.removed("x") is found
    assert found.removed("c").due_at == 9
    assert Timers(found) == found
    assert repr(timers(("a", 1))) == "Timers({'a': Timer(id='a', at=1, owner=0)})"


def test_timers_in_any_order_are_due_in_theirs():
    chance = random.Random(7)
    set_, found = {}, Timers()
    for _ in range(400):
        id_, at = f"t{chance.randrange(60)}", chance.randrange(100)
        if chance.random() < 0.3:
            set_.pop(id_, None)
            found = found.removed(id_)
        else:
            set_[id_] = at
            found = found.added(Timer(id_, at, 0))
        due = sorted((at, id_) for id_, at in set_.items() if at <= 50)
        assert [(timer.at, timer.id) for timer in found.due(50)] == due
        assert found.due_at == min(set_.values(), default=NEVER)
