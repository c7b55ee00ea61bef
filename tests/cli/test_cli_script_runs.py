"""Runs of a script on the command line: looked at without its code, and continued only with it."""

import json
import sys

import pytest
from pydantic import BaseModel

import weft as api
from weft.flow import Workflow


class Expense(BaseModel):
    euros: float = 10
    decision: str = ""
    log: str = ""


def paying(*, undoes=False):
    def submit(state: Expense):
        return {"log": "submitted"}

    def withdraw(state: Expense):
        return {"log": "withdrawn"}

    flow = (
        Workflow.create("Paying", Expense)
        .start_with(submit, lambda step: step.compensate(withdraw))
        .await_approval("manager", lambda item: item.text("Pay {euros}?").into("decision"))
    )
    return flow.compensate_on_cancel() if undoes else flow


def write_flow(folder):
    """Write a package with a flow of one function."""
    (folder / "tools").mkdir(parents=True)
    (folder / "tools" / "steps.py").write_text("def greet(state):\n    return {'log': 'hello'}\n")
    work = {"kind": "function", "function": "tools.steps:greet"}
    flow = {"steps": [{"kind": "step", "name": "greet", "work": work}]}
    log = {"type": "str", "source": {"type": "derived", "default": ""}}
    files = {
        "orchestrator": {"workflow_name": folder.name},
        "agents": {"agents": []},
        "context_variables": {"definitions": {"log": log}},
        "flow": flow,
    }
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))


@pytest.fixture
def waiting(workspace):
    """A run of a script that waits for a manager, in the journal of the workspace."""
    result = api.run(paying(), Expense(), workspace=workspace)
    assert result.outcome is None
    return result.run


def test_a_run_of_a_script_can_be_looked_at(weft, waiting):
    assert "Pay 10.0?" in weft("runs", "show", waiting).out
    shown = weft("runs", "show", waiting, "--json").data["run"]["requests"][0]
    assert shown["addressee"] == "role:manager"
    assert "approval approval_1 requested from role:manager" in weft("runs", "tail", waiting).out
    assert "submitted" in weft("inspect", waiting).out
    assert weft("inspect", f"{waiting}@1").code == 0
    assert "replay is identical" in weft("replay", waiting, "--check").out
    assert "step submit" in weft("replay", waiting).err


def test_it_is_cancelled_without_its_code(weft, waiting):
    result = weft("runs", "cancel", waiting)
    assert (result.code, result.out) == (0, f"run {waiting} was stopped: stopped by me\n")


def test_compensation_needs_the_code(weft, workspace):
    run = api.run(paying(undoes=True), Expense(), workspace=workspace).run
    refused = weft("runs", "cancel", run)
    assert refused.code == 1
    assert f"stopping run {run} undoes its steps (compensate_on_cancel)" in refused.err
    assert "not loaded here" in refused.err
    assert "waiting" in weft("runs", "list").out


@pytest.mark.parametrize(
    "words", [("answer", "approve", "--as", "role:manager"), ("resume",)], ids=lambda item: item[0]
)
def test_going_on_says_once_where_the_code_is(weft, waiting, words):
    refused = weft("runs", words[0], waiting, *words[1:])
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.count("LINK004") == 2  # With the command that explains it.
    assert "and 1 more" not in refused.err
    assert "open_flow(flow, journal=FILE)" in refused.err
    assert "host.recover()" in refused.err
    assert "host.deliver(...)" in refused.err


def test_a_module_next_to_the_script_is_named_once(weft, shell, write, workspace, monkeypatch):
    write(
        workspace / "scripts",
        "expense_module.py",
        "from weft.flow import Workflow\n"
        "from pydantic import BaseModel\n"
        "class Bill(BaseModel):\n    log: str = ''\n"
        "def submit(state: Bill): return {'log': 'submitted'}\n"
        "def pay(state: Bill): return {'log': 'paid'}\n"
        "FLOW = (Workflow.create('Bills', Bill).start_with(submit)\n"
        "    .await_approval('manager', lambda it: it.text('Pay?')).then(pay))\n",
    )
    with monkeypatch.context() as patched:
        patched.syspath_prepend(workspace / "scripts")
        import expense_module  # pyright: ignore[reportMissingImports]

        run = api.run(expense_module.FLOW, expense_module.Bill(), workspace=workspace).run
        patched.delitem(sys.modules, "expense_module")
    assert "submitted" in shell("inspect", run, cwd=workspace).out
    refused = shell("runs", "answer", run, "approve", "--as", "role:manager", cwd=workspace)
    assert refused.err.count("No module named 'expense_module'") == 2  # The fact, and the summary.
    assert "PYTHONPATH=FOLDER weft" in refused.err
    found = shell(
        "runs", "answer", run, "approve", "--as", "role:manager",
        cwd=workspace, env={"PYTHONPATH": str(workspace / "scripts")},
    )  # fmt: skip
    assert found.code == 0
    assert 'log = "paid"' in found.out


def test_a_flow_without_agents_names_no_model(weft, workspace):
    folder = workspace / "workflows" / "Plain"
    write_flow(folder)
    result = weft("run", "Plain")
    assert result.code == 0
    assert "model" not in result.err


def test_check_warns_of_a_module_that_is_nowhere(weft, workspace):
    folder = workspace / "workflows" / "Plain"
    write_flow(folder)
    flow = folder / "flow.json"
    flow.write_text(flow.read_text().replace("tools.steps:greet", "no_such_module:greet"))
    (folder / "tools" / "steps.py").unlink()
    result = weft("check", "Plain")
    assert result.code == 0
    assert "CODE002" in result.out
    assert "install no_such_module where it runs" in result.out
