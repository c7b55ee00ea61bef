"""The architecture page: names exist, steps are called in its order, diagrams are correct."""

import asyncio
import importlib
import re
import shutil
import sys
import threading
import tomllib
from pathlib import Path
from types import FunctionType

import pytest

from support.mermaid_play import read_by_mermaid
from weft.app.hosts import LOCAL, open_host
from weft.engine.reduce import pending
from weft.packages.workspace import shipped_folder
from weft.testing.models import ScriptedModel, call

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"

#: A numbered step and everything it says; names of functions stand in backticks.
STEP = re.compile(r"^(\d+)\. (.*?)(?=^\d+\. |^## |^\*\*|\Z)", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"`(weft(?:\.\w+)+)`")


def steps():
    text = PAGE.read_text(encoding="utf-8")
    return [(int(number), NAME.findall(said)) for number, said in STEP.findall(text)]


def find(name):
    """Return what a dotted name means, be it in a module or in a class."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise AssertionError(name)


@pytest.fixture(scope="module")
def called(tmp_path_factory):
    """The functions of Weft in the order in which one run calls them."""
    workspace = tmp_path_factory.mktemp("workspace")
    shutil.copytree(shipped_folder() / "HelloWorld", workspace / "workflows" / "HelloWorld")
    order = []

    def note(frame, event, _):
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith("weft."):
            order.append(f"{module}.{frame.f_code.co_qualname}")

    async def turn():
        script = ScriptedModel(
            {"GreeterAgent": [call("greet", name="Ada", language="English"), "GOODBYE"]}
        )
        async with await open_host(workspace, person=script.reply) as host:
            run = await host.start("HelloWorld", scope=LOCAL, message="hi", model="you")
            row = await host.settled(run, scope=LOCAL)
            async for _ in host.events(run, scope=LOCAL):
                pass
            workflow = await host.workflow(run, scope=LOCAL)
            state = await host.state(run, scope=LOCAL, at=row.seq)
            list(pending(workflow.compiled, state))
            return row

    sys.setprofile(note)
    threading.setprofile(note)  # Packages are read in one.
    try:
        row = asyncio.run(asyncio.wait_for(turn(), 30))
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert row.outcome == "completed", row.reason
    return order


def test_steps_are_numbered():
    assert [number for number, _ in steps()] == list(range(1, len(steps()) + 1))
    assert len(steps()) > 20


@pytest.mark.parametrize("name", sorted(set(NAME.findall(PAGE.read_text(encoding="utf-8")))))
def test_every_name_on_the_page_exists(name):
    assert find(name) is not None


def test_functions_of_a_turn_are_called_in_the_order_of_the_page(called):
    at = 0
    for number, names in steps():
        functions = [name for name in names if isinstance(find(name), FunctionType)]
        for name in functions:
            assert name in called[at:], f"step {number}: {name} is not called after the step before"
        at = called.index(functions[0], at)


def diagrams():
    return re.findall(r"```mermaid\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_three_diagrams_can_be_drawn():
    assert [read.error for read in read_by_mermaid(diagrams())] == [None] * 3


def test_the_diagram_of_layers_is_what_import_contracts_enforce():
    project = tomllib.loads((PAGE.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    contract = project["tool"]["importlinter"]["contracts"][0]
    enforced = [set(layer.split(" | ")) for layer in contract["layers"] if layer != "__main__"]
    labels = re.findall(r'\w+\["([^"]+)"\]', diagrams()[0])
    drawn = [set(label.partition(":")[0].split(", ")) for label in labels]
    assert [layer for layer in drawn if layer != {"pure"}] == enforced
