"""Code frames: the line, the mark, and what is done about lines no terminal can show."""

import os
from pathlib import Path

import pytest

from weft.cli.frames import SourceLines, frame
from weft.cli.streams import plain
from weft.findings import Finding, Place


def framed(file: Path, line: int | None, column: int | None, length: int = 1) -> list[str]:
    finding = Finding("X001", "error", "m", Place(str(file), line, column, length))
    return frame(finding, SourceLines(), plain)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "agents.json"


def test_the_mark_stands_under_the_place(file: Path):
    file.write_text('{\n  "name": "Router"\n}\n')
    assert framed(file, 2, 11, 8) == [
        "  |",
        '2 |   "name": "Router"',
        "  |           ^^^^^^^^",
    ]


def test_the_gutter_is_as_wide_as_the_number(file: Path):
    file.write_text("\n" * 99 + "abc")
    assert framed(file, 100, 2) == ["    |", "100 | abc", "    |  ^"]


def test_a_place_without_column_has_no_mark(file: Path):
    file.write_text("abc\n")
    assert framed(file, 1, None) == ["  |", "1 | abc"]


@pytest.mark.parametrize(("line", "column"), [(None, None), (9, 1)])
def test_a_line_that_is_not_there_gives_no_frame(file: Path, line: int | None, column: int | None):
    file.write_text("abc\n")
    assert framed(file, line, column) == []


def test_a_column_beyond_the_line_is_marked_at_its_end(file: Path):
    file.write_text("abc")
    assert framed(file, 1, 40)[2] == "  |    ^"


def test_long_lines_are_cut_around_the_mark(file: Path):
    file.write_text("a" * 500 + "MARKED" + "b" * 500)
    _, text, mark = framed(file, 1, 501, 6)
    assert text == "1 | ..." + "a" * 60 + "MARKED" + "b" * 40 + "..."
    assert text[mark.index("^") : mark.rindex("^") + 1] == "MARKED"


def test_a_long_mark_is_cut_as_well(file: Path):
    file.write_text("x" * 500)
    _, text, mark = framed(file, 1, 1, 500)
    assert text == "1 | " + "x" * 60 + "..."
    assert mark == "  | " + "^" * 63


def test_a_long_line_without_column_is_cut(file: Path):
    file.write_text("x" * 500)
    assert framed(file, 1, None)[1] == "1 | " + "x" * 100 + "..."


def test_tabs_wide_and_combining_characters_keep_the_mark_in_place(file: Path):
    file.write_text("\t中e\u0301X", encoding="utf-8")
    _, text, mark = framed(file, 1, 5)
    assert text == "1 |     中e\u0301X"
    assert mark == "  | " + " " * 7 + "^"


def test_control_characters_are_written_out(file: Path):
    file.write_bytes(b"a\x1b[31mX")
    _, text, mark = framed(file, 1, 7)
    assert text == r"1 | a\x1b[31mX"
    assert mark.index("^") == text.index("X")


def test_a_byte_order_mark_and_carriage_returns_do_not_count(file: Path):
    file.write_bytes(b"\xef\xbb\xbfab\r\ncd\r\n")
    assert framed(file, 1, 2) == ["  |", "1 | ab", "  |  ^"]


def test_bytes_that_are_no_text_are_shown_as_such(file: Path):
    file.write_bytes(b"\xff\xfeab")
    assert framed(file, 1, 3)[1] == "1 | ��ab"


def test_a_file_that_has_gone_gives_no_frame(file: Path):
    assert framed(file, 1, 1) == []


def test_a_pipe_is_not_opened(file: Path):
    os.mkfifo(file)
    assert framed(file, 1, 1) == []


def test_only_the_start_of_a_huge_file_is_read(file: Path):
    file.write_bytes(b"x\n" * (2 * 1024 * 1024))
    assert framed(file, 1024 * 1024, 1) != []
    assert framed(file, 2 * 1024 * 1024, 1) == []


def test_each_file_gets_its_own_lines(tmp_path: Path):
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text("one")
    second.write_text("two")
    lines = SourceLines()
    assert [lines.line(str(it), 1) for it in (first, first, second)] == ["one", "one", "two"]


def test_a_secret_is_not_shown(tmp_path):
    file = tmp_path / "a.json"
    file.write_text('{"value": "sk-abcdefghijklmnop"}')
    finding = Finding("VAR005", "error", "m", Place(str(file), 1, 11, 21))
    shown = "\n".join(frame(finding, SourceLines(), lambda text, _: text))
    assert "sk-" not in shown
    assert "************" in shown
