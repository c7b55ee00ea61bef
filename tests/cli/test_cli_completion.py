"""Shell completion: scripts that shells accept, and what they offer."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from weft.cli.command_line import build_app
from weft.cli.commands.table import COMMAND_NAMES, COMMANDS
from weft.cli.completion import SLOTS
from weft.packages.writer import SCHEMA_NAMES


@pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish", "powershell"])
def test_every_script_offers_all_verbs_and_options(weft, shell_name: str):
    result = weft("completion", shell_name)
    assert result.code == 0
    assert all(verb in result.out for verb in COMMAND_NAMES)
    assert weft("completion", shell_name, "--json").data["script"] + "\n" == result.out
    for option in ("strict", "dry-run", "pattern", "workspace"):
        assert option in result.out


def test_bash_accepts_its_script(weft, tmp_path):
    script = tmp_path / "script"
    script.write_text(weft("completion", "bash").out)
    subprocess.run(["bash", "-n", str(script)], check=True)


def complete_in_bash(script: str, line: str) -> list[str]:
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    program = (
        f"{script}\nCOMP_WORDS=({quoted})\nCOMP_CWORD={len(words) - 1}\n"
        f"COMP_LINE='{line}'\nCOMP_POINT={len(line)}\n_weft\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
    )
    answer = subprocess.run(
        ["bash", "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    return answer.stdout.split()


def test_bash_completes_verbs_options_and_values(weft):
    script = weft("completion", "bash").out
    assert complete_in_bash(script, "weft mig") == ["migrate"]
    assert "--dry-run" in complete_in_bash(script, "weft migrate --d")
    assert set(complete_in_bash(script, "weft check --format s")) == {"sarif"}


def offered(weft, *words: str) -> set[str]:
    lines = weft("__complete", *words).out.splitlines()
    return {line.split("\t")[0] for line in lines if line and line[0] != "\x1f"}


def test_packages_are_offered_by_name(weft, workspace, make_package):
    make_package(workspace / "workflows" / "Returns")
    for verb in ("diagram", "export", "check", "migrate", "run", "chat"):
        assert offered(weft, verb, "") >= {"Support", "Returns"}


def test_outside_of_a_workspace_no_package_is_offered(weft, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert offered(weft, "diagram", "") == set()


def test_codes_are_offered(weft):
    assert offered(weft, "explain", "") >= {"SCHEMA", "SCHEMA001", "CLI006"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("check", "--select", ""), {"HAND", "HAND001", "CLI"}),
        (("check", "--ignore=HAND,"), {"HAND,EXPO", "HAND,HAND001"}),
        (("check", "--select", "=", "HA"), {"HAND", "HAND001"}),
        (("check", "--select", "="), {"HAND", "HAND001"}),
        (("-q", "new", "Returns", "--pattern", ""), {"1", "9", "Pipeline"}),
        (("schema", ""), set(SCHEMA_NAMES)),
    ],
)
def test_values_are_offered(weft, words: tuple[str, ...], expected: set[str]):
    assert offered(weft, *words) >= expected


@pytest.mark.parametrize("words", [(), ("",), ("doctor", ""), ("--pattern", "")])
def test_nothing_is_offered_where_there_is_nothing_to_offer(weft, words: tuple[str, ...]):
    assert offered(weft, *words) == set()


def test_only_folders_that_can_be_packages_are_offered(weft, workspace):
    (workspace / "workflows" / ".hidden").mkdir()
    (workspace / "workflows" / "notes.txt").touch()
    assert offered(weft, "check", "") == {"Support"}


@pytest.mark.parametrize("form", [("--workspace", "{}"), ("--workspace={}",)])
def test_packages_of_the_named_workspace_are_offered(
    weft, workspace, make_package, form: tuple[str, ...]
):
    make_package(workspace / "shop" / "workflows" / "Returns")
    words = [word.format(workspace / "shop") for word in form]
    assert offered(weft, *words, "check", "") == {"Returns"}
    assert offered(weft, "check", *words, "") == {"Returns"}


def test_a_workspace_may_be_called_like_a_verb(weft, workspace, make_package):
    make_package(workspace / "explain" / "workflows" / "Returns")
    assert offered(weft, "--workspace", "explain", "check", "") == {"Returns"}


def test_names_that_would_break_the_form_are_flattened(weft, workspace):
    (workspace / "workflows" / "\x1fodd\tname\nhere").mkdir()
    assert "\nodd name here\n" in weft("__complete", "check", "").out


def slots() -> Iterator[tuple[str, str]]:
    """Every place where a verb declares that it has something to offer."""
    app = build_app()
    for verb in COMMANDS:
        for part in verb.parts or (None,):
            command = app[verb.name][part.name] if part else app[verb.name]
            for argument in command.assemble_argument_collection():
                if argument.parameter.completer:
                    yield verb.name, "" if argument.index is not None else argument.names[0]


def test_the_quick_answer_knows_every_slot_the_verbs_declare():
    assert set(slots()) == set(SLOTS)


@pytest.mark.parametrize(("verb", "option"), SLOTS)
@pytest.mark.parametrize("place", [(), ("--workspace", "shop")])
def test_the_quick_answer_is_that_of_the_library(
    weft, workspace, make_package, capsys, verb: str, option: str, place: tuple[str, ...]
):
    make_package(workspace / "shop" / "workflows" / "Returns")
    name = ["Name"] if verb == "new" else []
    words = ["__complete", verb, *name, *place, *([option] if option else []), ""]
    quick = weft(*words).out
    capsys.readouterr()
    build_app().meta(words)
    assert capsys.readouterr().out == quick
    assert len(quick.splitlines()) > 2


def test_powershell_asks_for_the_longer_form(weft, workspace, monkeypatch):
    monkeypatch.setenv("CYCLOPTS_COMPLETION_WORDS", "check\x1fSup\x1f")
    assert offered(weft) == {"Support"}


@pytest.mark.parametrize("words", [("check", ""), ("explain", ""), ("schema", "")])
def test_completing_loads_neither_models_nor_the_library(words: tuple[str, ...]):
    question = (
        "import sys; from weft.cli.app import main; "
        f"main(['__complete', *{words!r}]); "
        "heavy = {'pydantic', 'yaml', 'cyclopts', 'rich', 'weft.spec', 'weft.check'}; "
        "sys.exit(str(sorted(heavy & set(sys.modules))))"
    )
    command = [sys.executable, "-c", question]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert answer.stderr.strip() == "[]"
