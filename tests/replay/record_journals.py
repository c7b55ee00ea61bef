"""Records runs for ever; in the folder tests: python -m replay.record_journals NAME ...

It writes a folder beside itself for each name, and refuses to write over one that is there. Runs
are made by a real host with real tools; models follow scripts, and time is moved by hand.
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

from pydantic_core import to_json

from crash.crash_workflows import PLAYS, Play
from replay.folding import expectation, lines
from support.outside_play import CODE, PlayDocuments, outside, outside_spec, say, talk
from weft.adapters.models.sample import SampleModel
from weft.adapters.models.sample_moves import steering_of
from weft.app.simulation import SAMPLE_MESSAGE, sample_answer
from weft.check.subject import Subject
from weft.engine.compile import compile_workflow
from weft.engine.events import Event, Usage
from weft.engine.state import State
from weft.errors import ModelError
from weft.packages.reader import Package, read_package
from weft.packages.workspace import shipped_folder
from weft.ports.model import Model, ModelReply
from weft.ports.scope import Scope
from weft.runtime.host import Host
from weft.runtime.signals import Answer, Stop, UserMessage
from weft.spec.workflow import WorkflowSpec
from weft.testing.clock import ManualClock
from weft.testing.hosts import host_for
from weft.testing.models import FunctionModel, ScriptedModel, call

HERE = Path(__file__).parent
ADA = Scope("shop", "ada")


def host_of(play: Play) -> tuple[Host, ManualClock]:
    """Return a host for a workflow of the crash tests."""
    clock = ManualClock()
    return host_for(play.spec, FunctionModel(play.say), code=play.code, clock=clock), clock


async def played(host: Host, clock: ManualClock, play: Play, run: str) -> None:
    """Answer what can be answered and let time pass until a run has ended."""
    while (await host.settled(run, scope=ADA)).status != "ended":
        for request in await host.requests(scope=ADA, run=run):
            shown: Any = request.payload
            asked = shown["ask"] if isinstance(shown, dict) else ""
            if asked in play.answers:
                await host.deliver(run, Answer(request.id, play.answers[asked]), scope=ADA)
                break
        else:
            await clock.advance(1)
            await asyncio.sleep(0.01)


async def crash_play(name: str, run: str) -> tuple[Host, str]:
    """One of the workflows that the crash tests kill."""
    play = PLAYS[name]()
    host, clock = host_of(play)
    workflow = play.spec.orchestrator.workflow_name
    await host.start(workflow, scope=ADA, message="hi", run=run)
    await played(host, clock, play, run)
    return host, run


async def fork() -> tuple[Host, str]:
    """A fork that takes the second turn of a run anew, with an edit and another model."""
    play = PLAYS["handover"]()
    host, clock = host_of(play)
    run = await host.start("Handover", scope=ADA, message="hi", run="recorded-parent")
    await played(host, clock, play, run)
    child = await host.fork(run, scope=ADA, turn=2, values={"refunded": 0}, model="other")
    await played(host, clock, play, child)
    return host, child


def _subject(package: Package) -> Subject:
    code = {path: raw.decode() for path, raw in package.code.items()}
    return Subject(package.spec, code=code)


async def router() -> tuple[Host, str]:
    """A shipped package with the sample model and a person who answers anything."""
    package = read_package(shipped_folder() / "CustomerSupportRouter")
    compiled = compile_workflow(package.spec)
    steering, random = steering_of(_subject(package)), Random(3)
    model = SampleModel(3, steering)
    host = host_for(package.spec, model, code=package.code, clock=ManualClock())
    name = package.spec.orchestrator.workflow_name
    run = await host.start(name, scope=ADA, message=SAMPLE_MESSAGE, run="recorded-router")
    while (await host.settled(run, scope=ADA)).status != "ended":
        for request in (await host.state(run, scope=ADA)).requests.values():
            if request.kind == "chat":
                await host.deliver(run, UserMessage(SAMPLE_MESSAGE), scope=ADA)
            else:
                value = sample_answer(compiled, steering, request.tool or "", random)
                await host.deliver(run, Answer(request.id, value), scope=ADA)
    return host, run


TROUBLED_CODE = b'''
import asyncio

from weft import Refuse, RetryModel, tool


def no(why: str) -> str:
    """Decline."""
    raise Refuse(why)


def again(amount: int) -> str:
    """Want another amount."""
    raise RetryModel(f"{amount} is too much")


def fail() -> str:
    """Fail."""
    raise ValueError("no such order")


@tool(timeout=0.05)
async def hang() -> str:
    """Take too long."""
    await asyncio.sleep(60)


def look() -> dict:
    """Return all that JSON has."""
    return {"a": [1, 1.5, 1e300, -0.0, True, None], "\\u00e9": {"\\U0001f600": "\\x00\\u2028"}}
'''


def troubled_spec() -> WorkflowSpec:
    """Two agents that are in trouble."""
    tools = ("no", "again", "fail", "hang", "look")
    steps = [{"from": "new", "to": "open"}, {"from": "open", "to": "closed"}]
    says = {"type": "agent_text", "agent": "Clerk"}
    triggers = [
        {**says, "match": {"equals": name}, "value": name} for name in ("open", "closed", "new")
    ]
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {
                "workflow_name": "Troubled",
                "initial_agent": "Clerk",
                "initial_message": "Begin.",
                "initial_message_to_user": "Welcome.",
                "startup_mode": "AgentDriven",
            },
            "agents": [{"agent_name": "Clerk", "model": "declared"}],
            "variables": {
                "stage": {
                    "type": "str",
                    "source": {
                        "type": "derived",
                        "default": "new",
                        "triggers": triggers,
                        "transitions": steps,
                    },
                },
                "limit": {"type": "float", "source": {"type": "derived"}},
            },
            "tools": [
                {"tool_type": "Agent_Tool", "agent": "Clerk", "file": "work.py", "function": tool}
                for tool in tools
            ],
            "handoffs": [{"source_agent": "Clerk", "target_agent": "user"}],
        }
    )


def troubled_host(model: Model) -> Host:
    """Return a host for the two agents in trouble."""
    code = {"tools/work.py": TROUBLED_CODE}
    return host_for(troubled_spec(), model, code=code, clock=ManualClock())


async def stopped() -> tuple[Host, str]:
    """Tools that fail in every way, a value that is refused, and a stop after the turn."""
    priced = ModelReply("open", usage=Usage(120, 30, 100, 0.00125), model="priced-1")
    held = asyncio.Event()
    script = ScriptedModel(
        [
            [call("no", why="closed today"), call("again", amount=900)],
            [call("fail"), call("hang"), call("look")],
            "closed",
            priced,
            "closed",
            "new",
            "What else?",
        ]
    )

    async def reply(request: Any) -> Any:
        if script.left == 1:
            await held.wait()
        return await script.reply(request)

    host = troubled_host(FunctionModel(reply))
    values = {"limit": 12.5}
    run = await host.start("Troubled", scope=ADA, values=values, model="m", run="recorded-stopped")
    for text in ("one", "two", "three", "caf\u00e9 \U0001f600"):
        await host.settled(run, scope=ADA)
        await host.deliver(run, UserMessage(text), scope=ADA)
    await host.deliver(run, Stop("after_turn"), scope=ADA)
    held.set()
    await host.settled(run, scope=ADA)
    return host, run


async def failed() -> tuple[Host, str]:
    """A model that gives no answer."""
    host = troubled_host(ScriptedModel(["open", ModelError("the provider answered 500")]))
    run = await host.start("Troubled", scope=ADA, run="recorded-failed")
    await host.settled(run, scope=ADA)
    await host.deliver(run, UserMessage("and now?"), scope=ADA)
    await host.settled(run, scope=ADA)
    return host, run


async def messages() -> tuple[Host, str]:
    """A user whose messages have identities; one comes again after it was answered."""
    host = troubled_host(ScriptedModel(["open", "Go on.", "closed"]))
    run = await host.start("Troubled", scope=ADA, run="recorded-messages")
    for text, id_ in (("yes", "m-1"), ("yes", "m-1"), ("yes", "caf\u00e9 \U0001f600")):
        await host.settled(run, scope=ADA)
        await host.deliver(run, UserMessage(text, id=id_), scope=ADA)
    await host.settled(run, scope=ADA)
    return host, run


async def open_run() -> tuple[Host, str]:
    """A run that waits for two people, and has not ended."""
    play = PLAYS["questions"]()
    both = [call("choose", what="tea"), call("approve", amount=7)]
    host = host_for(play.spec, ScriptedModel([both]), code=play.code, clock=ManualClock())
    run = await host.start("Questions", scope=ADA, message="hi", run="recorded-open")
    await host.settled(run, scope=ADA)
    return host, run


TRIGGERED_CODE = b'''
def weigh(item: str, context_variables) -> dict:
    """Weigh something."""
    return {"found": {"grams": len(item) * 100}, "token": context_variables.get("token")}
'''


def triggered_spec() -> WorkflowSpec:
    """Every kind of trigger that the engine performs, and a state machine."""

    def derived(type_: str, *triggers: Any, **more: Any) -> dict[str, Any]:
        return {"type": type_, "source": {"type": "derived", "triggers": list(triggers), **more}}

    user = {"type": "user_text", "match": {"regex": r"(?i)\bparcel\b"}}
    returned = {"type": "tool_response", "tool": "weigh"}
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "Triggered", "initial_agent": "Desk"},
            "agents": [{"agent_name": "Desk"}, {"agent_name": "Scale"}],
            "variables": {
                "parcel": derived("bool", user, default=False),
                "item": derived("str", {"type": "tool_call", "tool": "weigh", "argument": "item"}),
                "grams": derived("int", {**returned, "response_key": "found.grams"}),
                "handed": derived(
                    "bool", {"type": "handoff", "source_agent": "Desk", "target_agent": "Scale"}
                ),
                "tired": derived("bool", {"type": "agent_turn_count", "agent": "Desk", "count": 2}),
                "done": derived(
                    "bool", {"type": "agent_text", "agent": "Scale", "match": {"exact": "DONE"}}
                ),
                "token": {
                    "type": "str",
                    "secret": True,
                    "source": {"type": "environment", "env_var": "SCALE_TOKEN"},
                },
                "place": {"type": "str", "source": {"type": "static", "value": "Bern"}},
            },
            "tools": [
                {
                    "tool_type": "Agent_Tool",
                    "agent": "Scale",
                    "file": "work.py",
                    "function": "weigh",
                }
            ],
            "handoffs": [
                {"source_agent": "Desk", "target_agent": "Scale", "condition": "parcel"},
                {"source_agent": "Desk", "target_agent": "user"},
                {
                    "source_agent": "Scale",
                    "target_agent": "terminate",
                    "condition": "done and handed and tired and grams >= 300",
                },
            ],
        }
    )


async def triggered() -> tuple[Host, str]:
    """Variables that are set by what users and agents say, tools return and the word does."""
    script = ScriptedModel(["How can I help?", "To the scale.", call("weigh", item="box"), "DONE"])
    host = host_for(
        triggered_spec(),
        script,
        code={"tools/work.py": TRIGGERED_CODE},
        clock=ManualClock(),
        environment={"SCALE_TOKEN": "a-token-nobody-may-see"},
    )
    run = await host.start("Triggered", scope=ADA, message="hello", run="recorded-triggered")
    await host.settled(run, scope=ADA)
    await host.deliver(run, UserMessage("Weigh my Parcel, please"), scope=ADA)
    await host.settled(run, scope=ADA)
    return host, run


async def until(host: Host, run: str, holds: Callable[[State], bool]) -> None:
    """Return when something holds for a run."""
    async for _ in host.events(run, scope=ADA, follow=True):
        if holds(await host.state(run, scope=ADA)):
            return


async def panel_open() -> tuple[Host, str]:
    """A group whose members are done, at a tool and at a question, and which has not joined."""
    play = PLAYS["panel"]()
    held = asyncio.Event()

    async def say(request: Any) -> Any:
        if (request.agent, request.call) == ("Careful", 2):
            await held.wait()
        return play.say(request)

    host = host_for(play.spec, FunctionModel(say), code=play.code, clock=ManualClock())
    run = await host.start("Panel", scope=ADA, message="hi", run="recorded-panel-open")
    await until(host, run, lambda state: bool(state.requests) and state.active[3].call == 2)
    return host, run


def deadline_spec() -> WorkflowSpec:
    """A group that goes on without the members that fail or take too long."""
    group: dict[str, Any] = {
        "name": "Experts",
        "members": ["Steady", "Broken", "Slow"],
        "merge": "collect",
        "on_failure": "continue",
        "deadline_seconds": 60,
        "next": "Judge",
    }
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {
                "workflow_name": "Deadline",
                "initial_agent": "Chair",
                "parallel": [group],
            },
            "agents": [{"agent_name": item} for item in ("Chair", *group["members"], "Judge")],
            "handoffs": [
                {"source_agent": "Chair", "target_agent": "Experts"},
                {"source_agent": "Judge", "target_agent": "terminate"},
            ],
        }
    )


async def deadline() -> tuple[Host, str]:
    """A group of which one member fails, one is too slow, and one counts."""

    async def say(request: Any) -> Any:
        if request.agent == "Broken":
            raise ModelError("the provider answered 500")
        if request.agent == "Slow":
            await asyncio.Event().wait()
        return f"{request.agent} is done."

    clock = ManualClock()
    host = host_for(deadline_spec(), FunctionModel(say), clock=clock)
    run = await host.start("Deadline", scope=ADA, message="hi", run="recorded-deadline")
    await until(host, run, lambda state: state.active.keys() == {2, 4})
    await clock.advance(60)
    await host.settled(run, scope=ADA)
    return host, run


def boundaries_host(model: Model, documents: PlayDocuments | None = None) -> Host:
    """Return a host for a workflow that reaches outside, and is reached at every boundary."""
    return host_for(
        outside_spec(), model, code=CODE, clock=ManualClock(), outside=outside(documents)
    )


async def boundaries() -> tuple[Host, str]:
    """Every source and boundary, a judged rule, questions of a tool to a model and to a manager."""
    host = boundaries_host(FunctionModel(say))
    return host, await talk(host, ADA, "recorded-boundaries")


async def boundaries_failed() -> tuple[Host, str]:
    """A document that cannot be written, and what is called before a run ends all the same."""
    full = PlayDocuments()
    full.full = True
    host = boundaries_host(FunctionModel(say), full)
    return host, await talk(host, ADA, "recorded-boundaries-failed")


async def boundaries_chosen() -> tuple[Host, str]:
    """A model that chooses who is next."""

    def choosing(request: Any) -> Any:
        if request.agent == "Clerk" and not request.question:
            return call("hand_off_to_Closer")
        return say(request)

    host = boundaries_host(FunctionModel(choosing))
    return host, await talk(host, ADA, "recorded-boundaries-chosen")


async def boundaries_open() -> tuple[Host, str]:
    """A run that waits for a manager, in the middle of a turn whose tools have done much."""
    host = boundaries_host(FunctionModel(say))
    run = await host.start("Claims", scope=ADA, message="hi", run="recorded-boundaries-open")
    await host.settled(run, scope=ADA)
    return host, run


BOARD_CODE = b'''
from weft.board import CONTINUE, Verdict


def collect(inputs):
    """Count what came."""
    texts = [it.payload["text"] for it in inputs.artifacts]
    if "broken" in texts:
        raise ValueError("it cannot be counted")
    return {"type": "Count", "payload": {"count": len(texts)}}


def read(inputs, ctx):
    """Read a letter."""


def masked(value):
    """Hide a value."""
    return "***"


class Later:
    """Puts off what is younger than two seconds, and lets nothing that is spam be handled."""

    def before_schedule(self, ctx, inputs):
        if any(it.payload["text"] == "spam" for it in inputs.artifacts):
            return Verdict("skip", reason="it is spam")
        ages = [(ctx.now - it.created_at).total_seconds() for it in inputs.artifacts]
        young = max(ages) < 2
        return Verdict("defer", 2) if young else CONTINUE
'''


def board_spec() -> WorkflowSpec:
    """Return a board with a model, functions, a component, and all that may be waited for."""
    text = {"type": "object", "properties": {"text": {"type": "string"}, "key": {}}}
    counted = {"type": "object", "properties": {"count": {"type": "integer"}}}
    later = [{"component": "tools.work:Later", "hooks": ["before_schedule"]}]
    collects = [{"kind": "function", "function": "tools.work:collect"}]
    shown = {
        "kind": "redacting",
        "provider": {
            "kind": "composite",
            "providers": [{"kind": "correlated", "limit": 3}, {"kind": "recent", "limit": 2}],
        },
        "drop": ["key"],
        "transform": {"count": "tools.work:masked"},
    }
    pair = {"types": ["Idea", "Draft"]}
    agents = [
        {
            "agent": "Writer",
            "labels": ["staff"],
            "consumes": [{"types": ["Idea"], "where": 'text != "spam"', "priority": 2}],
            "publishes": [{"type": "Draft", "tags": ["new"]}],
            "context": shown,
        },
        {
            "agent": "Counter",
            "consumes": [
                {"types": ["Draft"], "batch": {"size": 2, "timeout_seconds": 60}},
                {**pair, "join": {"by": "key", "within_seconds": 3}},
                {"types": ["Idea", "Idea"], "activation": "Idea > 4"},
            ],
            "publishes": [
                {"type": "Count", "visibility": {"kind": "labelled", "labels": ["staff"]}}
            ],
            "engines": collects,
        },
        {
            "agent": "Guard",
            "consumes": [{"types": ["Idea"], "mode": "events"}],
            "engines": collects,
            "publishes": [{"type": "Count"}],
            "components": later,
            "context": {"kind": "empty"},
        },
        {
            "agent": "Reader",
            "consumes": [
                {"types": ["Idea"], "scope": "all", "batch": {"size": 3, "timeout_seconds": 30}},
                {"types": ["Draft", "Draft"], "scope": "partition"},
            ],
            "engines": [{"kind": "function", "function": "tools.work:read"}],
        },
    ]
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "Studio"},
            "agents": [{"agent_name": agent["agent"]} for agent in agents],
            "board": {
                "artifacts": [
                    {"name": "Idea", "schema": text},
                    {"name": "Draft", "schema": text},
                    {"name": "Count", "schema": counted},
                ],
                "agents": agents,
                "idle_seconds": 3600,
            },
        }
    )


async def calm(host: Host, clock: ManualClock, seconds: float) -> None:
    """Let time pass when nothing is to be done, and wait until nothing is again."""
    await host.quiet()
    await clock.advance(seconds)
    await asyncio.sleep(0.01)
    await host.quiet()


async def board_played(*, ends: bool) -> tuple[Host, str]:
    """A correlation in which everything happens that may, and that is over in the end or not."""

    async def say(request: Any) -> Any:
        return '{"text": "a draft", "key": "k1"}'

    clock = ManualClock()
    code = {"tools/work.py": BOARD_CODE}
    host = host_for(board_spec(), FunctionModel(say), code=code, clock=clock)

    async def idea(text: str, *, correlation: str = "fair", **more: Any) -> None:
        payload = {"text": text, "key": "k1"}
        await host.publish("Studio", "Idea", payload, scope=ADA, correlation=correlation, **more)
        await calm(host, clock, 0.5)

    await idea("tea", id="first", partition="north")
    await idea("tea again", id="first")
    await idea("spam", tags=["cheap"])
    await idea("hidden", visibility={"kind": "after", "seconds": 1, "then": {"kind": "public"}})
    await idea("secret", visibility={"kind": "private", "agents": ["Guard"]})
    await idea("broken", correlation="other", partition="north")
    await calm(host, clock, 5)
    await host.publish(
        "Studio", "Draft", {"text": "given"}, scope=ADA, correlation="fair", agent="Counter"
    )
    await calm(host, clock, 1)
    run = await host.run_of("Studio", "fair", scope=ADA)
    await host.flush(run, scope=ADA)
    await calm(host, clock, 1)
    await idea("cake")
    if ends:
        await calm(host, clock, 4000)
        await calm(host, clock, 4000)
    else:
        visibility = {"kind": "after", "seconds": 9, "then": {"kind": "public"}}
        await idea("much later", visibility=visibility)
        await idea("young")
    return host, await host.run_of("Studio", "fair", scope=ADA)


async def board_collector() -> tuple[Host, str]:
    """The run that collects for all correlations of the same board."""
    host, _ = await board_played(ends=True)
    return host, await host.run_of("Studio", "Studio~Reader.0", scope=ADA)


DIRECTOR = Scope("shop", "eve", ("director",))


async def order(name: str, decision: str = "") -> tuple[Host, str]:
    """An order whose message is too long, then cannot be written; the manager does not answer.

    The director decides, if anything is decided; at the harbour the carrier is busy at first.
    """
    package = read_package(shipped_folder() / "OrderProcessing")
    script = ScriptedModel(["word " * 70, ModelError("the provider answered 500")])
    clock, values = ManualClock(), {"amount": 900.0, "address": "harbour"}
    host = host_for(package.spec, script, code=package.code, clock=clock)
    run = await host.start("OrderProcessing", scope=ADA, values=values, run=name)
    await calm(host, clock, 3600)
    if decision:
        (asked,) = await host.requests(scope=DIRECTOR, run=run)
        await host.deliver(run, Answer(asked.id, {"decision": decision}), scope=DIRECTOR)
        await calm(host, clock, 5)
        await calm(host, clock, 5)
    return host, run


RUNS: dict[str, Callable[[], Awaitable[tuple[Host, str]]]] = {
    "handover": lambda: crash_play("handover", "recorded-handover"),
    "questions": lambda: crash_play("questions", "recorded-questions"),
    "plans": lambda: crash_play("plans", "recorded-plans"),
    "held": lambda: crash_play("plans", "recorded-held"),
    "fork": fork,
    "router": router,
    "stopped": stopped,
    "failed": failed,
    "open": open_run,
    "triggered": triggered,
    "messages": messages,
    "panel": lambda: crash_play("panel", "recorded-panel"),
    "panel_open": panel_open,
    "deadline": deadline,
    "boundaries": boundaries,
    "boundaries_failed": boundaries_failed,
    "boundaries_chosen": boundaries_chosen,
    "boundaries_open": boundaries_open,
    "board": lambda: board_played(ends=True),
    "board_open": lambda: board_played(ends=False),
    "board_collector": board_collector,
    "flow": lambda: order("recorded-flow", "approve"),
    "flow_undone": lambda: order("recorded-flow-undone", "reject"),
    "flow_open": lambda: order("recorded-flow-open"),
}


async def record(name: str) -> None:
    """Record one run."""
    folder = HERE / name
    folder.mkdir()
    host, run = await RUNS[name]()
    async with host:
        events = [event async for event in host.events(run, scope=ADA) if isinstance(event, Event)]
        workflow = await host.workflow(run, scope=ADA)
        (folder / "journal.jsonl").write_bytes(lines(events))
        (folder / "package.json").write_bytes(workflow.package + b"\n")
        found = {"run": run, **expectation(workflow.compiled, run, events)}
        (folder / "expected.json").write_bytes(to_json(found, indent=1) + b"\n")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WEFT_EFFECTS"] = str(Path(folder) / "effects")
        for name in sys.argv[1:] or [run for run in RUNS if not (HERE / run).exists()]:
            asyncio.run(record(name))


if __name__ == "__main__":
    main()
