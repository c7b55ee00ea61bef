"""Scenarios run in memory as their files say, and a difference is told at its place in the file."""

import asyncio
import shutil
import textwrap
from pathlib import Path

import pytest
import yaml

from support.boundary_play import declared, derived
from weft.app.scenarios import run_scenario
from weft.packages.reader import read_package
from weft.packages.scenarios import read_scenario, read_scenarios
from weft.packages.workspace import EVERYWHERE, shipped_folder
from weft.packages.writer import write_package
from weft.testing.network import no_network

EXAMPLES = Path(__file__).parents[2] / "examples" / "starts" / "workflows"
SHIPPED = sorted(each.name for each in shipped_folder().iterdir() if each.name not in EVERYWHERE)

CODE = b'''
import socket
from weft import use_ui_tool

async def decide(what: str, context_variables) -> dict:
    """Ask a nurse."""
    context_variables.set("note", what)
    return await use_ui_tool("decide", {"what": what}, timeout=600)

def pay(amount: float) -> dict:
    """Pay over the network."""
    socket.create_connection(("bank.example", 443), timeout=1)
    return {"paid": amount}
'''
DECISION = {
    "type": "object",
    "properties": {"decision": {"enum": ["yes", "no"]}},
    "required": ["decision"],
    "additionalProperties": False,
}
DESK = declared(
    {"agent_name": "Clerk"},
    orchestrator={"workflow_name": "Desk", "initial_agent": "Clerk"},
    handoffs=[
        {"source_agent": "Clerk", "target_agent": "terminate", "condition": "decision == 'yes'"},
        {"source_agent": "Clerk", "target_agent": "user"},
    ],
    variables={
        "tier": {
            "type": "str",
            "source": {
                "type": "database", "collection": "Customers", "search_by": "user_id",
                "field": "plan.name", "default": "none",
            },
        },
        "rate": {
            "type": "float",
            "source": {
                "type": "external", "service": "rates", "operation": "get",
                "url": "https://rates.example/now", "field": "rate",
            },
        },
        "rules": {"type": "str", "source": {"type": "file", "path": "rules.txt"}},
        "city": {
            "type": "str",
            "source": {"type": "environment", "env_var": "DESK_CITY", "default": "Rome"},
        },
        "note": derived("str", ""),
        "decision": derived(
            "str", "open", {"type": "ui_response", "tool": "decide", "response_key": "decision"}
        ),
        "late": derived("bool", False, {"type": "timer_expired", "after_seconds": 3600}),
    },
    exposure={"Clerk": ["tier", "rate", "rules", "city", "note", "decision", "late"]},
    tools=[
        {
            "tool_type": "UI_Tool", "agent": "Clerk", "file": "desk.py", "function": "decide",
            "description": "Asks.", "ui": {"component": "Decide", "mode": "inline"},
            "response_schema": DECISION, "for": "role:nurse",
        },
        {
            "tool_type": "Agent_Tool", "agent": "Clerk", "file": "desk.py", "function": "pay",
            "description": "Pays.",
        },
    ],
)  # fmt: skip


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workspace") / "workflows" / "Desk"
    write_package(folder, DESK, {"tools/desk.py": CODE})
    (folder / "rules.txt").write_text("Be kind.")
    return read_package(folder)


def play(package, text):
    """Run a scenario; return its findings in short: line, message, and the cause."""
    file = read_scenario(package, "tests/case.yaml", textwrap.dedent(text).encode())
    assert [each.message for each in file.errors] == []
    with no_network():
        result = asyncio.run(run_scenario(package, file))
    return [(each.place.line, each.message, *each.cause) for each in result.findings.values()]


@pytest.mark.parametrize("name", SHIPPED)
def test_scenarios_of_a_shipped_package_pass(name):
    package = read_package(shipped_folder() / name)
    files = read_scenarios(package)
    assert files
    with no_network():
        results = [asyncio.run(run_scenario(package, file)) for file in files]
    assert [(result.name, result.findings) for result in results if result.findings] == []


def test_documents_services_files_and_the_environment_are_those_of_the_scenario(desk):
    text = """
        user: ada
        message: hello
        documents:
          Customers: [{user_id: ada, plan: {name: gold}}, {user_id: bob, plan: {name: basic}}]
        values: {rate: 1.5, city: Oslo}
        replies: {Clerk: [Hello]}
        expect: {variables: {tier: gold, rate: 1.5, rules: Be kind., city: Oslo, late: false}}
    """
    assert play(desk, text) == []
    assert play(desk, text.replace(", city: Oslo}", "}").replace("Oslo", "Rome")) == []


def test_what_is_not_given_is_made_up_or_missing(desk):
    [(_, _, _, got)] = play(desk, "{message: hi, expect: {variables: {tier: none, rate: text}}}")
    assert isinstance(yaml.safe_load(got)["got"], float)


def test_wrong_person_is_refused_and_the_right_one_decides(desk):
    text = """
        message: hello
        replies:
          Clerk: [[Asking, {decide: {what: Red flag}}], Done]
        steps:
          - {answer: decide, value: {decision: "yes"}, refused: true}
          - {answer: decide, value: {decision: "yes"}, as: role:clerk, refused: true}
          - {answer: decide, value: {decision: maybe}, as: role:nurse, refused: true}
          - {answer: decide, value: {decision: "yes"}, as: role:nurse}
        expect:
          requests: {decide: role:nurse}
          variables: {decision: "yes", note: Red flag}
          shown: [asking, done]
          never_shown: [red flag]
          outcome: completed
    """
    assert play(desk, text) == []
    assert play(desk, text.replace("role:clerk", "role:nurse")) == [
        (7, "this was accepted, and must be refused")
    ]
    [(line, message, hint)] = play(desk, text.replace('"yes"}, refused: true', '"yes"}', 1))
    assert (line, hint) == (6, "answer it as role:nurse")
    assert message.startswith("this was refused: question")


def test_answer_that_is_left_out_is_made_up_and_fits(desk):
    text = """
        message: hello
        replies: {Clerk: [[{decide: {what: x}}], Done]}
        steps: [{answer: decide, as: role:nurse}]
        expect: {requests: {decide: role:nurse}, shown: [Done]}
    """
    assert play(desk, text) == []


def test_time_passes_when_the_scenario_says(desk):
    text = """
        message: hello
        replies: {Clerk: [[{decide: {what: x}}], Nobody answered]}
        steps:
          - wait: 599
          - wait: 1
          - wait: 3000
        expect: {route: [Clerk], variables: {decision: open, late: true}, outcome: waiting}
    """
    assert play(desk, text) == []
    assert play(
        desk,
        text.replace("- wait: 1\n", "- {answer: decide, as: role:nurse}\n").replace(
            "wait: 599", "wait: 600"
        ),
    ) == [(6, "the run does not wait for decide", "it waits for a message")]


def test_request_is_closed_and_run_is_stopped(desk):
    text = """
        message: hello
        replies: {Clerk: [[{decide: {what: x}}], Nobody answered]}
        steps:
          - {cancel: decide, as: role:nurse}
          - stop: now
        expect: {outcome: cancelled}
    """
    assert play(desk, text) == []
    [(line, message, expected, got, on_the_way)] = play(desk, text.replace("stop: now", "say: bye"))
    assert (line, message, expected) == (7, "the outcome differs", "expected: cancelled")
    assert "the script has no line left for Clerk" in got
    assert on_the_way == "in the run: no answer in time"


def test_results_in_place_of_calls(desk):
    text = """
        message: hello
        tools: {pay: [{paid: 1.0}, {paid: 2.0}]}
        replies:
          Clerk: [[{pay: {amount: 9.0}}], [{pay: {amount: 9.0}}, {pay: {amount: 9.0}}], Paid]
        expect: {shown: [Paid]}
    """
    assert play(desk, text) == []
    [(line, message, *cause)] = play(
        desk,
        text.replace("tools: {pay: [{paid: 1.0}, {paid: 2.0}]}", "").replace(
            "expect: {", "expect: {variables: {note: x}, "
        ),
    )
    assert (line, message) == (6, "note has another value")
    assert "a test tried to connect to bank.example" in cause[-1]


def test_a_model_fails_or_its_replies_are_made_up(desk):
    failing = "{message: hi, replies: {Clerk: [null]}, expect: {outcome: failed}}"
    assert play(desk, failing) == []
    [(_, message, *cause)] = play(desk, failing.replace("failed", "waiting"))
    assert message == "the outcome differs"
    assert cause[1].endswith("the model fails, as the script says")
    assert play(desk, "{message: hi, replies: sample}") == []


def test_second_case_of_a_user_starts_clean(desk):
    text = """
        user: ada
        message: hello
        replies: {Clerk: [[{decide: {what: first}}], Done]}
        steps: [{answer: decide, value: {decision: "yes"}, as: role:nurse}]
        expect: {outcome: completed}
        then:
          message: hello again
          replies: {Clerk: [Hello]}
          expect: {variables: {note: "", decision: open}}
          then:
            user: bob
            message: I am new
            replies: {Clerk: [Hello]}
            expect: {variables: {note: first}}
    """
    assert play(desk, text) == [(15, "note has another value", "expected: first", "got: ")]


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("route: [Clerk]", "route: []", (5, "the route differs", "expected: ", "got: Clerk")),
        ("Hello there]", "Hello there, More]", (3, "1 replies were not used")),
        ("shown: [HELLO]", "shown: [Bye]", (6, "the user was not shown this", "expected: Bye")),
        ("never_shown: [hi, Clerk]", "never_shown: [there]", (7, "the user was shown this")),
        ("requests: {}", "requests: {decide: user}", (8, "the requests differ")),
        ("outcome: waiting", "outcome: completed", (9, "the outcome differs")),
        ("message: hi", "input: {a: 1}", (2, "the run does not start: Desk is started by chat")),
    ],
)
def test_difference_is_a_finding_at_its_place(desk, old, new, found):
    text = """
        message: hi
        replies: {Clerk: [Hello there]}
        expect:
          route: [Clerk]
          shown: [HELLO]
          never_shown: [hi, Clerk]
          requests: {}
          outcome: waiting
    """
    assert play(desk, text) == []
    [told] = play(desk, text.replace(old, new))
    line, message, *cause = found
    assert told[0] == line
    assert told[1].startswith(message)
    assert told[2 : 2 + len(cause)] == tuple(cause)


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("LeaveRequest", "{employee: Ada, days: 2}"),
        ("OrderIntake", "{order: 17}"),
        ("StockAlert", "{product: lamp, stock: 3}"),
    ],
)
def test_a_form_a_webhook_and_a_document_start_a_run(name, start):
    package = read_package(EXAMPLES / name)
    assert play(package, f"input: {start}") == []
    [(_, message, *_)] = play(package, "input: {stock: 9, days: none}") or [(1, "")]
    assert message.startswith("the run does not start") == (name != "OrderIntake")


def test_package_that_cannot_be_linked_and_scenario_that_hangs_are_differences(
    desk, tmp_path, monkeypatch
):
    copy = tmp_path / "Desk"
    shutil.copytree(desk.folder, copy)
    tool = copy / "tools" / "desk.py"
    tool.write_text("import nothing_of_this_name\n" + tool.read_text())
    [(line, message)] = play(read_package(copy), "message: hi")
    assert (line, "nothing_of_this_name" in message) == (1, True)
    tool.write_text(
        CODE.decode().replace(
            '    """Ask a nurse."""', "    import asyncio; await asyncio.sleep(9)"
        )
    )
    monkeypatch.setattr("weft.app.scenarios.SECONDS", 0.2)
    hanging = "{message: hi, replies: {Clerk: [[{decide: {what: x}}]]}}"
    assert play(read_package(copy), hanging) == [(1, "the scenario did not end within 0.2 s")]
