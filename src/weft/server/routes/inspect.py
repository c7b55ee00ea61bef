"""Runs from the inside, for developers: states, prompts, inspections and packages."""

import asyncio
from dataclasses import asdict
from typing import Annotated, Final

from fastapi import Path
from pydantic import JsonValue
from pydantic_core import from_json
from typing_extensions import TypedDict

from weft.engine.events import Event
from weft.engine.state import Request, Stage
from weft.inspect.run import RunInspection, inspect_run
from weft.inspect.span_facts import SpanKind
from weft.inspect.spans import spans_of, trace_id
from weft.inspect.turn import TurnInspection, inspect_turn
from weft.ports.model import ToolSchema
from weft.server.context import ServerContext
from weft.server.identity import DEVELOPER, Principal
from weft.server.parameters import EventNumber, RunPath
from weft.server.routing import Caller, Context, Routes
from weft.wire.rows import state_data

routes: Final = Routes("inspection")


class MessageAnswer(TypedDict):
    """One entry of a conversation, and the event that added it."""

    seq: int
    role: str
    agent: str
    text: str


class TurnAnswer(TypedDict):
    """A turn under way."""

    turn: int
    agent: str
    stage: Stage


class CallAnswer(TypedDict):
    """A tool call without a result yet."""

    id: str
    turn: int
    tool: str
    arguments: dict[str, JsonValue]


class TimerAnswer(TypedDict):
    """A timer, and when it is due."""

    id: str
    at: int


class StateAnswer(TypedDict):
    """The state of a run after an event."""

    run: str
    seq: int
    status: str
    workflow: str
    digest: str
    app: str
    user: str
    name: str
    started_at: int
    model: str | None
    turns: int
    turn_counts: dict[str, int]
    last_agent: str
    outcome: str | None
    reason: str
    parent: str
    variables: dict[str, JsonValue]
    messages: list[MessageAnswer]
    active: list[TurnAnswer]
    calls: list[CallAnswer]
    requests: list[Request]
    timers: list[TimerAnswer]


class SpanAnswer(TypedDict):
    """A timed operation of a run, in milliseconds; `ms` is null while it is under way."""

    id: str
    parent_id: str
    kind: SpanKind
    name: str
    title: str
    parent: str
    run: str
    turn: int
    started_at: int
    ms: float | None
    failed: bool
    error: str
    #: By the OpenTelemetry conventions for generative AI.
    attributes: dict[str, JsonValue]


class SpansAnswer(TypedDict):
    """The trace of a run: its spans by their start."""

    run: str
    trace: str
    spans: list[SpanAnswer]


class PackageAnswer(TypedDict):
    """The package that a run was started with: its spec, its code by path, and its tools."""

    digest: str
    spec: dict[str, JsonValue]
    code: dict[str, str]
    tools: dict[str, ToolSchema]


@routes.add("GET", "/api/runs/{run}/state", roles=DEVELOPER, answer=StateAnswer)
async def show_state(
    run: RunPath, caller: Caller, context: Context, at: EventNumber | None = None
) -> object:
    """Return the state of a run, now or after an earlier event; secrets are hidden."""
    workflow = await context.host.workflow(run, scope=caller.scope)
    state = await context.host.state(run, scope=caller.scope, at=at)
    return state_data(state, workflow)


@routes.add("GET", "/api/runs/{run}/prompts/{turn}", roles=DEVELOPER, answer=TurnInspection)
async def show_prompts(
    run: RunPath,
    turn: Annotated[int, Path(ge=0, le=2**53)],
    caller: Caller,
    context: Context,
) -> object:
    """Return one turn: what its agent was sent, what was left out, and what it did."""
    workflow = await context.host.workflow(run, scope=caller.scope)
    events = await _events(run, caller, context)
    return await asyncio.to_thread(inspect_turn, workflow, run, events, turn)


@routes.add("GET", "/api/runs/{run}/inspect", roles=DEVELOPER, answer=RunInspection)
async def show_inspection(run: RunPath, caller: Caller, context: Context) -> object:
    """Return what happened in a run and why: everything that `weft inspect` shows."""
    workflow = await context.host.workflow(run, scope=caller.scope)
    events = await _events(run, caller, context)
    return await asyncio.to_thread(inspect_run, workflow, run, events)


@routes.add("GET", "/api/runs/{run}/spans", roles=DEVELOPER, answer=SpansAnswer)
async def show_spans(run: RunPath, caller: Caller, context: Context) -> object:
    """Return the spans of a run, with the ids that a collector gets; without content."""
    workflow = await context.host.workflow(run, scope=caller.scope)
    events = await _events(run, caller, context)
    spans = await asyncio.to_thread(spans_of, caller.app, run, events, models=workflow.models)
    shown = [{**asdict(span), "title": span.title} for span in spans]
    return {"run": run, "trace": trace_id(caller.app, run), "spans": shown}


@routes.add("GET", "/api/runs/{run}/package", roles=DEVELOPER, answer=PackageAnswer)
async def show_package(run: RunPath, caller: Caller, context: Context) -> object:
    """Return the package that a run was started with, as the store keeps it.

    Who has it and the events can fold and inspect the run without the server.
    """
    workflow = await context.host.workflow(run, scope=caller.scope)
    names = [tool.function for tool in workflow.spec.tools]
    tools = {name: workflow.tools.schema(name) for name in names}
    return {**from_json(workflow.package), "digest": workflow.digest, "tools": tools}


async def _events(run: str, caller: Principal, context: ServerContext) -> list[Event]:
    found = context.host.events(run, scope=caller.scope)
    return [event async for event in found if isinstance(event, Event)]
