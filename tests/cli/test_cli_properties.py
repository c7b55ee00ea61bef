"""Whatever is typed and whatever a file holds: an exit code, and nothing that steers a terminal."""

import contextlib
import io
import re
import tempfile
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.effort import TIMES
from weft.cli.app import main
from weft.cli.commands.table import COMMAND_NAMES
from weft.cli.pages.findings import SourceLines, frame, github
from weft.cli.streams import clean, plain
from weft.findings import Finding, Place

OPTIONS = [
    "--json",
    "-q",
    "-v",
    "--no-color",
    "--workspace",
    "--fix",
    "--format",
    "--strict",
    "--select",
    "--profile=production",
    "--all",
    "--dry-run",
    "--kind=sequence",
    "--force",
    "-o",
    "--",
    "--help",
    "--version",
]
WORDS = st.one_of(
    st.sampled_from(
        [*COMMAND_NAMES, *OPTIONS, "Support", ".", "SCHEMA001", "agents", "bash", "json"]
    ),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6),
)

#: Characters no output may hold.
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")


@settings(max_examples=20 * TIMES, deadline=None)
@given(words=st.lists(WORDS, max_size=5))
def test_any_words_give_an_exit_code(words: list[str]):
    out, err = io.StringIO(), io.StringIO()
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = main(words)
    assert code in {0, 1, 2, 3, 6, 7}, err.getvalue()
    assert not STEERING.search(err.getvalue())
    assert words[:1] == ["__complete"] or not STEERING.search(out.getvalue())
    assert code in {0, 1} or "error" in out.getvalue() + err.getvalue() or "Usage" in out.getvalue()


@settings(deadline=None)
@given(
    text=st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=300),
    column=st.integers(1, 400),
    length=st.integers(1, 400),
)
def test_any_line_is_framed(tmp_path_factory: pytest.TempPathFactory, text: str, column, length):
    file = tmp_path_factory.getbasetemp() / "framed.json"
    file.write_bytes(text.encode())
    finding = Finding("X1", "error", "m", Place(str(file), 1, column, length))
    _, line, mark = frame(finding, SourceLines(), plain)
    assert not STEERING.search(line)
    assert re.fullmatch(r"  \|  *\^+", mark)
    assert len(line) <= 4 + 10 * (60 + 60 + 40) + 9


@given(st.text())
def test_cleaned_text_holds_no_control_characters(text: str):
    assert not STEERING.search(clean(text))
    assert "\n" not in clean(text)


@given(message=st.text(min_size=1), file=st.text(min_size=1))
def test_github_escapes_can_be_reversed(message: str, file: str):
    line = github(Finding("X1", "error", message, Place(file)))
    assert "\n" not in line
    assert "\r" not in line
    head, _, tail = line.removeprefix("::error ").partition("::")
    assert unquote(tail) == message
    assert unquote(head.removeprefix("file=").removesuffix(",title=X1")) == file
