"""Flows on the command line: followed, approved, looked into, drawn and repeated."""

import json
import re

import pytest

from support.cases import read_cases
from support.terminal_play import Terminal
from weft.packages.workspace import example_files

CASES = read_cases(__file__)


@pytest.fixture
def orders(workspace, monkeypatch):
    """A workspace with the flow that is shipped, and no model but the sample."""
    monkeypatch.delenv("WEFT_MODEL", raising=False)
    folder = workspace / "workflows" / "OrderProcessing"
    for name, raw in example_files("OrderProcessing").items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(raw)
    return workspace


def run(weft, *words):
    return weft("run", "OrderProcessing", "--model", "sample", *words)


def lines(result):
    return [json.loads(line) for line in result.out.splitlines()]


def told(result):
    return [line.strip() for line in result.err.splitlines()]


# -- running


def test_a_flow_is_followed_step_by_step_and_its_values_come_at_last(weft, orders):
    result = run(weft)
    assert result.code == 0
    assert 'parcel = "parcel-A-1"' in result.out.splitlines()
    assert "step" not in result.out
    said = told(result)
    for line in (
        "turn 1: step LookAtOrder",
        "branch ByPayment -> card",
        'paid_by = "card-A-1"',
        "fork Prepare: paths goods, message",
        "turn 3: step ReserveItems, path goods",
        "turn 4: step WriteMessage, by Writer, path message",
        "loop Polish: done",
        "join Prepare: goods success, message success",
        "branch IsExpensive -> false",
    ):
        assert line in said
    assert any(text.startswith("Writer (sample) says: [sample]") for text in said)
    assert said[-2].endswith("completed: the flow is complete")


def test_the_next_attempt_is_waited_for(weft, orders):
    result = run(weft, "--set", "address=harbour")
    assert result.code == 0
    said = told(result)
    at = said.index("turn 8: step Ship, attempt 2 of 3")
    assert re.fullmatch(r"retry in [01]\.\d s", said[at - 1])
    assert re.fullmatch(
        r"Ship failed, attempt 1 of 3: ConnectionError at tools/orders.py:\d+: the carrier is busy",
        said[at - 2],
    )


def test_a_flow_that_fails_says_what_was_undone_and_which_turn_to_repeat(weft, orders):
    result = run(weft, "--set", "card=declined")
    assert result.code == 1
    said = told(result)
    assert "turn 3: compensating ChargeCard (turn 2)" in said
    assert "on failure of ChargeCard -> TellSupport" in said
    assert any(text.startswith("hint:  repeat turn 2: weft replay") for text in said)
    assert 'paid_by = ""' in result.out.splitlines()


def test_a_program_gets_events_and_then_the_values(weft, orders):
    result = run(weft, "--set", "address=harbour", "--json")
    *events, last = lines(result)
    kinds = [event["event"]["kind"] for event in events]
    assert {"Branched", "Forked", "Joined", "TimerSet"} <= set(kinds)
    branched = next(
        event["event"]["data"] for event in events if event["event"]["kind"] == "Branched"
    )
    assert branched == {"source": "ByPayment", "target": "ChargeCard", "why": "case", "lane": ""}
    assert last["run"]["outcome"] == "completed"
    assert last["values"]["parcel"] == "parcel-A-1"


def test_a_flow_is_not_talked_to(weft, orders):
    said = weft("chat", "OrderProcessing")
    assert (said.code, said.out) == (2, "")
    assert "OrderProcessing is a flow and takes no messages" in said.err
    assert "weft run OrderProcessing --set NAME=VALUE" in said.err
    said = run(weft, "hello")
    assert said.code == 2
    assert "it begins with values, not with a message" in said.err


def test_failed_path_is_shown(weft, orders):
    result = run(weft, "--set", 'items=["unicorn"]')
    assert result.code == 1
    said = told(result)
    assert "path goods failed" in said
    assert "join Prepare: goods failed, message success" in said
    assert any(item.endswith("compensating ChargeCard (turn 2)") for item in said)


# -- approvals


@pytest.fixture
def asked(weft, orders, prepared):
    """A run that waits for a manager."""
    result = prepared("approval", lambda: run(weft, "--set", "amount=900"))
    assert result.code == 4
    return result


def test_an_approval_says_who_is_asked_and_how_to_answer(weft, asked):
    assert (
        "approval ReleaseOrder requested from role:manager: Send order A-1 over 900.0?" in asked.err
    )
    answer = re.search(r"answer: (weft runs answer \S+ approve --as role:manager)", asked.err)
    assert answer is not None
    shown = weft("runs", "show", "last")
    assert answer[1] in shown.out
    assert "ReleaseOrder: approval:ReleaseOrder asks role:manager" in shown.out
    assert weft("runs", "show", "last", "--json").data["run"]["requests"][0]["addressee"] == (
        "role:manager"
    )


def test_an_approval_is_given_in_one_word(weft, asked):
    result = weft("runs", "answer", "last", "approve", "--as", "role:manager")
    assert result.code == 0
    assert "me decides: approve" in told(result)
    assert 'decision = "approve"' in result.out.splitlines()


def test_a_rejection_undoes_what_was_done(weft, asked):
    result = weft(
        "runs", "answer", "last", "--json-value",
        '{"decision": "reject", "comment": "too much"}', "--as", "role:manager",
    )  # fmt: skip
    assert result.code == 1
    said = told(result)
    assert "me decides: reject (too much)" in said
    undone = [item for item in said if "compensating" in item]
    assert undone == [
        "turn 8: compensating ReserveItems (turn 3), path goods",
        "turn 9: compensating ChargeCard (turn 2)",
    ]
    assert any(text.startswith("hint:  repeat turn 7:") for text in said)


@pytest.mark.parametrize(("words", "fact"), CASES["test_only_the_options_of_an_approval_are_taken"])
def test_only_the_options_of_an_approval_are_taken(weft, asked, words, fact):
    result = weft("runs", "answer", "last", *words, "--as", "role:manager")
    assert result.code == 2
    assert fact in result.err
    assert re.search(r"hint:  answer: weft runs answer \S+ approve --as role:manager", result.err)
    assert weft("runs", "show", "last", "--json").data["run"]["status"] == "waiting"


def test_only_addressees_can_approve(weft, asked):
    result = weft("runs", "answer", "last", "approve", "--as", "role:clerk")
    assert result.code == 2
    assert "asks role:manager, not" in result.err


def test_an_approval_is_asked_for_in_the_terminal(weft, orders):
    file = orders / "workflows" / "OrderProcessing" / "flow.json"
    file.write_text(file.read_text().replace("role:manager", "user:me"))
    words = ("run", "OrderProcessing", "--model", "sample", "--set", "amount=900")
    with Terminal(*words, cwd=orders, columns=100) as terminal:
        terminal.wait_for("approval ReleaseOrder:")
        terminal.wait_for("Send order A-1 over 900.0?")
        terminal.wait_for("decision")
        terminal.type("approve")
        terminal.wait_for("comment")
        terminal.type("")
        terminal.wait_for('decision = "approve"')
        assert terminal.end() == 0


# -- looking


def test_every_event_of_a_flow_has_its_line(weft, asked):
    weft("runs", "answer", "last", "reject", "--as", "role:manager")
    said = [line.split(maxsplit=2)[2] for line in weft("runs", "tail", "last").out.splitlines()]
    parts = [re.split(r"\s+", item, maxsplit=1) for item in said]
    assert ["Branched", "branch ByPayment -> card"] in parts
    assert ["ToolCalled", "ChargeCard runs"] in parts
    assert ["ToolReturned", "ChargeCard sets paid_by, log"] in parts
    assert ["ContextFetched", "fetched context: state items, state message"] in parts
    assert ["Joined", "join Prepare: goods success, message success"] in parts
    assert ["RequestAnswered", "me decides: reject"] in parts
    assert ["TurnFailed", "ReleaseOrder failed: ReleaseOrder was rejected by me"] in parts
    assert ["TurnStarted", "turn 9: compensating ChargeCard (turn 2)"] in parts


def test_users_see_that_a_flow_works_and_not_what_it_does(weft, asked):
    seen = lines(weft("runs", "tail", "last", "--as-user"))
    kinds = {entry["event"]["kind"] for entry in seen}
    assert kinds == {"RunStarted", "TurnStarted", "TurnEnded", "RequestOpened"}
    opened = next(
        entry["event"]["data"] for entry in seen if entry["event"]["kind"] == "RequestOpened"
    )
    assert opened["payload"] is None
    begun = next(
        entry["event"]["data"] for entry in seen if entry["event"]["kind"] == "TurnStarted"
    )
    assert begun == {"agent": "LookAtOrder"}


def test_the_steps_of_a_run_are_listed_with_where_it_went(weft, asked):
    weft("runs", "answer", "last", "reject", "--as", "role:manager")
    page = weft("inspect", "last").out
    steps = page[page.index("\nSteps\n") :]
    order = [
        "1  LookAtOrder",
        "branch ByPayment -> card",
        "2  ChargeCard",
        'set paid_by = "card-A-1"',
        "fork Prepare: paths goods, message",
        "3  ReserveItems, path goods",
        "4  WriteMessage, by Writer, path message",
        "context: state items, about 2 tokens",
        "loop Polish: done",
        "join Prepare: goods success, message success",
        "7  approval ReleaseOrder",
        ": reject by me",
        "failed: Rejected: ReleaseOrder was rejected by me",
        "8  compensating ReserveItems (turn 3), path goods",
        "set reserved = []",
        "9  compensating ChargeCard (turn 2)",
        "on failure of ReleaseOrder -> TellSupport",
        "10  TellSupport",
    ]
    places = [steps.index(item) for item in order]
    assert places == sorted(places)


def test_the_stack_of_a_failure_stands_with_its_step_or_with_verbose(weft, orders):
    run(weft, "--set", "card=declined")
    stack = "in charge_card\n"
    assert stack not in weft("inspect", "last").out
    assert stack in weft("--verbose", "inspect", "last").out
    page = weft("inspect", "last@2").out
    assert stack in page
    assert "failed: ValueError: the card for order A-1 was declined" in page


def test_inspection_as_json_has_steps_and_ways(weft, asked):
    found = weft("inspect", "last", "--json").data["inspection"]
    step = found["turns"][6]["step"]
    assert (step["step"], step["kind"], step["path"]) == ("ReleaseOrder", "approval", "")
    assert [entry["outcome"] for entry in step["asked"]] == ["open"]
    assert [branch["case"] for branch in found["flow"]["branches"]] == ["card", "", "true"]
    assert found["flow"]["forks"][0]["results"] == {"goods": "success", "message": "success"}
    assert found["turns"][3]["step"]["segments"][0]["text"] == '["lamp"]'


# -- again


def test_a_run_of_a_flow_is_decided_again_as_it_was(weft, orders):
    run(weft, "--set", "address=harbour")
    assert "replay is identical" in weft("replay", "last", "--check").out


def test_a_step_is_repeated_with_other_values(weft, orders):
    run(weft, "--set", "card=declined")
    result = weft("replay", "last", "--fork", "2", "--set", "card=valid")
    assert result.code == 0
    assert 'paid_by = "card-A-1"' in result.out.splitlines()
    assert "replay is identical" in weft("replay", "last", "--check").out


def test_a_step_in_a_path_is_repeated_with_other_values(weft, orders):
    run(weft)
    result = weft("replay", "last", "--fork", "4", "--set", "order=B-2")
    assert result.code == 0
    assert 'parcel = "parcel-B-2"' in result.out.splitlines()
    assert 'paid_by = "card-A-1"' in result.out.splitlines()


def test_a_run_of_a_flow_is_shown_again(weft, asked):
    said = told(weft("replay", "last"))
    assert "branch IsExpensive -> true" in said
    assert "approval ReleaseOrder requested from role:manager: Send order A-1 over 900.0?" in said


# -- pictures


@pytest.mark.parametrize("form", ["mermaid", "ascii"])
def test_a_flow_is_drawn_in_every_form(weft, orders, form):
    result = weft("diagram", "OrderProcessing", "--format", form)
    assert result.code == 0
    assert "undo ChargeCard" in result.out
    refused = weft("diagram", "OrderProcessing", "--format", form, "--kind", "sequence")
    assert refused.code == 2
    assert "--kind graph" in refused.err
