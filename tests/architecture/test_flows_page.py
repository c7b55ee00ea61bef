"""The pages about flows: their examples work, and they are complete."""

import ast
import asyncio
import importlib
import inspect
import re
import shlex
from typing import Any

import pytest

from support.page_play import BLOCK, chapter, read_pages
from weft.adapters.python_tools.calling import Limits
from weft.cli.app import main
from weft.flow import ApprovalBuilder, ContextBuilder, ContextFormatOptions, StepOptions, Workflow
from weft.packages.reader import read_package
from weft.packages.review import refuse_errors
from weft.runtime.flow import calls, preparing, retrieval
from weft.spec.workflow import digest

PAGE = read_pages("flows.md", "flow-agents.md", "flow-failures.md")
NAMED = {name: text for name, _, text in BLOCK.findall(PAGE) if name}
FILES = {name: text for name, text in NAMED.items() if name.startswith("workflows/")}

#: The module that the files and the code of the last example speak of.
STEPS = """
from pydantic import BaseModel


class Draft(BaseModel):
    topic: str = "looms"
    text: str = ""


def polish(draft: Draft):
    return {"text": draft.text.strip()}
"""


def examples() -> dict[str, str]:
    """Return the Python of the page by the heading it stands under."""
    found: dict[str, str] = {}
    for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        heading, _, text = part.partition("\n")
        blocks = [code for name, kind, code in BLOCK.findall(text) if kind == "python" and not name]
        assert len(blocks) < 2, f"{heading} has several examples"
        found.update((heading, code) for code in blocks)
    return found


EXAMPLES = examples()


@pytest.fixture(autouse=True)
def _steps(tmp_path, monkeypatch):
    (tmp_path / "shop_steps.py").write_text(STEPS, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()


def execute(code: str, names: dict[str, Any], file: str) -> None:
    """Run an example; in an event loop only if it waits for something."""
    made = compile(code, file, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if made.co_flags & inspect.CO_COROUTINE:
        asyncio.run(asyncio.wait_for(eval(made, names), 30))
    else:
        exec(made, names)


def play(heading: str) -> dict[str, Any]:
    """Run an example as if it stood alone after the preamble."""
    names: dict[str, Any] = {"__name__": "__main__"}
    if heading != "Start":
        execute(NAMED["preamble"], names, "flows.md: preamble")
    execute(EXAMPLES[heading], names, f"flows.md: {heading}")
    return names


@pytest.mark.parametrize("heading", EXAMPLES)
def test_example_prints_the_stated_output(heading, capsys):
    play(heading)
    stated = re.findall(r"^# > (.*)$", EXAMPLES[heading], re.MULTILINE)
    assert stated
    assert capsys.readouterr().out.splitlines() == stated


def test_page_begins_with_the_cost_of_a_host_per_run():
    assert "open one host with\n[`open_flow`]" in PAGE.partition("## Start")[0]


def test_every_chapter_has_an_example():
    headings = re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    assert set(headings) - EXAMPLES.keys() == {"Commands", "Limits"}


def written(folder) -> None:
    for name, text in FILES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def test_the_commands_work(tmp_path, monkeypatch, capsys):
    written(tmp_path)
    monkeypatch.chdir(tmp_path)
    [commands] = re.findall(r"```console\n(.*?)```", chapter(PAGE, "Commands"), re.DOTALL)
    codes = [main(shlex.split(line)[1:]) for line in commands.splitlines()]
    told = capsys.readouterr()
    assert codes == [0] * 7, told.err
    assert "Polish" in told.out
    assert 'topic = "cats"' in told.out
    assert "Write about cats." in told.out
    assert "Always cite sources." in told.out


def test_files_and_code_have_the_same_digest(tmp_path):
    written(tmp_path)
    package = read_package(tmp_path / "workflows/Shop")
    refuse_errors(package)
    spec = play("The same as files")["spec"]
    assert package.spec == spec
    assert package.digest == digest(spec, {})


def methods(kind: type) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_")}


@pytest.mark.parametrize("kind", [ApprovalBuilder, ContextBuilder, StepOptions, Workflow])
def test_every_method_is_on_the_page(kind):
    inherited = [base for base in kind.__mro__ if base.__module__.startswith("weft.")]
    inside = {"declared", "nodes", "objects", "state_type", "findings"}
    wanted = {name for base in inherited for name in methods(base)} - inside
    assert {name for name in wanted if not re.search(rf"\b{name}\b", PAGE)} == set()


def test_options_of_formats_and_limits_are_on_the_page():
    quoted = set(re.findall(r"`(\w+)`", PAGE))
    assert set(ContextFormatOptions.model_fields) <= quoted
    limits = chapter(PAGE, "Limits")
    assert f"last {calls.MOST_STACK} characters" in limits
    assert f"fewer than {preparing._MOST_MESSAGES}" in limits
    assert f"| a search | {retrieval.SEARCH_SECONDS:g} seconds;" in limits
    assert f"| a call of your code | {Limits().timeout:g} seconds" in limits


def test_the_table_of_failures_has_the_rows_of_the_decision():
    decision = read_pages("decisions/0012-flows.md")
    rows = re.findall(r"^\| (\d) \|", decision, re.MULTILINE)
    assert re.findall(r"^\| (\d) \|", chapter(PAGE, "When a step fails"), re.MULTILINE) == rows
