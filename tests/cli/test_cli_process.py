"""Real processes: pipes, signals, encodings, and what is imported when."""

import os
import pty
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

PYTHON = sys.executable
WEFT = Path(PYTHON).with_name("weft")


@pytest.fixture
def faulty(workspace, make_package, write):
    """Many packages with an error each: more output than a pipe holds."""
    for number in range(120):
        folder = make_package(workspace / "workflows" / f"Package{number:03}", max_turn=number)
        write(folder, "agent.json", {})
    return workspace


def test_both_ways_to_start(shell, workspace):
    module = shell("--version")
    script = subprocess.run([WEFT, "--version"], capture_output=True, text=True, check=True)
    assert module.out == script.stdout
    assert module.code == 0


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["check"], 0),
        (["check", "Nope"], 6),
        (["chekc"], 2),
        (["new", "Support"], 7),
        ([], 2),
    ],
)
def test_exit_codes_reach_the_shell(shell, workspace, words: list[str], code: int):
    result = shell(*words)
    assert result.code == code
    assert "Traceback" not in result.err


def test_piped_output_has_no_colours_and_is_never_cut(shell, faulty):
    result = shell("check", env={"TERM": "xterm-256color", "COLUMNS": "40"})
    assert result.code == 1
    assert "\x1b" not in result.out + result.err
    assert "  more:  weft explain SCHEMA008" in result.out
    assert any(len(line) > 40 for line in result.out.splitlines())


@pytest.mark.parametrize("words", [["check"], ["check", "--json"], ["explain"], ["--help"]])
def test_a_reader_that_leaves_early(faulty, words: list[str]):
    """`weft check | head -1` shows one line and no complaint."""
    code, complaint = read_a_little([PYTHON, "-m", "weft", *words])
    assert code == (1 if words[0] == "check" else 0)
    assert complaint == b""


def read_a_little(command: list[str]) -> tuple[int, bytes]:
    """Start a command, read ten bytes of its output and leave."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.read(10)
        process.stdout.close()
        complaint = process.stderr.read()
        return process.wait(timeout=60), complaint


@pytest.mark.parametrize("library", [False, True])
def test_completion_candidates_for_a_reader_that_leaves_early(monkeypatch, library: bool):
    command = [PYTHON, "-m", "weft", "__complete", "explain", ""]
    if library:
        monkeypatch.setenv("CYCLOPTS_COMPLETION_WORDS", "explain\x1f\x1f")
    assert read_a_little(command) == (0, b"")


@pytest.mark.parametrize("words", [["explain"], ["explain", "SCHEMA001"], ["explain", "--json"]])
def test_a_full_disk(words: list[str]):
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(
            [PYTHON, "-m", "weft", *words], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert result.returncode == 3
    assert result.stderr.startswith(b"error[CLI003]: cannot write the output: no space left")
    assert b"Exception ignored" not in result.stderr


@pytest.mark.parametrize(("words", "code"), [(["explain"], 3), (["chekc"], 2)])
def test_no_waiters_to_notify(words: list[str], code: int):
    with Path("/dev/full").open("wb") as full:
        command = [PYTHON, "-m", "weft", *words]
        assert subprocess.run(command, stdout=full, stderr=full, check=False).returncode == code


@contextmanager
def watching():
    """Run `weft check --watch` until it watches; give the process and its first line."""
    with subprocess.Popen(
        [PYTHON, "-m", "weft", "check", "--watch"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr
        first = process.stderr.readline()
        time.sleep(0.3)
        yield process, first


def test_ctrl_c_ends_watching_with_130(workspace):
    with watching() as (process, first):
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert first == "Watching for changes. Ctrl-C ends it.\n"
    assert process.returncode == 130
    assert out.startswith("No findings")
    assert err == "stopped\n"


@pytest.mark.parametrize("pause", [0, 0.004, 0.02, 0.06])
def test_a_second_ctrl_c_ends_with_130_as_well(workspace, pause: float):
    with watching() as (process, _):
        process.send_signal(signal.SIGINT)
        time.sleep(pause)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err


def test_closed_streams(workspace):
    command = f'"{PYTHON}" -m weft check >&- 2>&-'
    assert subprocess.run(command, shell=True, check=False).returncode == 0


def test_a_terminal_that_knows_ascii_only(shell, support, write):
    agents = '{"agents": [{"agent_name": "Helper", "promt_sections": "Grüße 世界"}]}'
    write(support, "agents.json", agents)
    result = shell("check", env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert result.code == 1
    assert r"Gr\xfc\xdfe \u4e16\u754c" in result.out


@pytest.mark.parametrize("verb", ["check", "doctor"])
def test_a_folder_that_was_removed_while_one_stood_in_it(tmp_path, verb: str):
    gone = tmp_path / "gone"
    gone.mkdir()
    command = f'cd "{gone}" && rmdir "{gone}" && "{PYTHON}" -m weft {verb}'
    result = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert result.returncode == 3
    assert result.stderr.startswith("error[CLI003]: the current folder no longer exists\n")
    assert "hint:  change to another: cd ~\n" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("form", ["full", "concise", "json", "github", "sarif"])
def test_invalid_unicode_name(weft, workspace, make_package, monkeypatch, form: str):
    folder = workspace / os.fsdecode(b"odd\xff") / "workflows" / "Support"
    make_package(folder, max_turn=3)
    result = weft("check", folder, "--format", form)
    assert (result.code, result.err) == (1, "")
    escaped = "odd%FF" if form == "sarif" else r"odd\udcff"
    assert f"{escaped}/workflows/Support/orchestrator.json" in result.out
    monkeypatch.chdir(folder.parents[1])
    result = weft("check", "--format", form)
    assert (result.code, result.err) == (1, "")


def test_invalid_name_on_a_real_stream(shell, workspace, make_package):
    folder = make_package(workspace / os.fsdecode(b"odd\xff") / "Support", max_turn=3)
    result = shell("check", folder)
    assert (result.code, result.err) == (1, "")
    assert r"odd\udcff/Support/orchestrator.json" in result.out


def test_a_person_at_a_terminal_sees_colours(support, write):
    write(support, "orchestrator.json", {"workflow_name": "Support", "initial_agnt": "Helper"})
    reader, writer = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(
        [PYTHON, "-m", "weft", "check"], stdout=writer, stderr=writer, env=environment
    ) as process:
        os.close(writer)
        shown = b""
        while part := _read(reader):
            shown += part
        assert process.wait(timeout=60) == 1
    os.close(reader)
    assert b"\x1b[1;31merror[SCHEMA00" in shown


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # Linux says so when the other end of a terminal is closed
        return b""


@pytest.mark.parametrize("words", [["--help"], ["--version"], []])
def test_nothing_heavy_is_imported_for_help(words: list[str]):
    question = (
        "import sys; from weft.cli.app import main; "
        f"main({words!r}); "
        "heavy = {'pydantic', 'yaml', 'weft.spec', 'weft.check', 'weft.packages', 'asyncio'}; "
        "sys.exit(str(sorted(heavy & set(sys.modules))))"
    )
    answer = subprocess.run([PYTHON, "-c", question], capture_output=True, text=True, check=False)
    assert answer.stderr.strip() == "[]"


def test_package_code_is_never_imported(shell, support, write):
    write(support, "tools/danger.py", "open('ran', 'w').write('x')\n")
    tool = {"agent": "Helper", "file": "danger.py", "function": "danger", "tool_type": "Agent_Tool"}
    write(support, "tools.json", {"tools": [{**tool, "description": "d"}]})
    shell("check", cwd=support)
    shell("diagram", "Support", cwd=support)
    assert not (support / "ran").exists()
