"""The table of sentences and the tests of this folder name each other."""

import re
from pathlib import Path

HERE = Path(__file__).parent
NAMED = re.compile(r"`(test_\w+)`")
WRITTEN = re.compile(r"^def (test_\w+)", re.MULTILINE)
SPAN = re.compile(r"(\d+)(?:-(\d+))?")

#: The last line of each seed.
LENGTHS = {"000": 483, "001": 143}


def rows() -> dict[str, list[list[str]]]:
    """Return the rows of the tables, by seed."""
    text = (HERE / "README.md").read_text(encoding="utf-8")
    parts = re.split(r"^## (\d{3}).*$", text, flags=re.MULTILINE)[1:]
    return {
        seed: [
            [cell.strip() for cell in line.strip("|").split("|")]
            for line in part.splitlines()
            if line.startswith("|") and line[2].isdigit()
        ]
        for seed, part in zip(parts[::2], parts[1::2], strict=True)
    }


def test_every_test_of_the_table_exists_and_every_test_is_in_the_table():
    named = {name for part in rows().values() for row in part for name in NAMED.findall(row[2])}
    written = {
        name
        for file in HERE.glob("test_seed_0*.py")
        for name in WRITTEN.findall(file.read_text(encoding="utf-8"))
    }
    assert named - written == set()
    assert written - named == set()


def test_every_row_has_a_test_or_a_reason():
    reasons = ("about documents", "advice", "generator", "elsewhere")
    for seed, part in rows().items():
        for row in part:
            assert len(row) == 3
            assert NAMED.search(row[2]) or row[2] in reasons, row
            last = [int(found[2] or found[1]) for found in SPAN.finditer(row[0])]
            assert max(last) <= LENGTHS[seed]


def test_the_rows_stand_in_the_order_of_the_seeds():
    for part in rows().values():
        first = [int(SPAN.match(row[0])[1]) for row in part]
        assert first == sorted(first)
