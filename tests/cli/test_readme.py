"""The examples on the front page work as shown."""

import re
import subprocess
import sys

import pytest

from support.page_play import DOCS, read_pages
from weft.cli.commands.table import COMMANDS
from weft.spec.condition_parser import parse_condition

README = (DOCS.parent / "README.md").read_text(encoding="utf-8")


def test_the_smallest_package_has_no_findings(weft, tmp_path, monkeypatch):
    files = re.findall(r"`(workflows/Hello/[a-z]+\.json)`\n```json\n(.*?)```", README, re.DOTALL)
    assert len(files) == 3
    for name, text in files:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.chdir(tmp_path)
    result = weft("check", "--strict")
    assert (result.code, result.err) == (0, "")
    assert "No findings in 3 files of 1 package" in result.out


@pytest.mark.parametrize(
    ("heading", "output"),
    [("Board", "2 ['Pitch', 'Lead']"), ("Flow", "completed [sample]")],
)
def test_python_examples_run(heading, output):
    section = README.split(f"\n### {heading}\n")[1].split("\n#")[0]
    [code] = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(output)


def test_every_command_of_the_readme_exists():
    blocks = re.findall(r"\n\n```\n(.*?)\n```", README, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("weft ")]
    groups = {command.name: {part.name for part in command.parts} for command in COMMANDS}
    for line in lines:
        name, *words = line.removeprefix("weft ").split()
        assert name in groups, line
        if groups[name]:
            also = line.partition("also: ")[2].partition(";")[0]
            assert {words[0], *filter(None, also.split(", "))} <= groups[name], line
    assert {line.split()[1] for line in lines} | {"plan", "emit"} == groups.keys()


def test_the_choice_is_the_first_section_after_the_start():
    headings = re.findall(r"^## (.*)$", README, re.MULTILINE)
    assert headings[:2] == ["Start", "Which should I use: conversation, board or flow?"]


def test_the_condition_of_the_grammar_can_be_read():
    (example,) = re.findall(r"^example +: +(.*)$", read_pages("package-files.md"), re.MULTILINE)
    parse_condition(example)
