import pytest

from weft.packages.text.index import children_of, line_column, show, spot


def test_text_in_messages_is_short_and_visible():
    assert show("a" * 40) == "'" + "a" * 40 + "'"
    assert show("a" * 41) == "'" + "a" * 37 + "...'"
    assert show("\ufeff") == "'\\ufeff'"
    assert show("1", '"') == '"1"'


@pytest.mark.parametrize(
    ("offset", "line", "column"), [(0, 1, 1), (2, 1, 3), (3, 2, 1), (4, 3, 1), (5, 3, 2)]
)
def test_offsets_count_as_lines_and_columns_from_1(offset, line, column):
    assert line_column("ab\n\nc", offset) == (line, column)
    assert spot("ab\n\nc", offset) == f"line {line}, column {column}"


def test_only_containers_hold_values():
    assert list(children_of({"a": 1, "b": [2]})) == [1, [2]]
    assert list(children_of([1, "x"])) == [1, "x"]
    assert [list(children_of(value)) for value in ("xy", 1, None)] == [[], [], []]
