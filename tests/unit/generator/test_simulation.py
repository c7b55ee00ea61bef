"""Simulated runs: they come to everything that can happen, alone, and always in the same way."""

import asyncio
import time

import pytest

from generator_mutations import planted
from support.shipped import BOARDS, FLOWS
from weft.app.scenarios import run_generated_scenarios
from weft.app.simulation import MOST_RUNS, simulate
from weft.generator.assemble import assemble
from weft.generator.compile.compiler import compile_drafts
from weft.generator.forms.form import form_plan, read_form
from weft.packages.reader import read_package
from weft.packages.workspace import EVERYWHERE, shipped_folder
from weft.spec.workflow import WorkflowSpec

#: The Generator's replies must be a plan that holds, which nobody makes up.
OTHERS = (*BOARDS, *FLOWS, *EVERYWHERE)
PACKAGES = sorted(item for item in shipped_folder().iterdir() if item.name not in OTHERS)
END = {"source_agent": "Clerk", "target_agent": "terminate"}


def declared(
    trigger=None, agents=("Clerk",), agent=None, handoffs=(END,), orchestrator=None, **parts
):
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {
                "workflow_name": "W",
                "initial_agent": "Clerk",
                **({"trigger": trigger} if trigger else {}),
                **(orchestrator or {}),
            },
            "agents": [{"agent_name": each, **(agent or {})} for each in agents],
            "handoffs": handoffs,
            **parts,
        }
    )


def variable(type_, source, **more):
    return {"type": type_, "source": source, **more}


def derived(type_, default, *triggers):
    return variable(type_, {"type": "derived", "default": default, "triggers": triggers})


def tool(function, **more):
    shared = {"agent": "Clerk", "file": "t.py", "function": function, "description": "Works."}
    return {"tool_type": "Agent_Tool", **shared, **more}


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda folder: folder.name)
def test_the_runs_of_every_shipped_conversation_come_to_everything(folder):
    package = read_package(folder)
    begun = time.process_time()
    found = simulate(package.spec, package.code)
    assert found.ok, (found.missed, found.problems)
    assert len(found.runs) <= MOST_RUNS
    assert {each.outcome for each in found.runs} == {"completed"}
    assert {agent for run in found.runs for agent in run.agents} == {
        each.agent_name for each in package.spec.agents
    }
    assert time.process_time() - begun < 4  # About half a second for the largest.


def test_it_goes_the_same_way_again_also_from_a_thread_beside_a_running_loop():
    package = read_package(shipped_folder() / "Escalation")

    async def beside():
        return await asyncio.to_thread(simulate, package.spec, package.code)

    assert simulate(package.spec, package.code) == asyncio.run(beside())


@pytest.mark.parametrize(
    ("trigger", "initiated_by"),
    [
        ({"type": "chat"}, "user"),
        ({"type": "chat"}, "system"),
        ({"type": "form_submit", "form": "Claim"}, "user"),
        ({"type": "form_submit"}, "user"),
        ({"type": "schedule", "cron": "0 8 * * 1"}, "system"),
        (
            {
                "type": "database_condition",
                "collection": "Claims",
                "condition": "amount > 100 and state == 'new' and not urgent",
            },
            "external_event",
        ),
        ({"type": "webhook"}, "external_event"),
    ],
)
def test_every_start_is_made_up(trigger, initiated_by):
    claim = {"name": "Claim", "fields": {"amount": {"type": "int"}, "why": {"type": "str"}}}
    variables = {"amount": derived("int", 0)}
    spec = declared(
        trigger, orchestrator={"initiated_by": initiated_by}, models=[claim], variables=variables
    )
    found = simulate(spec, {})
    assert found.ok, found.problems
    assert [run.outcome for run in found.runs] == ["completed"]


def test_document_that_accepts_no_value_is_reported():
    start = {"type": "database_condition", "collection": "C", "condition": "a == 1 and a == 2"}
    found = simulate(declared(start), {})
    assert "does not hold" in found.problems[0]


WORLD = b'''
async def look(context_variables) -> dict:
    """Look at everything."""
    got = context_variables.get
    assert isinstance(got("plan"), str) and isinstance(got("spent"), float), "database"
    assert isinstance(got("rate"), float) and isinstance(got("all_rates"), dict), "service"
    assert got("region") in ("eu", "us") and isinstance(got("limit"), int), "environment"
    assert isinstance(got("terms"), str) and isinstance(got("prices"), list), "file"
    if "seen" not in got("profile"):
        context_variables.set("profile", {**got("profile"), "seen": 1})
        return {"found": False}
    await context_variables.refresh("profile")
    return {"found": got("profile")["seen"] == 1}
'''


def test_everything_outside_is_made_up_and_fits():
    rates = {"type": "external", "url": "{base}/latest"}
    auth = {"type": "bearer", "secret_env": "RATES_KEY"}
    database = {"type": "database", "collection": "Customers", "search_by": "user_id"}
    entity = {"type": "entity", "collection": "Profiles", "search_by": "user_id"}
    server = {
        "name": "calc", "url": "{base}/mcp", "auth": auth, "env": {}, "allow": ["add"],
        "approval": "always",
    }  # fmt: skip
    spec = declared(
        variables={
            "base": variable("str", {"type": "environment", "env_var": "BASE", "required": True}),
            "region": variable('literal["eu", "us"]', {"type": "environment", "env_var": "REGION"}),
            "limit": variable("int", {"type": "environment", "env_var": "LIMIT"}),
            "key": variable("str", {"type": "environment", "env_var": "KEY"}, secret=True),
            "plan": variable("str", {**database, "field": "plan.name"}),
            "spent": variable("float", {**database, "field": "spent"}),
            "profile": variable("dict[str, any]", entity, writers=["look"]),
            "rate": variable(
                "float", {**rates, "service": "r", "operation": "one", "field": "a.b", "auth": auth}
            ),
            "all_rates": variable("dict[str, int]", {**rates, "service": "r", "operation": "all"}),
            "terms": variable("str", {"type": "file", "path": "terms.md", "format": "text"}),
            "prices": variable("list[int]", {"type": "file", "path": "p.json", "format": "json"}),
            "found": derived(
                "bool", False, {"type": "tool_response", "tool": "look", "response_key": "found"}
            ),
        },
        tools=[tool("look")],
        mcp_servers=[server],
        handoffs=[
            {**END, "condition": "found"},
            {"source_agent": "Clerk", "target_agent": "user", "condition": None},
        ],
        orchestrator={"workflow_dependencies": {"required_workflows": ["Before"]}},
    )
    found = simulate(spec, {"tools/t.py": WORLD})
    assert found.ok, (found.problems, found.missed)


ASKS = b'''
from weft import use_ui_tool


async def approve(what: str) -> dict:
    """Ask for approval."""
    return await use_ui_tool("approve", {"what": what})
'''


@pytest.mark.parametrize("addressee", [None, "role:boss", "group:board", "user:eve"])
def test_people_give_every_answer_that_decides(addressee):
    schema = {
        "type": "object",
        "properties": {"decision": {"enum": ["yes", "no", "later"]}},
        "required": ["decision"],
    }
    asking = tool("approve", tool_type="UI_Tool", ui={"component": "Ask", "mode": "inline"})
    asking |= {"response_schema": schema, **({"for": addressee} if addressee else {})}
    answered = {"type": "ui_response", "tool": "approve", "response_key": "decision"}
    spec = declared(
        agents=("Clerk", "Teller"),
        tools=[asking],
        variables={"decision": derived('literal["yes", "no", "later", ""]', "", answered)},
        handoffs=[
            {**END, "condition": "decision == 'yes'"},
            {"source_agent": "Clerk", "target_agent": "Teller", "condition": "decision == 'no'"},
            {"source_agent": "Clerk", "target_agent": "user"},
            {"source_agent": "Teller", "target_agent": "terminate"},
        ],
    )
    found = simulate(spec, {"tools/t.py": ASKS})
    assert found.ok, (found.problems, found.missed)
    taken = {handoff for run in found.runs for handoff in run.handoffs}
    assert "Clerk -> Teller when decision == 'no'" in taken


def test_a_question_that_is_asked_with_a_reply_is_answered_as_its_schema_says():
    schema = {
        "type": "object",
        "properties": {"decision": {"enum": ["yes", "no"]}, "tone": {"enum": ["kind"]}},
        "required": ["decision", "tone"],
    }
    asking = tool("approve", tool_type="UI_Tool", ui={"component": "Ask", "mode": "inline"})
    asking |= {"response_schema": schema, "auto_invoke": True}
    answered = {"type": "ui_response", "tool": "approve", "response_key": "decision"}
    spec = declared(
        agent={"auto_tool_mode": True},
        tools=[asking],
        variables={"decision": derived('literal["open", "yes", "no"]', "open", answered)},
        models=[{"name": "Asked", "fields": {"what": {"type": "str"}}}],
        registry=[{"agent": "Clerk", "model": "Asked"}],
        handoffs=[
            {**END, "condition": "decision == 'yes'"},
            {"source_agent": "Clerk", "target_agent": "user"},
        ],
    )
    found = simulate(spec, {"tools/t.py": ASKS})
    assert found.ok, (found.problems, found.missed)


def test_a_document_does_not_heed_a_variable_that_only_has_the_name_of_its_field():
    start = {"type": "database_condition", "collection": "C", "condition": "status == 'new'"}
    elsewhere = {"type": "environment", "env_var": "STATUS"}
    spec = declared(start, variables={"status": variable("bool", elsewhere)})
    found = simulate(spec, {})
    assert found.ok, found.problems


NEEDY = b'''
from weft import Refuse


def act(context_variables, n: int) -> dict:
    """Need an address."""
    if not (context_variables.get("address") and context_variables.get("other_address")):
        raise ValueError("ADDRESS is not set")
    if n % 2:
        raise Refuse("not today")
    return {}
'''


def needy(source):
    acted = {"type": "tool_call", "tool": "act"}
    return declared(
        tools=[tool("act")],
        variables={
            "done": derived("bool", False, acted),
            "address": variable("optional[str]", source),
            "other_address": variable("optional[str]", source),
        },
        handoffs=[{**END, "condition": "done"}, {"source_agent": "Clerk", "target_agent": "user"}],
    )


@pytest.mark.parametrize(
    "source", [{"type": "static", "value": None}, {"type": "file", "path": "x"}]
)
def test_tool_that_refuses_made_up_values_does_not_refuse_the_package(source):
    """G11: stand-ins take the place of code that validates what it is given."""
    found = simulate(needy(source), {"tools/t.py": NEEDY})
    assert found.ok, (found.problems, found.missed)


def test_messages_of_people_are_shown_too():
    heard = {"type": "user_text", "match": {"contains": "goodbye"}}
    spec = declared(
        variables={"over": derived("bool", False, heard)},
        handoffs=[{**END, "condition": "over"}, {"source_agent": "Clerk", "target_agent": "user"}],
    )
    assert simulate(spec, {}).ok


def test_a_time_that_must_pass_passes():
    late = {"type": "timer_expired", "after_seconds": 7200}
    spec = declared(
        variables={"late": derived("bool", False, late)},
        handoffs=[{**END, "condition": "late"}, {"source_agent": "Clerk", "target_agent": "user"}],
        orchestrator={"max_turns": 500},
    )
    found = simulate(spec, {})
    assert found.ok, (found.problems, found.missed)


@pytest.mark.parametrize(
    "code",
    [
        b"import no_such_library\n\ndef act() -> str: ...\n",
        b"def act(x: str = open('canary', 'w')) -> str: ...\n",
        b"open('canary', 'w')\n\ndef act() -> str:\n    open('canary', 'w')\n    return ''\n",
        b"import asyncio\n\nasync def act() -> str:\n    await asyncio.Event().wait()\n",
        b"def act(",
    ],
)
def test_code_is_not_executed(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    acted = {"type": "tool_call", "tool": "act"}
    spec = declared(
        tools=[tool("act")],
        variables={"done": derived("bool", False, acted)},
        handoffs=[{**END, "condition": "done"}, {"source_agent": "Clerk", "target_agent": "user"}],
    )
    assert simulate(spec, {"tools/t.py": code}).ok
    assert not [*tmp_path.iterdir()]


def test_run_without_an_end_is_reported():
    spec = declared(handoffs=[{"source_agent": "Clerk", "target_agent": "Clerk"}])
    found = simulate(spec, {})
    assert found.problems
    assert not found.ok


def test_stand_ins_return_what_variables_are_set_from():
    brought = {"type": "tool_response", "tool": "act", "response_key": "state.of.it"}
    spec = declared(
        agents=("Clerk", "Boss"),
        tools=[tool("act")],
        variables={"state": derived('literal["", "good", "bad"]', "", brought)},
        handoffs=[
            {**END, "condition": "state == 'good'"},
            {"source_agent": "Clerk", "target_agent": "Boss", "condition": "state == 'bad'"},
            {"source_agent": "Clerk", "target_agent": "user"},
            {"source_agent": "Boss", "target_agent": "terminate"},
        ],
    )
    code = b'def act() -> dict:\n    return {"state": {"of": {"it": "good"}}}\n'
    found = simulate(spec, {"tools/t.py": code})
    assert found.ok, found.missed


def test_boards_and_flows_are_not_simulated():
    for name in (*BOARDS, *FLOWS):
        package = read_package(shipped_folder() / name)
        assert simulate(package.spec, package.code).problems


#: Their states follow each other over several agents, which only an exploration sees.
FAR = ("Hierarchical", "CustomerSupportRouter")
NEAR = [item for item in PACKAGES if item.name not in FAR]


@pytest.mark.parametrize("folder", NEAR, ids=lambda folder: folder.name)
def test_a_workflow_that_is_too_large_to_be_explored_is_led_from_agent_to_agent(
    folder, monkeypatch
):
    monkeypatch.setattr("weft.check.explore.ways.STATE_LIMIT", 1)
    package = read_package(folder)
    found = simulate(package.spec, package.code)
    assert found.missed == ()
    assert found.problems == ()


# Scenarios of a plan, with stand-ins --------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "old", "new", "differs"),
    [
        # The code of record_intake decides in the first turn; whom a tool asks, no code decides.
        ("clinic", "outcome: completed", "outcome: failed", False),
        ("clinic", "    - SummaryAgent\n", "", False),
        ("clinic", "ask_nurse: role:nurse", "ask_nurse: role:doctor", True),
        # The code of book_payment decides in the last turn.
        ("invoice", "outcome: completed", "outcome: failed", False),
        ("invoice", "    - InvoiceChecker\n", "", True),
        ("invoice", "    - BookingAgent\n", "    - BookingAgent\n    - BookingAgent\n", False),
    ],
)
def test_only_what_follows_a_call_rests_on_its_code(name, old, new, differs):
    (draft, *_) = assemble(*planted.good(name)).drafts
    code = {path: text.encode() for path, text in draft.code.items()}
    path, text = next(iter(draft.tests.items()))
    assert old in text
    (made,) = run_generated_scenarios(draft.spec, code, {path: text.replace(old, new)})
    assert bool(made.differences) is differs, made
    assert bool(made.rests_on) is not differs


def test_fallback_behind_conditions_needs_no_run():
    """It applies when nothing was decided; stand-ins always decide. All 40 runs looked for it."""
    steps = """
  - {name: Ask, by: agent, task: Ask what the refund is for., outcomes: {done: Boss}}
  - {name: Boss, by: person, who: "role:boss", outcomes: {agreed: end}}
"""
    text = f"workflow: Desk\ndescription: Refunds.\nsteps:{steps}"
    (draft,) = compile_drafts(form_plan(read_form("form.yaml", text)))
    found = simulate(draft.spec, {path: text.encode() for path, text in draft.code.items()})
    assert found.ok, found.missed
    assert len(found.runs) == 1
