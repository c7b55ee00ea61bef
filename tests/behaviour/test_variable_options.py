"""What authors may declare about variables has the effect it promises, in runs of a host."""

import asyncio

import pytest
from pydantic_core import to_json

from support.run_play import ADA, Seconds, play, read
from weft.adapters.memory import MemoryStore
from weft.app.installation import linking_of
from weft.engine.events import RequestOpened, ToolFailed, ToolReturned, VariableSet
from weft.errors import UsageError
from weft.inspect.run import inspect_run
from weft.ports.external import ExternalPorts
from weft.runtime.signals import Answer, UserMessage
from weft.spec.workflow import WorkflowSpec
from weft.testing.hosts import host_for
from weft.testing.models import FunctionModel, ScriptedModel, call

CODE = {
    "tools/desk.py": b'''
from weft import use_ui_tool


def get(name: str, context_variables) -> dict:
    """Read a variable."""
    return {"found": context_variables.get(name)}


def put(name: str, value: str, context_variables) -> str:
    """Set a variable."""
    context_variables.set(name, value)
    return "done"


def leak(context_variables) -> int:
    """Write the key where it does not belong."""
    context_variables.set("seen", f"it is {context_variables['key']}!")
    return len(context_variables["key"])


async def ask() -> dict:
    """Ask a person."""
    return await use_ui_tool("ask")
'''
}


def derived(type_="str", default=None, *triggers, **more):
    source = {"type": "derived", "default": default, "triggers": list(triggers)}
    return {"type": type_, "source": source, **more}


def environment(type_, env_var, **more):
    return {"type": type_, "source": {"type": "environment", "env_var": env_var, **more}}


def declared(variables, *agents, **rest):
    """Declare agents that all have the same tools, and an end after the first."""
    names = agents or ("A",)
    common = {"agent": names[0], "file": "desk.py"}
    shown = {"component": "Ask", "mode": "inline"}
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "W", "initial_agent": names[0]},
            "agents": [{"agent_name": name} for name in names],
            "variables": variables,
            "tools": [
                {"tool_type": "Agent_Tool", "function": "get", **common},
                {"tool_type": "Agent_Tool", "function": "put", **common},
                {"tool_type": "Agent_Tool", "function": "leak", **common},
                {"tool_type": "UI_Tool", "function": "ask", "ui": shown, **common},
            ],
            "handoffs": [{"source_agent": names[0], "target_agent": "terminate"}],
            **rest,
        }
    )


def prompts(model):
    """Return what each call was told before the conversation."""
    return [(request.agent, request.messages[0]["content"]) for request in model.requests]


def start_of(played):
    return played.events[0].data.values


def test_a_static_value_is_seen_and_cannot_be_set():
    tier = {"type": "str", "source": {"type": "static", "value": "gold"}}
    model = ScriptedModel([call("put", name="tier", value="lead"), "Done."])
    played = play(declared({"tier": tier}, exposure={"A": ["tier"]}), model, code=CODE)
    assert played.at(ToolFailed).data.error == "tier comes from static and cannot be set"
    assert prompts(model) == [("A", "[CONTEXT VARIABLES]\ntier: gold")] * 2


def test_the_description_of_a_variable_stands_beside_its_name():
    told = {"type": "str", "source": {"type": "static", "value": "gold"}}
    variables = {
        "tier": {**told, "description": "What the customer\n  pays for."},
        "city": {**told, "description": " "},
    }
    model = ScriptedModel(["Done."])
    play(declared(variables, exposure={"A": ["tier", "city", "user_id"]}), model, code=CODE)
    listed = "tier (What the customer pays for.): gold\ncity: gold\nuser_id: ada"
    assert prompts(model) == [("A", f"[CONTEXT VARIABLES]\n{listed}")]


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        ("bool", "yes", True),
        ("bool", "ON", True),
        ("bool", "0", False),
        ("int", "12", 12),
        ("float", "0.5", 0.5),
        ("str", "12", "12"),
    ],
)
def test_the_text_of_env_var_becomes_what_the_type_says(type_, text, value):
    variables = {"v": environment(type_, "DESK_V")}
    played = play(
        declared(variables), ScriptedModel(["Done."]), code=CODE, environment={"DESK_V": text}
    )
    found = start_of(played)["v"]
    assert (found, type(found)) == (value, type(value))


def test_the_environment_gives_its_default_or_the_run_does_not_begin():
    usual = {"v": environment("int", "DESK_V", default=3)}
    played = play(declared(usual), ScriptedModel(["Done."]), code=CODE)
    assert start_of(played) == {"v": 3}
    for settings, told in (
        ({}, "v needs the environment variable DESK_V"),
        ({"DESK_V": "many"}, "the environment variable DESK_V is invalid for v"),
    ):
        needed = {"v": environment("int", "DESK_V", required=True)}
        with pytest.raises(UsageError, match=told):
            play(declared(needed), ScriptedModel([]), code=CODE, environment=settings)


def host_of(spec, model, store=None, **options):
    return host_for(spec, model, code=CODE, store=store, clock=Seconds(), **options)


def in_production(spec, model, environment):
    outside = ExternalPorts(environment=environment)
    linking = linking_of({"ENVIRONMENT": "production"})

    async def scenario():
        host = host_of(spec, model, environment=environment, outside=outside, linking=linking)
        async with host:
            run = await host.start("W", scope=ADA, message="hello")
            await host.settled(run, scope=ADA)
            return await read(host, run)

    return asyncio.run(asyncio.wait_for(scenario(), 30))


def test_production_hides_the_environment_from_prompts_tools_and_events():
    variables = {"region": environment("str", "DESK_REGION", default="north", required=True)}
    model = ScriptedModel([call("get", name="region"), "Done."])
    spec = declared(variables, exposure={"A": ["region"]})
    played = in_production(spec, model, {"DESK_REGION": "south"})
    assert start_of(played) == {}
    assert played.at(ToolReturned).data.value == {"found": None}
    assert prompts(model) == [("A", "hello")] * 2, "not even as null"
    assert b"south" not in to_json(played.events)
    assert "region" not in {
        variable.name for variable in inspect_run(*vars(played).values()).variables
    }


@pytest.mark.parametrize("production", [False, True])
def test_a_secret_reaches_the_tool_but_neither_events_nor_models(production):
    key = {**environment("str", "DESK_KEY", required=True), "secret": True}
    model = ScriptedModel([call("get", name="key"), call("leak"), "Done."])
    spec = declared({"key": key, "seen": derived()}, exposure={"A": ["key"]})
    settings = {"DESK_KEY": "s3cret-key"}
    if production:
        played = in_production(spec, model, settings)
    else:
        played = play(spec, model, code=CODE, environment=settings)
    assert start_of(played)["key"] is None
    assert played.at(ToolReturned).data.value == {"found": "(secret)"}
    assert played.at(VariableSet).data.value == "it is (secret)!"
    assert played.at(ToolReturned, 1).data.value == 10, "the tool had the secret itself"
    assert b"s3cret" not in to_json(played.events)
    assert not any("s3cret" in str(request) for request in model.requests)
    with pytest.raises(UsageError, match="key is secret and cannot be given"):
        play(spec, ScriptedModel([]), code=CODE, values={"key": "x"}, environment=settings)


@pytest.mark.parametrize(
    ("read", "type_", "refused"),
    [
        ('context_variables.get("token")', "str", True),
        ('context_variables["token"]', "str", True),
        ('context_variables.get("token", "none")', "str", False),
        ('context_variables.get("token")', "optional[str]", False),
        ('context_variables.get("other")', "str", False),
    ],
)
def test_run_without_a_secret_that_a_tool_reads_is_refused(read, type_, refused):
    code = {"tools/t.py": f"def get(context_variables):\n    return {read}\n".encode()}
    token = {**environment(type_, "RATING_TOKEN"), "secret": True}
    tool = {"tool_type": "Agent_Tool", "agent": "A", "file": "t.py", "function": "get"}
    spec = declared({"token": token}, tools=[tool])
    if not refused:
        play(spec, ScriptedModel(["Done."]), code=code)
        return
    with pytest.raises(UsageError, match="RATING_TOKEN is not set") as caught:
        play(spec, ScriptedModel([]), code=code)
    assert str(caught.value).startswith("tools/t.py reads the secret token")
    assert "set RATING_TOKEN" in caught.value.hint


def test_only_readers_see_a_variable():
    variables = {"pay": derived("int", 7, readers=["B"])}
    to_b = [{"source_agent": "A", "target_agent": "B"}]
    model = ScriptedModel({"A": [call("get", name="pay"), "on"], "B": ["Done."]})
    exposure = {"A": ["pay"], "B": ["pay"]}
    played = play(declared(variables, "A", "B", exposure=exposure, handoffs=to_b), model, code=CODE)
    assert played.at(ToolReturned).data.value == {"found": None}
    listed = [(agent, "pay: 7" in text) for agent, text in prompts(model)]
    assert listed == [("A", False), ("A", False), ("B", True)]


@pytest.mark.parametrize(
    ("writers", "told"),
    [(["put"], None), (["A"], None), (["get", "B"], "put is not among the writers of plan")],
)
def test_only_writers_set_a_variable(writers, told):
    variables = {"plan": derived(writers=writers)}
    model = ScriptedModel([call("put", name="plan", value="new"), "Done."])
    played = play(declared(variables, "A", "B"), model, code=CODE)
    if told:
        assert played.at(ToolFailed).data.error == told
    else:
        assert played.at(VariableSet).data == VariableSet("plan", "new", "tool:put")


def test_an_agent_or_a_tool_named_trigger_has_no_right_of_a_trigger():
    code = {"tools/desk.py": CODE["tools/desk.py"].replace(b"def put(", b"def trigger(")}
    named = {"agent": "trigger", "file": "desk.py", "function": "trigger"}
    tools = [{"tool_type": "Agent_Tool", **named}]
    spec = declared({"plan": derived(writers=["B"])}, "trigger", "B", tools=tools)
    model = ScriptedModel([call("trigger", name="plan", value="new"), "Done."])
    played = play(spec, model, code=code)
    assert played.at(ToolFailed).data.error == "trigger is not among the writers of plan"


def test_exposed_variables_stand_in_the_prompt_of_their_agent_before_each_reply():
    variables = {"plan": derived("str", "old"), "other": derived("str", "x")}
    model = ScriptedModel({"A": [call("put", name="plan", value="new"), "on"], "B": ["Done."]})
    to_b = [{"source_agent": "A", "target_agent": "B"}]
    play(declared(variables, "A", "B", exposure={"A": ["plan"]}, handoffs=to_b), model, code=CODE)
    assert prompts(model) == [
        ("A", "[CONTEXT VARIABLES]\nplan: old"),
        ("A", "[CONTEXT VARIABLES]\nplan: new"),
        ("B", "hello"),
    ]


@pytest.mark.parametrize(
    "trigger",
    [
        {"type": "agent_text", "agent": "A", "match": {"contains": "done"}},
        {"type": "user_text", "match": {"equals": "HELLO"}},
        {"type": "tool_call", "tool": "get"},
        {"type": "tool_response", "tool": "get"},
        {"type": "handoff", "source_agent": "A", "target_agent": "terminate"},
        {"type": "agent_turn_count", "agent": "A", "count": 1},
    ],
    ids=lambda entry: entry["type"],
)
def test_a_trigger_of_any_type_sets_the_value_it_names(trigger):
    variables = {"v": derived("str", "before", {**trigger, "value": "after"})}
    model = ScriptedModel([call("get", name="v"), "Done."])
    played = play(declared(variables), model, code=CODE)
    assert [event.data for event in played.events if isinstance(event.data, VariableSet)] == [
        VariableSet("v", "after", "trigger")
    ]


def test_a_null_that_is_written_down_is_a_value():
    said = {"type": "agent_text", "agent": "A", "match": {"contains": "done"}, "value": None}
    variables = {"v": derived("optional[str]", "held", said)}
    played = play(declared(variables), ScriptedModel(["Done."]), code=CODE)
    assert played.at(VariableSet).data == VariableSet("v", None, "trigger")


def test_nothing_is_set_where_the_event_has_nothing():
    taken = {"type": "tool_response", "tool": "get", "response_key": "missing"}
    variables = {"v": derived("optional[str]", "held", taken)}
    played = play(declared(variables), ScriptedModel([call("get", name="v"), "Done."]), code=CODE)
    assert not [event for event in played.events if isinstance(event.data, VariableSet)]


def test_an_answer_sets_what_a_rule_before_the_next_turn_sees():
    trigger = {"type": "ui_response", "tool": "ask", "response_key": "plan.kind"}
    rules = [
        {"source_agent": "A", "target_agent": "B"},
        {
            "source_agent": "B",
            "target_agent": "C",
            "condition": "kind == 'large'",
            "condition_scope": "pre",
        },
        {"source_agent": "C", "target_agent": "terminate", "condition": "kind == 'large'"},
    ]
    model = ScriptedModel({"A": [call("ask"), "on"], "B": ["never"], "C": ["Done."]})

    async def answer(host, run):
        (request,) = await host.requests(scope=ADA, run=run)
        await host.deliver(run, Answer(request.id, {"plan": {"kind": "large"}}), scope=ADA)

    spec = declared({"kind": derived("str", "small", trigger)}, "A", "B", "C", handoffs=rules)
    played = play(spec, model, code=CODE, after=answer)
    assert [request.agent for request in model.requests] == ["A", "A", "C"]
    assert played.events[-1].data.outcome == "completed"


async def test_a_run_keeps_its_thread_and_the_package_it_began_with_in_another_host():
    journal = MemoryStore()
    journal.close = lambda: asyncio.sleep(0)  # It is used by the next host.
    to_user = [{"source_agent": "A", "target_agent": "user"}]

    def host_with(prompt, model):
        sections = [{"id": "role", "content": prompt}]
        agents = [{"agent_name": "A", "prompt_sections": sections}]
        return host_of(declared({}, agents=agents, handoffs=to_user), model, journal)

    async with host_with("Old.", FunctionModel(lambda _: "First.")) as host:
        run = await host.start("W", scope=ADA, message="hello")
        await host.settled(run, scope=ADA)
    model = FunctionModel(lambda _: "Second.")
    async with host_with("New.", model) as host:
        await host.deliver(run, UserMessage("and?"), scope=ADA)
        await host.settled(run, scope=ADA)
        other = await host.start("W", scope=ADA, message="hello", run="other")
        await host.settled(other, scope=ADA)
    (going_on, new) = [
        [(message["role"], message["content"]) for message in request.messages]
        for request in model.requests
    ]
    assert going_on == [
        ("system", "Old."),
        ("user", "hello"),
        ("assistant", "First."),
        ("user", "and?"),
    ]
    assert new == [("system", "New."), ("user", "hello")]


def test_a_run_can_be_seen_as_it_was_after_any_event():
    variables = {"plan": derived("str", "old")}
    model = ScriptedModel([call("put", name="plan", value="new"), "Done."])
    seen = []

    async def look(host, run):
        last = (await host.run(run, scope=ADA)).seq
        for at in range(1, last + 1):
            state = await host.state(run, scope=ADA, at=at)
            seen.append((state.seq, state.status, state.variables["plan"]))

    played = play(declared(variables), model, code=CODE, after=look)
    changed, end = played.at(VariableSet).seq, played.events[-1].seq
    asked = played.at(RequestOpened).seq  # for the first message, which is right behind it
    statuses = {asked: "waiting", end: "ended"}
    assert seen == [
        (at, statuses.get(at, "running"), "new" if at >= changed else "old")
        for at in range(1, end + 1)
    ]
