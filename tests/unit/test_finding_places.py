"""Where the findings of rules stand, and how much of the line they mark."""

from weft.check.run import findings_of, nowhere
from weft.check.subject import Hit
from weft.findings import Place


def locate(path, *, at_key=False, offset=None):
    return Place("a.json", 1, 1 + (offset or 0), length=7)


def place_of(hit):
    (finding,) = findings_of("NAME001", [hit], locate)
    return finding.place


def test_a_finding_marks_what_stands_at_its_place():
    assert place_of(Hit(("a",), "x")) == Place("a.json", 1, 1, length=7)
    assert place_of(Hit((), "x", place=Place("t.py", 3, 2))) == Place("t.py", 3, 2, length=1)


def test_a_rule_that_knows_better_says_how_much_to_mark():
    assert place_of(Hit(("a",), "x", offset=2, length=3)) == Place("a.json", 1, 3, length=3)
    place = Place("t.py", 3, 2)
    assert place_of(Hit((), "x", place=place, length=4)) == Place("t.py", 3, 2, length=4)


def test_a_spec_that_was_not_read_from_files_is_placed_by_its_paths():
    assert nowhere(("agents", 0, "name"), offset=3) == Place("agents.0.name")
