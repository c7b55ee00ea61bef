"""The pages about boards: their examples work, and they are complete."""

import ast
import asyncio
import inspect
import re
import shlex
from types import CodeType
from typing import Any, get_args

import pytest

import weft.board
from support.page_play import BLOCK, chapter, read_pages, sections
from weft.board import Board
from weft.cli.app import main
from weft.engine.events.kinds import MissedReason
from weft.packages.reader import read_package
from weft.packages.review import refuse_errors
from weft.spec.board import HookName, Visibility
from weft.spec.providers import FilterConfig, Provider, TagFilter
from weft.spec.workflow import WorkflowSpec

PAGE = read_pages("board.md", "board-subscriptions.md", "board-context.md")
NAMED = {name: text for name, _, text in BLOCK.findall(PAGE) if name}
PREAMBLE = NAMED["preamble"]
FILES = {name: text for name, text in NAMED.items() if name.startswith("workflows/")}


def examples() -> dict[str, str]:
    """Return the Python of the page by the heading it stands under."""
    found: dict[str, str] = {}
    for part in re.split(r"^##+ ", PAGE, flags=re.MULTILINE)[1:]:
        heading, _, text = part.partition("\n")
        blocks = [code for name, kind, code in BLOCK.findall(text) if kind == "python" and not name]
        assert len(blocks) < 2, f"{heading} has several examples"
        found.update((heading, code) for code in blocks)
    return found


EXAMPLES = examples()


async def execute(code: str, names: dict[str, Any], file: str) -> None:
    made: CodeType = compile(code, file, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    waits = eval(made, names)
    if inspect.isawaitable(waits):
        await waits


async def play(heading: str) -> dict[str, Any]:
    """Run an example as if it stood alone after the preamble."""
    names: dict[str, Any] = {"__name__": "__main__"}
    if heading != "Start":
        await execute(PREAMBLE, names, "board.md: preamble")
    try:
        await asyncio.wait_for(execute(EXAMPLES[heading], names, f"board.md: {heading}"), 30)
    finally:
        await names["board"].close()
    return names


@pytest.mark.parametrize("heading", EXAMPLES)
def test_example_prints_the_stated_output(heading, capsys):
    asyncio.run(play(heading))
    stated = re.findall(r"^# > (.*)$", EXAMPLES[heading], re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == stated
    assert stated or heading == "The same as files"


def test_every_option_has_an_example():
    options = inspect.signature(Board().agent("a").consumes).parameters
    assert {option for option in options if option != "types"} <= EXAMPLES.keys()


def written(folder) -> None:
    for name, text in FILES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def test_files_and_code_declare_the_same_board(tmp_path):
    written(tmp_path)
    package = read_package(tmp_path / "workflows/Shop")
    refuse_errors(package)
    spec: WorkflowSpec = asyncio.run(play("The same as files"))["spec"]
    assert package.spec.board == spec.board
    assert package.spec.agents == spec.agents


def test_the_commands_work(tmp_path, monkeypatch, capsys):
    written(tmp_path)
    monkeypatch.chdir(tmp_path)
    [commands] = re.findall(r"```console\n(.*?)```", chapter(PAGE, "Commands"), re.DOTALL)
    codes = [main(shlex.split(line)[1:]) for line in commands.splitlines()]
    told = capsys.readouterr()
    assert codes == [0] * 5, told.err
    assert "Parcel" in told.out


def kinds(union: object) -> dict[str, type]:
    members = get_args(get_args(union)[0])
    return {member.model_fields["kind"].default: member for member in members}


def rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("| ")]


def quoted(text: str) -> set[str]:
    return set(re.findall(r"`(\w+)[`(]", text))


def test_every_provider_and_policy_is_in_its_table():
    assert kinds(Provider).keys() <= quoted("".join(rows(chapter(PAGE, "Context"))))
    policies = {kind.__name__ for kind in kinds(Visibility).values()}
    assert policies == quoted("".join(rows(chapter(PAGE, "Visibility"))[1:])) & policies


def test_every_hook_and_reason_is_on_the_page():
    hooks = [re.findall(r"`(\w+)\(", row)[0] for row in rows(chapter(PAGE, "Components"))[1:]]
    assert set(hooks) == set(get_args(HookName))
    assert set(get_args(MissedReason)) <= quoted(chapter(PAGE, "Running"))


def test_options_of_filters_and_publications_are_on_the_page():
    text = sections(chapter(PAGE, "Artifacts"))[""]
    assert {*FilterConfig.model_fields, *TagFilter.model_fields} <= quoted(text)
    options = inspect.signature(Board().agent("a").publishes).parameters
    shown = {re.findall(r"`(\w+)`", row)[0] for row in rows(chapter(PAGE, "Publishing"))[1:]}
    assert {option for option in options if option != "types"} == shown


def test_every_public_name_and_method_is_on_the_page():
    unsaid = {"AgentBuilder", "AgentInfo", "Application", "ApplicationResult", "BoardReader"}
    unsaid |= {"ContextProvider", "Publication", "Span", "Envelope"}
    names = set(weft.board.__all__) - unsaid
    assert {name for name in names if not re.search(rf"\b{name}\b", PAGE)} == set()
    own = {name for name in vars(Board) if not name.startswith("_")} - {"name", "scope", "host"}
    own |= {name for name in vars(weft.board.AgentBuilder) if not name.startswith("_")}
    own -= {"contents", "declared", "declared_agent", "type_name"}
    assert {name for name in own if not re.search(rf"\b{name}\b", PAGE)} == set()
