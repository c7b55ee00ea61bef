"""Three-way merge: hand edits stay, regenerated changes come, and nothing is lost in silence."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.effort import TIMES
from weft.generator.merge import Conflict, FilesMerged, merge, merge_files

#: Few letters, so that lines repeat and move; the last line may have no end.
TEXTS = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "d"]), max_size=12).map("".join)


@given(TEXTS, TEXTS)
def test_edits_of_a_person_are_kept(base: str, mine: str):
    assert merge(base, mine, base) == merge(base, base, mine)
    assert merge(base, mine, base).text == mine
    assert merge(base, mine, base).conflicts == ()


@given(TEXTS, TEXTS)
def test_equal_changes_are_merged_once(base: str, both: str):
    assert merge(base, both, both).text == both
    assert merge(base, both, both).conflicts == ()


@given(TEXTS, TEXTS, TEXTS)
@settings(max_examples=60 * TIMES)
def test_sides_do_not_matter(base: str, mine: str, theirs: str):
    one, other = merge(base, mine, theirs), merge(base, theirs, mine)
    assert len(one.conflicts) == len(other.conflicts)
    if not one.conflicts:
        assert one.text == other.text


#: Every third line may change, so that lines that nobody touches stand between all edits.
PLACES = st.sets(st.integers(0, 9).map(lambda it: it * 3))


def edited(places: set[int], kind: str) -> str:
    """Return thirty lines, some of them replaced, deleted or followed by a new one."""
    new = {"replace": "new {}\n", "delete": "", "insert": "line {}\nnew {}\n"}[kind]
    return "".join(
        (new if item in places else "line {}\n").format(item, item) for item in range(30)
    )


@given(PLACES, PLACES, st.sampled_from(["replace", "delete", "insert"]))
def test_edits_apart_from_each_other_are_both_there(mine: set[int], theirs: set[int], kind: str):
    merged = merge(edited(set(), kind), edited(mine, kind), edited(theirs - mine, kind))
    assert merged.conflicts == ()
    assert merged.text == edited(mine | theirs, kind)


def test_different_changes_of_a_line_are_a_conflict_with_its_place():
    merged = merge("a\nb\nc\n", "new\na\nmine\nc\n", "a\ntheirs\nc\n")
    assert merged.conflicts == (Conflict(3, "b\n", "mine\n", "theirs\n"),)
    assert merged.text == "new\na\nmine\nc\n"


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ("a\nmine\nb\n", "a\ntheirs\nb\n"),
        ("a\n", "a\ntheirs\n"),
        ("mine\nb\n", "a\ntheirs\n"),
        ("a\nb\nmine", "a\nb\ntheirs"),
    ],
    ids=["both insert", "one deletes", "neighbours", "both append"],
)
def test_changes_that_touch_are_a_conflict(mine: str, theirs: str):
    merged = merge("a\nb\n", mine, theirs)
    assert len(merged.conflicts) == 1
    assert merged.text == mine


def test_signs_that_look_like_line_ends_are_kept():
    odd = "x\u2028y\x0bz\r\n"
    assert merge("a\nb\nc\n", f"{odd}a\nb\nc\n", f"a\nb\nc\n{odd}").text == f"{odd}a\nb\nc\n{odd}"


def files(base: str | None, mine: str | None, theirs: str | None) -> FilesMerged:
    """Merge one file of which each side may have none."""
    sides = [{} if text is None else {"f": text} for text in (base, mine, theirs)]
    return merge_files(*sides)


@pytest.mark.parametrize(
    ("base", "mine", "theirs", "written", "removed"),
    [
        ("a\n", "a\n", "b\n", {"f": "b\n"}, ()),
        ("a\n", "b\n", "a\n", {}, ()),
        ("a\n", "b\n", "b\n", {}, ()),
        ("a\nx\nb\n", "A\nx\nb\n", "a\nx\nB\n", {"f": "A\nx\nB\n"}, ()),
        (None, None, "new\n", {"f": "new\n"}, ()),
        (None, "own\n", None, {}, ()),
        (None, "same\n", "same\n", {}, ()),
        ("a\n", None, "a\n", {}, ()),
        ("a\n", None, None, {}, ()),
        ("a\n", "a\n", None, {}, ("f",)),
        (None, None, "", {"f": ""}, ()),
    ],
    ids=["regenerated", "edited", "both alike", "both apart", "new", "a person's own",
         "unknown but the same", "deleted by a person", "deleted by both", "no longer generated",
         "new and empty"],
)  # fmt: skip
def test_a_file_is_merged(
    base: str | None,
    mine: str | None,
    theirs: str | None,
    written: dict[str, str],
    removed: tuple[str, ...],
):
    merged = files(base, mine, theirs)
    assert (merged.written, merged.removed, merged.conflicts) == (written, removed, {})


@pytest.mark.parametrize(
    ("base", "mine", "theirs"),
    [
        ("a\n", "b\n", "c\n"),
        (None, "b\n", "c\n"),
        ("a\n", None, "c\n"),
        ("a\n", "b\n", None),
    ],
    ids=["both edited", "no base", "deleted and regenerated", "edited and no longer generated"],
)
def test_a_conflict_stops_everything(base: str | None, mine: str | None, theirs: str | None):
    merged = files(base, mine, theirs)
    assert merged.conflicts == {"f": (Conflict(1, base, mine, theirs),)}
    assert (merged.written, merged.removed) == ({}, ())


def test_a_conflict_in_one_file_keeps_all_others():
    merged = merge_files(
        {"a": "1\n", "b": "1\n", "gone": "1\n"},
        {"a": "1\n", "b": "2\n", "gone": "1\n"},
        {"a": "2\n", "b": "3\n", "new": "1\n"},
    )
    assert list(merged.conflicts) == ["b"]
    assert (merged.written, merged.removed) == ({}, ())
