"""What tools find in their hands: a digest any package can bind, typed values, a model to ask."""

import asyncio

import pytest
from pydantic import BaseModel

from support.run_play import ADA, Seconds
from support.source_play import MortalJournal, declared, derived, desk, play, tell, variable
from weft.adapters.models.recorded import RecordedModel
from weft.engine.events import ModelConsulted, ToolFailed, ToolReturned, Usage
from weft.errors import LinkError, ModelError, RunError, StoreError
from weft.packages.reader import read_package
from weft.packages.review import review_package
from weft.packages.writer import write_package
from weft.ports.model import ModelReply
from weft.runtime.workflow import cache_seed
from weft.testing.hosts import host_for
from weft.testing.models import FunctionModel, ScriptedModel, call

DIGEST = {"tool_type": "Agent_Tool", "agent": "A", "file": "weft", "function": "context_summary"}
VARIABLES = {
    "tier": {**variable("str", "static", value="gold"), "description": "What is paid."},
    "items": derived("list[int]", list(range(100))),
    "note": derived("str", "x" * 81),
    "short": derived("str", "x" * 80),
    "empty": derived("optional[int]"),
    "other": {**derived("str", "B alone"), "readers": ["B"]},
    "key": {**variable("str", "environment", env_var="SHOP_KEY"), "secret": True},
}


def test_context_summary_is_a_digest_of_what_the_agent_may_read():
    spec = declared(VARIABLES, agents=("A", "B"), tools=[DIGEST], exposure={})
    to_end = declared({}).handoffs
    model = ScriptedModel([call("context_summary"), "Done."])
    told = play(
        spec.model_copy(update={"handoffs": to_end}), model, environment={"SHOP_KEY": "s3cret-key"}
    )
    found = told.of(ToolReturned)[0].value
    assert list(found) == ["tier", "items", "note", "short", "empty"]
    facts = {"value": "gold", "type": "str", "source": "static"}
    assert found["tier"] == {**facts, "description": "What is paid."}
    assert found["empty"] == {"value": None, "type": "optional[int]", "source": "derived"}
    assert found["short"]["value"] == "x" * 80
    assert found["note"]["value"] == "x" * 77 + "..."
    assert found["items"]["value"].startswith("[0, 1, 2")
    assert len(found["items"]["value"]) == 80
    (offered,) = model.requests[0].tools
    assert offered.name == "context_summary"
    assert "summary of the variables" in offered.description
    assert offered.parameters["properties"] == {}
    told.expect_same_again()


def test_context_summary_shows_what_its_own_agent_has_just_set():
    code = desk(
        "def put(value: str, context_variables) -> str:\n"
        '    """Set."""\n    context_variables.set("tier", value)\n    return "done"'
    )
    spec = declared({"tier": derived("str", "gold")}, tools=["put", DIGEST])
    model = ScriptedModel([call("put", value="lead"), call("context_summary"), "Done."])
    told = play(spec, model, code=code)
    assert told.of(ToolReturned)[1].value["tier"]["value"] == "lead"


def reviewed(tmp_path, **changes):
    """Return the findings about a package that binds a tool of Weft's."""
    spec = declared(
        {"tier": derived("str", "gold")},
        tools=[{**DIGEST, **changes}],
        exposure={},
        agents=("Helper",),
    )
    tool = spec.tools[0].model_copy(update={"agent": "Helper"})
    spec = spec.model_copy(update={"tools": (tool,)})
    folder = tmp_path / "W"
    tmp_path.mkdir()
    write_package(folder, spec, {})
    found = review_package(read_package(folder))
    return {
        finding.code: finding
        for finding in found
        if finding.code.startswith(("TOOL", "CODE", "NAME003"))
    }


def test_the_checker_knows_the_tools_that_come_with_weft(tmp_path):
    assert reviewed(tmp_path / "right") == {}, "and all that the agent may read is read"
    (wrong,) = reviewed(tmp_path / "wrong", function="context_sumary").values()
    assert (wrong.code, wrong.severity) == ("CODE002", "error")
    assert wrong.message == "Weft has no built-in tool context_sumary"
    assert wrong.hint == ('did you mean "context_summary"?',)
    (other,) = reviewed(tmp_path / "other", function="launch").values()
    assert other.hint == ("use context_summary, or a Python file under tools/",)


def test_a_tool_that_does_not_come_with_weft_is_not_linked():
    with pytest.raises(LinkError) as refused:
        play(declared({}, tools=[{**DIGEST, "function": "context_sumary"}]), ScriptedModel([]))
    (finding,) = refused.value.findings
    assert finding.code == "CODE002"
    assert finding.hint == ("did you mean context_summary?",)


GETTERS = desk(
    '''
def get(how: str, name: str, context_variables) -> object:
    """Read a typed value."""
    return getattr(context_variables, f"get_{how}")(name)
''',
    '''
def usual(how: str, context_variables) -> object:
    """Read a value that is not there."""
    given = {"str": "a", "int": 1, "float": 0.5, "bool": True, "list": [1], "dict": {"a": 1}}
    getter = getattr(context_variables, f"get_{how}")
    return [getter("empty"), getter("empty", given[how])]
''',
)
TYPED = {
    "str": ("text", "words"),
    "int": ("number", 3),
    "float": ("share", 0.25),
    "bool": ("flag", False),
    "list": ("items", [1, 2]),
    "dict": ("map", {"a": 1}),
}
HELD = {
    "text": derived("str", "words"),
    "number": derived("int", 3),
    "share": derived("float", 0.25),
    "flag": derived("bool", False),
    "items": derived("list[int]", [1, 2]),
    "map": derived("dict[str, int]", {"a": 1}),
    "empty": derived("optional[any]"),
}


@pytest.mark.parametrize("how", TYPED)
def test_typed_getters_give_their_type_a_default_or_an_error(how):
    name, value = TYPED[how]
    wrong = "text" if how != "str" else "number"
    script = [call("get", how=how, name=name), call("usual", how=how)]
    script += [call("get", how=how, name=wrong), "Done."]
    told = play(declared(HELD, tools=["get", "usual"]), ScriptedModel(script), code=GETTERS)
    got, usual = (event.value for event in told.of(ToolReturned))
    assert got == value
    assert (
        usual[0] == {"str": "", "int": 0, "float": 0.0, "bool": False, "list": [], "dict": {}}[how]
    )
    assert usual[1] != usual[0]
    assert told.of(ToolFailed)[0].error.startswith(f"{wrong} is ")


def test_true_is_not_a_number():
    script = [call("get", how="int", name="flag"), call("get", how="float", name="number"), "Done."]
    told = play(declared(HELD, tools=["get"]), ScriptedModel(script), code=GETTERS)
    assert told.of(ToolFailed)[0].error == "flag is bool, not int"
    assert told.of(ToolReturned)[0].value == 3.0


ASKING = desk(
    '''
import pydantic


class Verdict(pydantic.BaseModel):
    good: bool
    why: str


async def judge(context_variables) -> object:
    """Ask the model twice."""
    text = await context_variables.ask("Say yes.")
    found = await context_variables.ask("Is it good?", output=Verdict)
    return [text, found.good, found.why, context_variables.cache_seed]
'''
)


class Verdict(BaseModel):
    good: bool
    why: str


TOOK = Usage(input_tokens=10, output_tokens=2, cost_usd=0.5)


def asked(answers, **options):
    """Play a run whose tool asks the model; return it with all the model was asked."""

    def reply(request):
        if request.question:
            line = answers.pop(0)
            return line if isinstance(line, Exception) else ModelReply(line, usage=TOOK, model="m")
        return "Done." if request.messages[-1]["role"] == "tool" else call("judge")

    model = FunctionModel(reply)
    told = play(declared({}, tools=["judge"]), model, code=ASKING, **options)
    told.expect_same_again()
    return told, [request for request in model.requests if request.question]


def test_a_tool_asks_the_model_for_text_and_for_a_model_of_its_own():
    told, requests = asked(["yes", '{"good": true, "why": "so"}'])
    seed = cache_seed("app", "W", told.run)
    assert told.of(ToolReturned)[0].value == ["yes", True, "so", seed]
    assert [request.messages[-1]["content"] for request in requests] == ["Say yes.", "Is it good?"]
    assert requests[0].output is None
    assert requests[1].output.schema == Verdict.model_json_schema()
    consulted = told.of(ModelConsulted)
    assert [(item.text, item.usage, item.model) for item in consulted] == [
        ("yes", TOOK, "m"),
        ('{"good": true, "why": "so"}', TOOK, "m"),
    ]
    (called,) = {item.call for item in consulted}
    assert called == told.of(ToolReturned)[0].id
    assert told.row.calls == 4
    assert (told.row.input_tokens, told.row.cost_usd) == (20, 1.0)


def test_a_recorded_run_answers_what_its_tools_ask():
    told, _ = asked(["yes", '{"good": true, "why": "so"}'])
    model = RecordedModel(told.run, told.events)
    again = play(declared({}, tools=["judge"]), model, code=ASKING)
    assert again.of(ToolReturned)[0].value == told.of(ToolReturned)[0].value
    assert {event.answerer for event in again.of(ModelConsulted)} == {"replay"}


def test_a_reply_that_does_not_fit_is_asked_for_again_and_then_given_up():
    told, requests = asked(["yes", "no idea", '```json\n{"good": false, "why": "-"}\n```'])
    assert told.of(ToolReturned)[0].value[1:3] == [False, "-"]
    assert "Your last reply was invalid" in requests[-1].messages[-1]["content"]
    told, requests = asked(["yes", *["no idea"] * 3])
    assert told.of(ToolFailed)[0].error.startswith("the model gave no valid Verdict")
    assert len(requests) == 4
    told, _ = asked([ModelError("it is asleep")])
    assert told.of(ToolFailed)[0].error == "the model gave no answer: it is asleep"


@pytest.mark.parametrize("fatal", range(2, 6))
def test_after_a_crash_what_the_model_replied_is_given_again_and_the_seed_is_the_same(fatal):
    journal, asked_for, results = MortalJournal(fatal), [], []

    def reply(request):
        if request.question:
            asked_for.append(request.messages[-1]["content"])
            return "yes" if request.output is None else '{"good": true, "why": "so"}'
        return "Done." if request.messages[-1]["role"] == "tool" else call("judge")

    async def live(first):
        spec, model = declared({}, tools=["judge"]), FunctionModel(reply)
        async with host_for(spec, model, code=ASKING, clock=Seconds(), store=journal) as host:
            if first:
                await host.start("W", scope=ADA, message="hello", run="r")
            else:
                await host.resume("r", scope=ADA, take_over=True)
            results.append(await tell(host, "r"))

    with pytest.raises((StoreError, RunError)):
        asyncio.run(live(first=True))
    events = asyncio.run(journal.read(ADA, "r"))
    recorded = [event.data for event in events if isinstance(event.data, ModelConsulted)]
    before = len(asked_for)
    journal.fatal = 0
    asyncio.run(live(first=False))
    (told,) = results
    told.expect_same_again()
    assert told.of(ToolReturned)[0].value == ["yes", True, "so", cache_seed("app", "W", "r")]
    assert len(asked_for) - before == 2 - len(recorded), "what is recorded is not asked again"
    assert len(told.of(ModelConsulted)) == 2
