"""Code frames: the line, the mark, and what is done about lines no terminal can show."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from unicodedata import east_asian_width

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.cli.pages.findings import WIDEST, SourceLines, frame
from weft.cli.streams import plain
from weft.findings import Finding, Place


def framed(
    file: Path, line: int | None, column: int | None, length: int = 1, columns: int = WIDEST
) -> list[str]:
    finding = Finding("X001", "error", "m", Place(str(file), line, column, length))
    return frame(finding, SourceLines(), plain, columns)


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
    assert framed(file, 1, None)[1] == "1 | " + "x" * 103 + "..."


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


def test_invalid_utf8_is_shown_as_bytes(file: Path):
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
    assert [lines.line(str(item), 1) for item in (first, first, second)] == ["one", "one", "two"]


def test_a_secret_is_not_shown(tmp_path):
    file = tmp_path / "a.json"
    file.write_text('{"value": "sk-abcdefghijklmnop"}')
    finding = Finding("VAR005", "error", "m", Place(str(file), 1, 11, 21))
    shown = "\n".join(frame(finding, SourceLines(), lambda text, _: text))
    assert "sk-" not in shown
    assert "************" in shown


@given(
    before=st.text("ab\t中é ", max_size=120),
    marked=st.text("xy界", min_size=1, max_size=120),
    after=st.text("cd\t\x1b ", max_size=120),
    columns=st.integers(1, 120),
)
def test_no_line_of_a_frame_is_broken_by_a_narrow_terminal(before, marked, after, columns):
    with TemporaryDirectory() as folder:
        file = Path(folder) / "a.json"
        file.write_text(before + marked + after, encoding="utf-8")
        bar, text, mark = framed(file, 1, len(before) + 1, len(marked), columns)
    wide = [
        sum(2 if east_asian_width(item) in "WF" else 1 for item in line) for line in (text, mark)
    ]
    assert len(bar) <= max(wide) <= max(columns, 24 + len("1 | "))
    at = mark.index("^")
    shown, taken = "", 0
    for item in text:
        if taken >= at:
            shown += item
        taken += 2 if east_asian_width(item) in "WF" else 1
    assert shown.startswith(marked if "..." not in shown else marked[:1])


def test_a_frame_for_40_columns(file: Path):
    file.write_text(f'{"a" * 30}"initial_agent": "Nobody", {"b" * 30}')
    assert framed(file, 1, 31, 15, 40) == [
        "  |",
        '1 | ...aaaaaaaaa"initial_agent": "Nob...',
        "  |             ^^^^^^^^^^^^^^^",
    ]


def test_no_frame_shows_what_a_link_leads_to(tmp_path):
    (tmp_path / "secret.txt").write_text("private line\n")
    folder = tmp_path / "Support"
    (folder / "tools").mkdir(parents=True)
    (folder / "agents.json").symlink_to(tmp_path / "secret.txt")
    (folder / "tools" / "a.py").symlink_to(tmp_path / "secret.txt")
    assert framed(folder / "agents.json", 1, 1) == []
    assert framed(folder / "tools" / "a.py", 1, 1) == []


def test_a_link_inside_the_package_is_shown(tmp_path):
    (tmp_path / "tools").mkdir()
    (tmp_path / "agents.json").write_text("{}")
    (tmp_path / "shared.py").write_text("import x\n")
    (tmp_path / "tools" / "a.py").symlink_to(tmp_path / "shared.py")
    assert framed(tmp_path / "tools" / "a.py", 1, 1)[1] == "1 | import x"


def test_a_file_outside_of_any_package_is_shown_unless_it_is_a_link(tmp_path):
    (tmp_path / "packs").mkdir()
    (tmp_path / "packs" / "a.json").write_text("{}")
    (tmp_path / "packs" / "b.json").symlink_to(tmp_path / "packs" / "a.json")
    (tmp_path / "c.json").write_text("{}")
    (tmp_path / "packs" / "c.json").symlink_to(tmp_path / "c.json")
    shown = [framed(tmp_path / "packs" / f"{letter}.json", 1, 1) != [] for letter in "abc"]
    assert shown == [True, True, False]


@pytest.mark.parametrize("words", [["check"], ["export", "Support"]])
def test_a_refused_link_has_no_line(weft, support, workspace, words):
    outside = workspace.parent / "outside.txt"
    outside.write_text("private line\n")
    (support / "agents.json").unlink()
    (support / "agents.json").symlink_to(outside)
    result = weft(*words)
    assert result.code == 1
    assert "is a link that leads out of the folder" in result.out + result.err
    assert "agents.json:1" not in result.out + result.err
    assert "private line" not in result.out + result.err


def variables(**definitions):
    return {"context_variables": {"definitions": definitions}}


def test_a_value_that_may_be_secret_is_in_no_frame(weft, support, write):
    source = {"type": "static", "value": "9f2c81d07be4"}
    spoken = {"type": "int", "description": "The key.", "source": source}
    marked = {
        **spoken,
        "secret": True,
        "source": {"type": "environment", "env_var": "P", "default": "4711"},
    }
    write(support, "context_variables.json", variables(api_key=spoken, pin=marked))
    for options in ([], ["--select", "VAR002"]):
        shown = weft("check", *options).out
        assert "VAR002" in shown
        assert '"value": ************' in shown
        assert "9f2c81d07be4" not in shown
        assert "4711" not in shown
