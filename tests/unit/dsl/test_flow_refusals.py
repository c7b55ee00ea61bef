"""What a program that builds a flow can do wrong: told at once, with a code and a remedy."""

import functools

import pytest
from pydantic import BaseModel

from support.flows import Draft, check, undo, write
from weft.dsl.board import BoardBuilder
from weft.errors import CheckFailed, UsageError
from weft.flow import AgentStep, Workflow
from weft.spec.variables import Variable


def begun() -> Workflow[Draft]:
    return Workflow.create("Review", Draft).start_with(write)


class Needy:
    def __init__(self, needed):
        self.needed = needed

    def run(self, state): ...


class NeedyCritic(Needy):
    def system_prompt(self): ...

    def user_prompt(self, state): ...


class Plain: ...


class Talker:
    output_type = list

    def system_prompt(self): ...

    def user_prompt(self, state): ...


def critic(output):
    class Critic(AgentStep[Draft]):
        output_type = output

        def system_prompt(self): ...

        def user_prompt(self, state): ...

        def apply(self, state, response, assembly): ...

    return Critic


class Unfinished(AgentStep[Draft]):
    def system_prompt(self): ...

    def user_prompt(self, state): ...


PATH = "a path is a function"
TOPIC = Variable.model_validate({"type": "str", "source": {"type": "static", "value": "x"}})


@pytest.mark.parametrize(
    ("code", "told", "build"),
    [
        ("FLOW002", "the workflow has no name", lambda: Workflow.create(" ", Draft)),
        ("FLOW002", "the workflow has no name", lambda: Workflow.create(3, Draft)),
        ("FLOW002", "the name ' ' of a step is none", lambda: begun().then(check, name=" ")),
        ("FLOW002", "of a branch", lambda: begun().branch("kind", {}, name="")),
        ("FLOW002", "has no name", lambda: begun().then(lambda state: None)),
        ("FLOW002", "has no name", lambda: begun().then(functools.partial(check, context=None))),
        ("FLOW004", "does not begin", lambda: Workflow.create("Review", Draft).then(write)),
        ("FLOW004", "has begun already", lambda: begun().start_with(check)),
        ("FLOW004", "no fork to join", lambda: begun().join(check)),
        ("FLOW004", "no fork to join", lambda: Workflow.create("R", Draft).join(check)),
        ("FLOW004", "finally_ is called twice", lambda: begun().finally_(undo).finally_(check)),
        ("FLOW004", "nothing is done after", lambda: begun().finally_(undo).then(check)),
        (
            "FLOW004",
            "no confidence that is required",
            lambda: begun().then(check, lambda o: o.on_low_confidence(lambda p: p)),
        ),
        (
            "NAME002",
            'two agents are called "W", with other output types',
            lambda: begun().agent("W", prompt="x").agent("W", prompt="x", output_type=Draft),
        ),
        (
            "NAME002",
            "with other prompts, descriptions or models, other tools",
            lambda: begun().agent("W", prompt="x").agent("W", prompt="y", tools=[check]),
        ),
        (
            "NAME002",
            'two agents are called "Critic", with other output types',
            lambda: begun().then(critic(Draft)).then(critic(Plain), name="again"),
        ),
        ("FLOW011", "Unfinished does not define apply", lambda: begun().then(Unfinished)),
        (
            "FLOW011",
            "Unfinished does not define apply",
            lambda: begun().then(Unfinished(), name="object"),
        ),
        ("FLOW004", "on_failure has no steps", lambda: begun().on_failure(lambda p: p)),
        (
            "FLOW004",
            "on_failure has no steps",
            lambda: begun().then(check, lambda o: o.on_failure(lambda p: p)),
        ),
        (
            "FLOW034",
            "the literal text is empty",
            lambda: begun().then(check, lambda o: o.with_context(lambda c: c.from_literal(""))),
        ),
        (
            "FLOW034",
            "the literal text is empty",
            lambda: begun().then(check, lambda o: o.with_context(lambda c: c.from_literal(" "))),
        ),
        ("FLOW011", "'check' is not a step", lambda: begun().then("check")),
        ("FLOW011", "is not a step", lambda: begun().then(Plain)),
        ("FLOW011", "is not a step", lambda: begun().then(Plain(), name="plain")),
        ("FLOW011", "3 is not a step", lambda: begun().then(check, lambda o: o.compensate(3))),
        ("FLOW011", "cannot be created without arguments", lambda: begun().then(Needy)),
        ("FLOW011", "cannot be created without arguments", lambda: begun().then(NeedyCritic)),
        ("FLOW011", "takes neither", lambda: begun().then(lambda: None, name="nothing")),
        ("FLOW011", "takes neither", lambda: begun().then(lambda a, b, c: None, name="three")),
        (
            "FLOW017",
            "a path of a fork cannot end the run",
            lambda: begun().fork(lambda p: p.then(check).complete()),
        ),
        (
            "FLOW017",
            "a path of a loop cannot end the run",
            lambda: begun().repeat_until("paid", "again", lambda p: p.complete()),
        ),
        ("FLOW034", "the state is", lambda: Workflow.create("Review", dict)),
        ("FLOW034", PATH, lambda: begun().branch("kind", {"bill": "check"})),
        ("FLOW034", PATH, lambda: begun().fork(Needy, Needy)),
        ("FLOW034", PATH, lambda: begun().repeat_until("paid", "again", None)),
        ("FLOW034", PATH, lambda: begun().on_failure("tell")),
        ("FLOW034", "what configures a step", lambda: begun().then(check, 3)),
        ("FLOW034", "what configures an approval", lambda: begun().await_approval("boss", "Go?")),
        (
            "FLOW034",
            "what makes a context",
            lambda: begun().then(check, lambda o: o.with_context(3)),
        ),
        ("FLOW034", "retry: attempts: ", lambda: begun().then(check, lambda o: o.with_retry("x"))),
        ("FLOW034", "of 1 or more", lambda: begun().then(check, lambda o: o.with_retry(0))),
        ("FLOW034", "greater than 0", lambda: begun().then(check, lambda o: o.with_timeout(0))),
        (
            "FLOW034",
            "is not a collection",
            lambda: begun().then(
                check, lambda o: o.with_context(lambda c: c.from_retrieval(Plain, lambda r: r))
            ),
        ),
        (
            "FLOW034",
            "what asks a collection",
            lambda: begun().then(
                check, lambda o: o.with_context(lambda c: c.from_retrieval("Library", "dogs"))
            ),
        ),
        ("FLOW034", "topic is a field of the state", lambda: begun().variables({"topic": TOPIC})),
        ("FLOW034", "the output of Talker", lambda: begun().then(Talker)),
    ],
)
def test_mistakes_are_reported_immediately(code, told, build):
    with pytest.raises(CheckFailed) as raised:
        build()
    (finding,) = raised.value.findings
    assert finding.code == code
    assert told in finding.message
    assert f"{code} " in raised.value.__notes__[0]


def test_step_without_apply_is_refused_with_a_hint():
    with pytest.raises(CheckFailed) as raised:
        begun().then(Unfinished())
    (finding,) = raised.value.findings
    assert finding.hint == (
        "write it: a step of an agent needs system_prompt, user_prompt and apply",
    )


@pytest.mark.parametrize("tools", ["search", ["search"], [3], None, check, [lambda text: text]])
def test_tools_that_are_not_functions_are_refused(tools):
    with pytest.raises(UsageError, match="of W") as raised:
        begun().agent("W", prompt="x", tools=tools)
    assert raised.value.hint == "give a list of functions that have names: tools=[search]"


@pytest.mark.parametrize("tool", ["search", [check], 3, None, lambda text: text])
def test_tool_of_a_board_that_is_not_a_function_is_refused(tool):
    with pytest.raises(UsageError, match="of W is not a function with a name"):
        BoardBuilder("Desk").agent("W").with_tools(tool)


def test_a_function_of_c_may_be_a_step():
    class State(BaseModel):
        topic: str = ""

    Workflow.create("Review", State).start_with(max, name="greatest").build()


def test_an_agent_may_be_declared_twice_in_the_same_way():
    flow = begun()
    for _ in range(2):
        flow.agent("W", prompt="x", tools=(check,), output_type=Draft)
        flow.then(critic(str), name=f"step_{_}")
    assert [agent.agent_name for agent in flow.build().agents] == ["W", "Critic"]


@pytest.mark.parametrize(
    "use",
    [
        lambda step: begun().branch("words", {1: step}),
        lambda step: begun().branch("words", {}, otherwise=step),
        lambda step: begun().then(check, lambda item: item.on_failure(step)),
        lambda step: begun().repeat_until("words", "Loop", step),
        lambda step: begun().fork(step, step),
    ],
)
@pytest.mark.parametrize("step", [lambda state: {"words": 1}, lambda state: None])
def test_a_step_in_place_of_a_path_is_refused(use, step):
    with pytest.raises(CheckFailed, match="is used as a path, but adds no step") as caught:
        use(step)
    assert caught.value.findings[0].code == "FLOW034"
