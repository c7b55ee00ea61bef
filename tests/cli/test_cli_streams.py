"""Settings, streams and what happens when the outside world interferes."""

import io
import logging
import os
import sys
from pathlib import Path

import pytest

from weft.cli import command_line, streams
from weft.cli import command_line as help_page
from weft.cli.app import main
from weft.cli.codes import CODES
from weft.cli.failure import Exit, failure_of
from weft.cli.hosting import locate_journal
from weft.cli.results import logged
from weft.cli.settings import Settings, nearest_workspace, read_settings
from weft.cli.streams import OutputLost, Streams, clean
from weft.errors import CheckFailed, ExpressionError, PackageError, UsageError
from weft.findings import Finding, Place


class Terminal(io.StringIO):
    """A stream a person looks at."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch):
    """Open a terminal; from inside a test, since pytest sets the streams before each."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")

    def open_terminal() -> Terminal:
        screen = Terminal()
        monkeypatch.setattr(sys, "stdout", screen)
        monkeypatch.setattr(sys, "stderr", screen)
        return screen

    return open_terminal


def test_colour_is_for_terminals(terminal, monkeypatch):
    terminal()
    assert read_settings().color
    assert read_settings().error_color
    assert read_settings().terminal
    assert not read_settings(no_color=True).color
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert not read_settings().color
    assert not read_settings().terminal
    assert read_settings().error_color


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_the_environment_may_refuse_colour(terminal, monkeypatch, name: str, value: str):
    terminal()
    monkeypatch.setenv(name, value)
    assert not read_settings().color
    assert read_settings().terminal


def test_an_empty_no_color_says_nothing(terminal, monkeypatch):
    terminal()
    monkeypatch.setenv("NO_COLOR", "")
    assert read_settings().color


def test_the_nearest_workspace(tmp_path):
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    assert nearest_workspace(deep) == Path()
    (tmp_path / "workflows").mkdir()
    assert nearest_workspace(deep) == Path("../..")
    assert nearest_workspace(tmp_path) == Path()


def test_forbidden_folder_is_not_a_workspace(tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_dir", refuse)
    assert nearest_workspace(tmp_path) == Path()


def test_a_person_sees_colours_and_columns(terminal):
    screen = terminal()
    assert main(["explain", "SCHEMA001"]) == 0
    assert "\x1b[1;31merror[SCHEMA001]\x1b[0m" in screen.getvalue()
    assert main(["explain"]) == 0
    assert "\t" not in screen.getvalue()
    assert "SCHEMA001  error    " in screen.getvalue()


def test_paragraphs_are_broken_for_a_person_only(terminal, weft):
    assert CODES["SCHEMA001"].why in weft("explain", "SCHEMA001").out
    screen = terminal()
    main(["explain", "SCHEMA001", "--no-color"])
    assert max(len(line) for line in screen.getvalue().partition("Example")[0].splitlines()) <= 80


@pytest.mark.parametrize(("width", "columns"), [(40, 40), (300, 100), (0, 80)])
def test_the_width_of_a_terminal(terminal, monkeypatch, width: int, columns: int):
    screen = terminal()
    monkeypatch.setattr(screen, "fileno", lambda: 1, raising=False)
    monkeypatch.setattr("os.get_terminal_size", lambda _: os.terminal_size((width, 24)))
    assert read_settings().columns == columns


def test_errors_are_coloured_for_a_person(terminal):
    screen = terminal()
    assert main(["chekc"]) == 2
    assert "\x1b[1;31merror[CLI002]\x1b[0m" in screen.getvalue()


def test_help_is_as_wide_as_the_terminal_and_at_most_80_columns_when_piped(
    terminal, monkeypatch, capsys
):
    monkeypatch.setenv("COLUMNS", "60")
    screen = terminal()
    main(["check", "--help"])
    assert max(len(line) for line in screen.getvalue().splitlines()) <= 60
    monkeypatch.setattr(sys, "stdout", plain := io.StringIO())
    for command in (["check"], ["runs", "tail"], ["documents", "import"], ["generate"]):
        main([*command, "--help"])
    lines = plain.getvalue().splitlines()
    assert max(len(line) for line in lines if not line.startswith("  weft ")) <= 80
    assert any(len(line) > 60 for line in lines)


def test_a_long_name_gets_its_own_line():
    assert list(help_page._row("--a-rather-long-option", "text", 8, 80)) == [
        "  --a-rather-long-option",
        "            text",
    ]


def test_clean_leaves_ordinary_text_alone():
    assert clean("Grüße, 世界 - it's fine") == "Grüße, 世界 - it's fine"


def test_notes_are_for_people(capsys):
    for settings in (Settings(quiet=True), Settings(json=True)):
        Streams(settings).note("next")
    Streams().detail("hidden")
    Streams(Settings(verbose=True)).detail("shown")
    assert capsys.readouterr().err == "shown\n"


@pytest.mark.parametrize(
    ("error", "exit_code", "message"),
    [
        (UsageError("a", hint="b"), Exit.USAGE, "a"),
        (UsageError("a"), Exit.USAGE, "a"),
        (PackageError("a", (Finding("X1", "error", "m", Place("f")),)), Exit.FAILED, "a"),
        (CheckFailed("a", (Finding("X1", "error", "m", Place("f")),)), Exit.FAILED, "a"),
        (PackageError("a"), Exit.SETUP, "a"),
        (ExpressionError("a"), Exit.SETUP, "a"),
        (
            PermissionError(13, "Permission denied", "x/y"),
            Exit.SETUP,
            "cannot use x/y: permission denied",
        ),
        (OSError(28, "No space left on device"), Exit.SETUP, "no space left on device"),
        (OSError("odd"), Exit.SETUP, "oserror"),
    ],
)
def test_exceptions_become_exit_codes(error, exit_code: Exit, message: str):
    failure = failure_of(error)
    assert (failure.exit, failure.message) == (exit_code, message)


def test_a_refusal_of_the_system_says_where_to_look():
    failure = failure_of(PermissionError(13, "Permission denied", "x y/z"))
    assert failure.hint == ("check the permissions: ls -ld 'x y' 'x y/z'",)
    assert failure_of(OSError(28, "No space left on device")).hint == ("free some disk space",)
    assert failure_of(OSError(5, "I/O error")).hint == ("check the setup: weft doctor",)
    assert failure_of(PackageError("a")).hint == ("check the setup: weft doctor",)
    behind = PackageError("a")
    behind.__cause__ = OSError(28, "No space left on device")
    assert failure_of(behind).hint == ("free some disk space",)


def test_our_own_error_writes_a_report(weft, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def boom(words):
        raise KeyError("secret-value")

    monkeypatch.setattr(command_line, "run", boom)
    result = weft("check", "secret-folder", "--select=secret-code", "--format", "secret-form")
    assert result.code == 70
    assert result.err.startswith("error[CLI070]: Weft failed unexpectedly (KeyError)\n")
    assert "Traceback" not in result.err
    (report,) = tmp_path.glob("weft-report-*/report.txt")
    assert str(report) in result.err
    text = report.read_text()
    assert "command: weft check ... --select --format ...\n" in text
    assert "Traceback (most recent call last)" in text
    assert "weft 0" in text
    assert "secret-folder" not in text
    assert "secret-code" not in text


def test_our_own_error_in_detail_and_as_json(weft, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(command_line, "run", lambda _: 1 / 0)
    assert "ZeroDivisionError" in weft("check", "-v").err
    assert weft("check", "--json").data["error"]["code"] == "CLI070"


def test_our_own_error_without_room_for_a_report(weft, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    monkeypatch.setattr(command_line, "run", lambda _: 1 / 0)
    result = weft("check")
    assert result.code == 70
    assert "the report could not be written" in result.err


def test_ctrl_c(weft, monkeypatch):
    def interrupted(words):
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line, "run", interrupted)
    result = weft("check")
    assert (result.code, result.out, result.err) == (130, "", "stopped\n")


def test_second_ctrl_c_during_the_message_of_the_first(weft, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line, "run", interrupted)
    monkeypatch.setattr(streams.Streams, "problem", interrupted)
    assert weft("check").code == 130


class Full(io.StringIO):
    """A stream to a disk without room."""

    def __init__(self, at: str) -> None:
        super().__init__()
        self.at = at

    def write(self, text: str) -> int:
        if self.at == "write":
            raise OSError(28, "No space left on device")
        return len(text)

    def flush(self) -> None:
        if self.at == "flush":
            raise OSError(28, "No space left on device")


@pytest.mark.parametrize("at", ["write", "flush"])
@pytest.mark.parametrize("words", [["explain"], ["explain", "--json"], ["--json", "chekc"]])
def test_full_disk_is_reported_on_the_other_stream(monkeypatch, capsys, at: str, words: list[str]):
    monkeypatch.setattr(streams, "silence", lambda _: None)
    monkeypatch.setattr(sys, "stdout", Full(at))
    assert main(words) == 3
    told = capsys.readouterr().err
    assert "error[CLI003]: cannot write the output: no space left on device" in told


def test_errors_that_cannot_be_printed_change_no_exit_code(monkeypatch):
    monkeypatch.setattr(streams, "silence", lambda _: None)
    monkeypatch.setattr(sys, "stderr", Full("write"))
    assert main(["chekc"]) == 2


def test_lost_output_without_a_reason():
    assert "oserror" in OutputLost(OSError("odd")).failure.message


class Gone(io.StringIO):
    """A stream whose reader has left."""

    def write(self, _: str) -> int:
        raise BrokenPipeError

    def flush(self) -> None:
        raise BrokenPipeError


def test_a_reader_that_left_changes_no_exit_code(monkeypatch):
    silenced: list[object] = []
    monkeypatch.setattr(streams, "silence", silenced.append)
    gone = Gone()
    monkeypatch.setattr(sys, "stdout", gone)
    assert main(["explain"]) == 0
    assert set(map(id, silenced)) == {id(gone)}


def test_a_reader_of_completions_that_left(monkeypatch):
    monkeypatch.setattr(streams, "silence", lambda _: None)
    monkeypatch.setattr(sys, "stdout", Gone())
    assert main(["__complete", "explain", ""]) == 0


def test_a_silenced_stream_takes_everything_and_keeps_nothing(tmp_path):
    with (tmp_path / "f").open("w") as stream:
        streams.silence(stream)
        stream.write("lost")
    assert (tmp_path / "f").read_text() == ""


def test_streams_that_were_closed_before_the_start(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    assert main(["chekc"]) == 2
    sys.stdout.close()
    sys.stderr.close()


def test_a_current_folder_that_is_gone(weft, workspace, monkeypatch):
    def gone():
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr("pathlib.Path.cwd", gone)
    result = weft("doctor")
    assert result.code == 3
    assert result.err.startswith("error[CLI003]: the current folder no longer exists\n")


def test_the_log_is_shown_to_those_who_ask_and_only_while_a_command_runs(capsys):
    logger = logging.getLogger("weft")
    before = list(logger.handlers)
    for verbose in (True, False):
        with logged(Streams(Settings(verbose=verbose))):
            logger.warning("a line of the log")
        assert capsys.readouterr().err == ("a line of the log\n" if verbose else "")
    assert logger.handlers == before


def test_looking_for_runs_leaves_the_log_alone(tmp_path):
    before = list(logging.getLogger("weft").handlers)
    locate_journal(Streams(Settings(workspace=tmp_path, verbose=True)), None)
    assert logging.getLogger("weft").handlers == before
