"""Runs from start to end: real tools, a real journal, and a model that follows a script."""

import asyncio
from contextlib import closing

import pytest

from weft.adapters.python_tools.loader import PythonToolLoader
from weft.adapters.sql import SqliteStore
from weft.engine.events import Event
from weft.errors import AccessDenied, UsageError
from weft.packages.reader import read_package
from weft.packages.workspace import shipped_folder
from weft.ports.live import TextDelta
from weft.ports.model import ModelReply
from weft.ports.scope import Scope
from weft.runtime.signals import Answer, Stop, UserMessage
from weft.runtime.workflow import link
from weft.spec.workflow import WorkflowSpec
from weft.testing.hosts import host_for
from weft.testing.models import FunctionModel, ScriptedModel, call

ADA = Scope("app", "ada")
CODE = {
    "tools/shop.py": b'''
from weft import use_ui_tool


def look(order: str, context_variables) -> dict:
    """Look an order up."""
    context_variables.set("found", True)
    return {"order": order, "state": "sent"}


async def confirm(question: str) -> str:
    """Ask the user."""
    answer = await use_ui_tool("confirm", {"question": question})
    return f"the user says {answer['choice']}"
'''
}


def spec(**changes):
    derived = {"type": "bool", "source": {"type": "derived", "default": False}}
    tool = {"agent": "Helper", "file": "shop.py", "description": "d"}
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "Shop", "initial_agent": "Router"},
            "agents": [{"agent_name": "Router"}, {"agent_name": "Helper"}],
            "variables": {
                "found": derived,
                "choice": {
                    "type": "str",
                    "source": {
                        "type": "derived",
                        "triggers": [
                            {"type": "ui_response", "tool": "confirm", "response_key": "choice"}
                        ],
                    },
                },
            },
            "tools": [
                {"tool_type": "Agent_Tool", "function": "look", **tool},
                {
                    "tool_type": "UI_Tool",
                    "function": "confirm",
                    "ui": {"component": "Confirm", "mode": "inline"},
                    **tool,
                },
            ],
            "handoffs": [
                {"source_agent": "Router", "target_agent": "Helper"},
                {"source_agent": "Helper", "target_agent": "terminate", "condition": "found"},
                {"source_agent": "Helper", "target_agent": "user"},
            ],
            **changes,
        }
    )


class Ticking:
    """A clock for tests: time goes on by one with every look at it."""

    def __init__(self):
        self.time = 0
        self.ids = 0

    def now(self):
        self.time += 1
        return self.time

    def new_id(self):
        self.ids += 1
        return f"run{self.ids}"

    async def sleep_until(self, at):
        """Nobody waits: a pause is over at once, and whatever is far away never comes."""
        if at - self.time > 2000:
            await asyncio.Event().wait()
        self.time = max(self.time, at)


def host_of(model, store=None, declared=None, clock=None):
    return host_for(declared or spec(), model, code=CODE, store=store, clock=clock or Ticking())


def play(scenario):
    return asyncio.run(asyncio.wait_for(scenario(), 30))


def test_a_run_with_a_tool_and_a_handoff():
    model = ScriptedModel(
        {"Router": ["to the helper"], "Helper": [call("look", order="A1"), "It was sent."]}
    )

    async def scenario():
        async with host_of(model) as host:
            run = await host.start("Shop", scope=ADA, message="where is A1?")
            row = await host.settled(run, scope=ADA)
            state = await host.state(run, scope=ADA)
            return row, state

    row, state = play(scenario)
    assert (row.status, row.outcome, row.calls) == ("ended", "completed", 3)
    assert state.variables["found"] is True
    assert [message.text for message in state.messages][-2:] == [
        '{"order": "A1", "state": "sent"}',
        "It was sent.",
    ]


def test_a_question_to_a_person_waits_and_sets_its_variable():
    model = ScriptedModel(
        {"Router": ["on"], "Helper": [call("confirm", question="really?"), "Noted."]}
    )

    async def scenario():
        async with host_of(model) as host:
            run = await host.start("Shop", scope=ADA, message="hi")
            assert (await host.settled(run, scope=ADA)).status == "waiting"
            state = await host.state(run, scope=ADA)
            (request,) = state.requests.values()
            with pytest.raises(UsageError, match="does not wait for a message"):
                await host.deliver(run, UserMessage("x"), scope=ADA)
            await host.deliver(run, Answer(request.id, {"choice": "yes"}), scope=ADA)
            await host.settled(run, scope=ADA)
            with pytest.raises(UsageError, match="is not open"):
                await host.deliver(run, Answer(request.id, {"choice": "no"}), scope=ADA)
            return await host.state(run, scope=ADA)

    state = play(scenario)
    assert state.variables["choice"] == "yes"
    assert "the user says yes" in [message.text for message in state.messages]


def test_the_user_is_answered_and_may_stop_the_run():
    model = FunctionModel(lambda request: f"{len(request.messages)}")

    async def scenario():
        async with host_of(model) as host:
            run = await host.start("Shop", scope=ADA, message="hi")
            await host.settled(run, scope=ADA)
            await host.deliver(run, UserMessage("again"), scope=ADA)
            await host.settled(run, scope=ADA)
            await host.deliver(run, Stop(), scope=ADA)
            row = await host.settled(run, scope=ADA)
            with pytest.raises(UsageError, match="ended already"):
                await host.deliver(run, Stop(), scope=ADA)
            return row

    assert play(scenario).outcome == "cancelled"


@pytest.mark.parametrize("signal", ["x", None, Stop, {"text": "hi"}], ids=repr)
def test_invalid_signal_is_refused_with_the_known_kinds(signal):
    async def scenario():
        async with host_of(ScriptedModel(["a"])) as host:
            run = await host.start("Desk", scope=ADA, message="hi")
            before = await host.settled(run, scope=ADA)
            with pytest.raises(UsageError, match="expected a signal, got") as caught:
                await host.deliver(run, signal, scope=ADA)
            assert await host.run(run, scope=ADA) == before
            return caught.value.hint

    hint = play(scenario)
    assert all(kind in hint for kind in ("UserMessage(", "Answer(", "Stop("))


def test_object_outside_the_scope_looks_missing():
    async def scenario():
        async with host_of(FunctionModel(lambda _: "x")) as host:
            run = await host.start("Shop", scope=ADA, message="hi")
            await host.settled(run, scope=ADA)
            for scope in (Scope("app", "bob"), Scope.operator("other")):
                with pytest.raises(AccessDenied, match="there is no run"):
                    await host.state(run, scope=scope)
                with pytest.raises(AccessDenied):
                    await host.deliver(run, Stop(), scope=scope)
            assert (await host.state(run, scope=Scope.operator("app"))).run == run

    play(scenario)


def test_events_are_followed_with_the_text_as_it_is_spoken():
    script = ScriptedModel({"Router": ["one two"], "Helper": [call("look", order="A"), "done"]})

    async def slowly(request):
        await asyncio.sleep(0.02)
        return await script.reply(request)

    async def scenario():
        async with host_of(FunctionModel(slowly)) as host:
            run = await host.start("Shop", scope=ADA, message="hi")
            return [event async for event in host.events(run, scope=ADA, follow=True)]

    seen = play(scenario)
    numbers = [event.seq for event in seen if isinstance(event, Event)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert any(isinstance(item, TextDelta) for item in seen)


class Hesitating:
    """Says its first words, then waits until it may go on."""

    def __init__(self):
        self.gate = asyncio.Event()
        self.heard = []

    async def reply(self, request, on_text=None):
        self.heard.append(on_text is not None)
        if on_text:
            on_text("one ")
            on_text("two ")
        await self.gate.wait()
        return ModelReply("one two three", model=request.model)


def test_the_first_words_are_kept_for_a_follower_who_is_about_to_come():
    async def scenario():
        model = Hesitating()
        async with host_of(model) as host:
            run = await host.start("Shop", scope=ADA, message="hi", streamed=True)
            quiet = await host.start("Shop", scope=ADA, message="hi")
            await asyncio.sleep(0.01)
            following = host.events(run, scope=ADA, follow=True)
            deltas = []
            async for item in following:
                if isinstance(item, TextDelta):
                    deltas.append((item.offset, item.text))
                    if len(deltas) == 2:
                        break
            await following.aclose()
            model.gate.set()
            unwatched = await host.start("Shop", scope=ADA, message="hi", streamed=True)
            for item in (run, quiet, unwatched):
                await host.settled(item, scope=ADA)
            await asyncio.sleep(0.01)
            assert not host._followers
            return deltas, model.heard

    deltas, heard = play(scenario)
    assert deltas == [(0, "one "), (4, "two ")]
    assert heard[:2] == [True, False]


def test_run_continues_in_another_host(tmp_path):
    path = tmp_path / "journal.db"
    held = asyncio.Event()

    async def never(_):
        held.set()
        await asyncio.Event().wait()

    async def scenario():
        first = host_of(FunctionModel(never), await SqliteStore.open(path))
        run = await first.start("Shop", scope=ADA, message="hi")
        await held.wait()
        await first.close()
        model = ScriptedModel({"Router": ["on"], "Helper": ["what?"]})
        async with host_of(model, await SqliteStore.open(path)) as second:
            assert await second.recover() == [run]
            return await second.settled(run, scope=ADA)

    assert play(scenario).status == "waiting"


class BrokenModel:
    async def reply(self, *_):
        raise ValueError("broken adapter")


def broken(_request):
    raise ValueError("broken adapter")


# What a script is told to raise is meant; where else it comes from is worth knowing.
@pytest.mark.parametrize(
    ("model", "traced"),
    [
        (BrokenModel(), True),
        (FunctionModel(broken), True),
        (ScriptedModel([ValueError("broken adapter")]), False),
    ],
)
def test_a_failed_model_is_explained(model, traced, caplog):
    async def scenario():
        async with host_of(model) as host:
            run = await host.start("Shop", scope=ADA, message="hi")
            return await host.settled(run, scope=ADA)

    row = play(scenario)
    assert (row.outcome, row.reason) == (
        "failed",
        "the model of Router failed: ValueError: broken adapter",
    )
    assert bool(caplog.records) is traced


def test_many_runs_at_once():
    model = FunctionModel(lambda _: "x")

    async def scenario():
        async with host_of(model) as host:
            runs = [await host.start("Shop", scope=ADA, message=str(n)) for n in range(100)]
            rows = [await host.settled(run, scope=ADA) for run in runs]
            await asyncio.sleep(0.01)
            assert not host._worker
            return {row.status for row in rows}

    assert play(scenario) == {"waiting"}


def test_every_shipped_package_links():
    with closing(PythonToolLoader()) as loader:
        for folder in sorted(shipped_folder().iterdir()):
            package = read_package(folder)
            assert link(package.spec, package.code, loader).digest == package.digest
