"""Shell completion: short scripts that ask `weft __complete`, and the answers."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from weft.cli import completion
from weft.cli.command_line import build_app, describe_commands
from weft.cli.commands.table import COMMAND_NAMES
from weft.cli.completion import COMPLETERS, SCHEMAS, SCRIPTS
from weft.packages.writer import SCHEMA_NAMES


@pytest.mark.parametrize("shell_name", SCRIPTS)
def test_script_is_short_and_asks_weft(weft, shell_name: str):
    result = weft("completion", shell_name)
    assert result.code == 0
    assert "weft __complete" in result.out
    assert len(result.out.splitlines()) < 20
    assert weft("completion", shell_name, "--json").data["script"] + "\n" == result.out


def test_script_is_printed_without_loading_every_command():
    question = (
        "import sys; from weft.cli.app import main; main(['completion', 'bash']); "
        "sys.exit(str(sorted(name for name in sys.modules if name.startswith('weft.runtime'))))"
    )
    command = [sys.executable, "-c", question]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert answer.stderr.strip() == "[]"


def test_completion_data_is_current():
    described = describe_commands(build_app())
    text = Path(completion.__file__).with_name("completion.json").read_text(encoding="utf-8")
    assert json.loads(text) == json.loads(json.dumps(described)), "write it: make generate"
    every = [data for options in described.values() for data in options.values()]
    assert {data["completer"] for data in every if "completer" in data} == set(COMPLETERS)
    assert tuple(SCHEMAS) == tuple(SCHEMA_NAMES)


def complete_in_bash(script: str, line: str) -> list[str]:
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    program = (
        f'weft() {{ {sys.executable} -m weft "$@"; }}\n{script}\nCOMP_WORDS=({quoted})\n'
        f"COMP_CWORD={len(words) - 1}\n_weft\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
    )
    answer = subprocess.run(
        ["bash", "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    return answer.stdout.split()


def test_bash_completes_commands_options_and_values(weft):
    script = weft("completion", "bash").out
    assert complete_in_bash(script, "weft mig") == ["migrate"]
    assert complete_in_bash(script, "weft migrate --d") == ["--dry-run"]
    assert complete_in_bash(script, "weft check --format s") == ["sarif"]
    assert complete_in_bash(script, "weft runs del") == ["delete"]


def offered(weft, *words: str) -> set[str]:
    lines = weft("__complete", *words).out.splitlines()
    return {line.split("\t")[0] for line in lines if line}


def test_commands_and_subcommands_are_offered(weft):
    assert offered(weft, "") == set(COMMAND_NAMES)
    assert offered(weft, "runs", "") >= {"list", "delete"}
    assert offered(weft, "store", "") == {"migrate", "check", "backup", "copy"}
    assert offered(weft, "plan", "d") == {"diff"}


def test_options_are_offered(weft):
    assert offered(weft, "check", "--s") == {"--strict", "--select"}
    assert offered(weft, "--w") == {"--workspace"}
    assert offered(weft, "runs", "list", "--j") == {"--json", "--journal"}


def test_packages_are_offered_by_name(weft, workspace, make_package):
    make_package(workspace / "workflows" / "Returns")
    for command in ("diagram", "export", "check", "migrate", "run", "chat"):
        assert offered(weft, command, "") >= {"Support", "Returns"}


def test_no_package_is_offered_outside_of_a_workspace(weft, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert offered(weft, "diagram", "") == set()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("explain", ""), {"SCHEMA", "SCHEMA001", "CLI006"}),
        (("check", "--select", ""), {"HAND", "NAME001", "CLI"}),
        (("check", "--ignore=HAND,"), {"HAND,EXPO", "HAND,NAME001"}),
        (("check", "--select", "=", "HA"), {"HAND", "HAND006"}),
        (("check", "--select", "="), {"HAND", "NAME001"}),
        (("-q", "new", "Returns", "--pattern", ""), {"1", "9", "Pipeline", "blank"}),
        (("runs", "list", "--status", "f"), {"failed"}),
        (("schema", '""'), set(SCHEMA_NAMES)),
    ],
)
def test_values_are_offered(weft, words: tuple[str, ...], expected: set[str]):
    assert offered(weft, *words) >= expected


@pytest.mark.parametrize("words", [("doctor", ""), ("run", "--model", "")])
def test_nothing_is_offered_where_values_are_unknown(weft, words: tuple[str, ...]):
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


def test_workspace_may_be_called_like_a_command(weft, workspace, make_package):
    make_package(workspace / "explain" / "workflows" / "Returns")
    assert offered(weft, "--workspace", "explain", "check", "") == {"Returns"}


def test_names_with_tabs_and_newlines_stay_on_one_line(weft, workspace):
    (workspace / "workflows" / "odd\tname\nhere").mkdir()
    assert "odd name here\n" in weft("__complete", "check", "").out


@pytest.mark.parametrize("words", [("check", ""), ("explain", ""), ("run", "--")])
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


def test_fish_offers_files_only_without_other_candidates(weft):
    script = weft("completion", "fish").out
    assert "complete -c weft -f -a '(__weft)'" in script
    assert "if test (count $found) -gt 0" in script
    assert "__fish_complete_path (commandline -ct)" in script
