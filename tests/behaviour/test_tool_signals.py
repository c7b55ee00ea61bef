"""What a tool may say besides a result: call again otherwise, no, and a question to a person."""

import asyncio

import pytest

from support.tool_play import Bench, context, play, tool_call
from weft.adapters.python_tools.calling import Limits
from weft.engine.events import VariableSet
from weft.errors import Refuse, RetryModel, ToolError, UsageError
from weft.runtime.tools.tool_api import use_ui_tool


class Person:
    """Answers from a list, after a while."""

    def __init__(self, *answers: object, seconds: float = 0):
        self.answers = list(answers)
        self.seconds = seconds
        self.asked: list[tuple[object, ...]] = []

    async def __call__(self, *question: object) -> object:
        self.asked.append(question)
        answer = self.answers[len(self.asked) - 1]
        await asyncio.sleep(self.seconds)
        return answer


@pytest.fixture
def bench(tmp_path):
    made = Bench(tmp_path)
    yield made
    made.loader.close()


@pytest.mark.parametrize("kind", ["def", "async def"])
@pytest.mark.parametrize("signal", [RetryModel, Refuse])
def test_signals_pass_as_they_are(bench, kind, signal):
    text = f"""
from weft.errors import Refuse, RetryModel
{kind} f(amount: int):
    raise {signal.__name__}(f"{{amount}} is too much")
"""
    with pytest.raises(signal, match="900 is too much"):
        play(bench.load(text, "f"), "f", {"amount": 900})


def test_wrong_arguments_ask_the_model_to_call_again(bench):
    tools = bench.load("def f(amount: int): ...", "f")
    with pytest.raises(RetryModel, match="amount should be a valid integer"):
        play(tools, "f", {"amount": "much"})


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_tool_reads_and_sets_variables(bench, kind):
    text = f"""
{kind} f(context_variables) -> str:
    context_variables.set("count", context_variables.get("count", 0) + 1)
    return context_variables.get("topic")
"""
    variables = context(tool="f", count=4, topic="pumps")
    assert play(bench.load(text, "f"), "f", variables=variables) == "pumps"
    assert variables.finish() == (VariableSet("count", 5, "tool:f"),)


def test_a_refused_write_fails_the_tool_with_its_reason(bench):
    text = "def f(context_variables):\n    context_variables['fixed'] = 'sand'\n"
    with pytest.raises(ToolError, match=r"^fixed comes from static and cannot be set$"):
        play(bench.load(text, "f"), "f")


def test_a_tool_knows_the_call_it_is_in(bench):
    text = """
        from weft.runtime.tools.context_variables import Context
        async def f(context: Context) -> list[str]:
            return [context.run, context.app, context.user, context.agent, context.key]
    """
    found = bench.call(text, "f")
    assert found == ["run-1", "acme", "ada", "A", "run-1:7"]


ASKING = """
    from weft.runtime.tools.tool_api import use_ui_tool

    async def f(plan: str) -> list[object]:
        first = await use_ui_tool(
            tool_id="approve",
            payload={"plan": plan},
            chat_id="c",
            workflow_name="w",
            display="inline",
        )
        second = await use_ui_tool("sign", timeout=60, otherwise={"by": "nobody"})
        return [first, second]

    def g():
        return use_ui_tool("approve")
"""


def test_questions_reach_a_person_and_answers_come_back(bench):
    person = Person({"ok": True}, {"by": "ada"})
    tools = bench.load(ASKING, "f")
    assert play(tools, "f", {"plan": "x"}, ask=person) == [{"ok": True}, {"by": "ada"}]
    assert person.asked == [
        ("approve", {"plan": "x"}, None, None),
        ("sign", None, 60, {"by": "nobody"}),
    ]


def test_a_question_may_be_handed_on_by_a_plain_function(bench):
    assert play(bench.load(ASKING, "g"), "g", ask=Person("yes")) == "yes"


def test_the_time_a_person_takes_does_not_count(tmp_path):
    bench = Bench(tmp_path, Limits(timeout=0.4, grace=0.1))
    text = """
        import asyncio
        from weft.runtime.tools.tool_api import use_ui_tool
        async def f() -> list[object]:
            await asyncio.sleep(0.05)
            both = await asyncio.gather(use_ui_tool("a"), use_ui_tool("b"))
            return [*both, await use_ui_tool("c")]
        async def g() -> None:
            await use_ui_tool("a")
            await asyncio.sleep(30)
    """
    tools = bench.load(text, "f", "g")
    assert play(tools, "f", ask=Person(1, 2, 3, seconds=0.6)) == [1, 2, 3]
    with pytest.raises(ToolError, match=r"g took longer than 0\.4 seconds"):
        play(tools, "g", ask=Person(1, seconds=0.6))
    bench.loader.close()


async def test_question_that_outlives_its_call_is_harmless(bench):
    text = """
        import asyncio
        from weft.runtime.tools.tool_api import use_ui_tool
        left = []
        async def f() -> str:
            left.append(asyncio.create_task(use_ui_tool("a")))
            await asyncio.sleep(0.01)
            return "done"
        async def answer() -> object:
            return await left[0]
    """
    tools = bench.load(text, "f", "answer")
    assert await tools.call(tool_call("f", ask=Person("late", seconds=0.1))) == "done"
    assert (await tools.call(tool_call("answer"))) == "late"


def test_a_question_that_fails_fails_the_tool(bench):
    async def broken(*question: object) -> object:
        raise ToolError("nobody is there")

    text = """
        from weft.runtime.tools.tool_api import use_ui_tool
        async def f():
            await use_ui_tool("approve")
        async def g() -> str:
            try:
                await use_ui_tool("approve")
            except Exception as error:
                return str(error)
    """
    tools = bench.load(text, "f", "g")
    with pytest.raises(ToolError, match="nobody is there"):
        play(tools, "f", ask=broken)
    assert play(tools, "g", ask=broken) == "nobody is there"


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("use_ui_tool('a', object())", "a value of type object that is not JSON"),
        ("use_ui_tool('a', timeout=0)", "the timeout of a question is a number of seconds above 0"),
        ("use_ui_tool('a', colour=1)", "unexpected keyword argument 'colour'"),
        ("asyncio.to_thread(asyncio.run, use_ui_tool('a'))", "in an event loop of the tool's own"),
    ],
)
def test_a_question_that_cannot_be_asked_fails_the_tool(bench, question, told):
    text = f"""
import asyncio
from weft.runtime.tools.tool_api import use_ui_tool
async def f():
    await {question}
"""
    with pytest.raises(ToolError, match=told):
        play(bench.load(text, "f"), "f", ask=Person("never"))


def test_asking_outside_of_a_call_is_refused():
    with pytest.raises(UsageError, match="outside of a tool call") as caught:
        asyncio.run(use_ui_tool("approve", {}))
    assert "async tool" in caught.value.hint


async def test_code_that_outlives_its_call_cannot_ask(bench):
    text = """
        import asyncio
        from weft.runtime.tools.tool_api import use_ui_tool
        late = []
        async def ask_later():
            await asyncio.sleep(0.05)
            try:
                await use_ui_tool("approve")
            except Exception as error:
                late.append(type(error).__name__)
        async def f():
            late.append(asyncio.create_task(ask_later()))
        def told() -> str:
            return str(late[-1])
    """
    tools = bench.load(text, "f", "told")
    person = Person("never")
    await tools.call(tool_call("f", ask=person))
    told = None
    while told != "UsageError":
        await asyncio.sleep(0.02)
        told = await tools.call(tool_call("told"))
    assert person.asked == []


async def test_calls_side_by_side_ask_their_own_people(bench):
    text = """
        import asyncio
        from weft.runtime.tools.tool_api import use_ui_tool
        async def f(n: int) -> object:
            await asyncio.sleep(0.01 * n)
            return await use_ui_tool("approve", n)
    """
    tools = bench.load(text, "f")
    calls = [tool_call("f", {"n": n}, ask=Person(f"answer {n}")) for n in range(4)]
    outcome = await asyncio.gather(*(tools.call(call) for call in calls))
    assert outcome == [f"answer {n}" for n in range(4)]


def test_cancelling_while_a_person_is_asked_is_a_cancellation(bench):
    async def thinking(*question: object) -> object:
        await asyncio.sleep(9)

    tools = bench.load(ASKING, "g")

    async def main() -> None:
        call = asyncio.create_task(tools.call(tool_call("g", ask=thinking)))
        await asyncio.sleep(0.05)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(main())
