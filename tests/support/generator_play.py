"""Whole generations in process: any model behind the Generator, and a person who agrees."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from weft.app.generation import read_generation
from weft.app.simulation import simulate
from weft.engine.events import Event, ModelReplied, OutputRefused, RunEnded
from weft.engine.rows import RequestRow
from weft.engine.state import State
from weft.findings import is_error
from weft.generator.assisted import AssistedModel
from weft.generator.designer import DesignerModel
from weft.generator.judge.simulation import Simulation
from weft.packages.archive.staging import create_folder
from weft.packages.reader import Package
from weft.packages.review import review
from weft.ports.model import ModelRequest
from weft.ports.scope import Scope
from weft.runtime.host import Host
from weft.runtime.signals import Answer, UserMessage
from weft.spec.workflow import WorkflowSpec
from weft.testing.hosts import host_for, read_package
from weft.testing.models import FunctionModel, Line

ME = Scope("local", "me")
ROOT = Path(__file__).parents[2]
BRIEFS = ROOT / "examples" / "briefs"
BRIEF = (BRIEFS / "02-invoice-approval.txt").read_text(encoding="utf-8")

#: A form with two agents, a person and a record.
FORM = """\
workflow: ClaimsDesk
description: Takes claims, checks them, and lets a manager approve the payment.
record: Claims
never: Never promise a payment.
steps:
  - {name: Clerk, by: agent, task: Ask what was damaged and what it cost., asks_back: true,
     writes: [damage, cost], outcomes: {complete: Assessor, more: user}}
  - {name: Assessor, by: agent, task: Say whether the claim is plausible., reads: [damage, cost],
     outcomes: {plausible: Manager, doubtful: Clerk}}
  - {name: Manager, by: person, who: role:manager, shows: [damage, cost],
     tell: The manager has decided., outcomes: {approved: end, rejected: end}}
scenarios:
  - says: [My window is broken., It cost 200 euros.]
    takes: {Assessor: plausible, Manager: approved}
    expect: [{requests: {ask_manager: role:manager}}]
"""

#: What people answer in the interview.
ANSWERS = {"specialists": "Clerk, Assessor", "approver": "role:manager", "started_by": "chat"}

#: What a model makes of the designer's reply to a request; None is that reply itself.
Twist = Callable[[ModelRequest, dict[str, Any]], Line | None]

#: More questions than any generation asks a person.
_MOST_ASKED = 20


@dataclass(frozen=True)
class Generation:
    """A generation that is over."""

    state: State
    events: list[Event]
    #: What a person was asked, in order.
    asked: list[RequestRow]
    requests: list[ModelRequest]

    @property
    def outcome(self) -> str:
        ended = next(event.data for event in self.events if isinstance(event.data, RunEnded))
        return f"{ended.outcome} {ended.reason}".strip()

    @property
    def packages(self) -> dict[str, dict[str, str]]:
        """The files of every package that was offered."""
        return self.state.variables["bundle"]["packages"]

    @property
    def files(self) -> dict[str, str]:
        """The files of the only package."""
        (files,) = self.packages.values()
        return files

    @property
    def left_out(self) -> dict[str, str]:
        """What of the model's work is not in the package, and why."""
        return {
            f"{entry['file']} {entry['piece']}": entry["reason"]
            for entry in self.state.variables["left_out"]
        }

    @property
    def errors(self) -> list[str]:
        """What keeps the package from being promoted."""
        bundle = self.state.variables["bundle"]
        open_ = [each["text"] for each in bundle["questions"] if not each["answer"]]
        return [*bundle["errors"], *open_]

    @property
    def skeleton(self) -> tuple[str, ...]:
        """Why the package is a skeleton."""
        return read_generation(self.state).skeleton

    def replies(self, agent: str) -> list[ModelReplied]:
        """What an agent said: the model's words, or the designer's in its place."""
        turns = {event.turn for event in self.events if getattr(event.data, "agent", "") == agent}
        return [
            event.data
            for event in self.events
            if isinstance(event.data, ModelReplied) and event.turn in turns
        ]

    def refused(self, agent: str) -> list[str]:
        """What was told an agent to be wrong with its replies."""
        turns = {event.turn for event in self.events if getattr(event.data, "agent", "") == agent}
        return [
            event.data.error
            for event in self.events
            if isinstance(event.data, OutputRefused) and event.turn in turns
        ]

    def stood_in(self) -> dict[str, str]:
        """Why the designer answered, by agent."""
        return {
            request.agent: reply.instead_of
            for request in self.requests
            for reply in self.replies(request.agent)
            if reply.instead_of
        }

    def written(self, folder: Path) -> list[Path]:
        """Write the packages into a workspace, and return their folders."""
        for name, files in self.packages.items():
            raw = {path: text.encode() for path, text in files.items()}
            create_folder(folder / "workflows" / name, raw)
        return [folder / "workflows" / name for name in self.packages]


@cache
def generator() -> Package:
    return read_package(ROOT / "workflows" / "Generator")


def twisted(twist: Twist) -> FunctionModel:
    """Return a model that knows what the designer would say, and makes something else of it."""
    designer = DesignerModel()

    async def answer(request: ModelRequest) -> Line:
        plain = await designer.reply(request)
        said: dict[str, Any] = json.loads(plain.text) if request.output else {}
        made = twist(request, said)
        return plain if made is None else made

    return FunctionModel(answer)


def only(agent: str, line: Any) -> FunctionModel:
    """Return a model that is its own for one agent; `line` may be made of the plain part."""

    def twist(request: ModelRequest, plain: dict[str, Any]) -> Line | None:
        if request.agent != agent:
            return None
        return line(plain) if callable(line) else line

    return twisted(twist)


def always(line: Line | Callable[[ModelRequest], Line | Awaitable[Line]]) -> FunctionModel:
    """Return a model that says the same to everything."""
    return FunctionModel(line if callable(line) else lambda _: line)


_SIMULATIONS: dict[tuple[str, str], Simulation] = {}


def _simulated(spec: WorkflowSpec, code: Mapping[str, bytes]) -> Simulation:
    """Simulate a package once: the result for the same package is the same."""
    key = (spec.model_dump_json(), repr(sorted(code.items())))
    if key not in _SIMULATIONS:
        _SIMULATIONS[key] = simulate(spec, code)
    return _SIMULATIONS[key]


def generate(model: FunctionModel, brief: str = BRIEF) -> Generation:
    """Generate with a model behind the Generator; everything that is asked is agreed to."""
    return asyncio.run(_generated(model, brief))


async def _generated(model: FunctionModel, brief: str) -> Generation:
    package = generator()
    assisted = AssistedModel(model, name="bad")
    with patch("weft.app.simulation.simulate", _simulated):
        host = host_for(package.spec, assisted, code=package.code)
    async with host:
        run = await host.start("Generator", scope=ME, message=brief)
        asked: list[RequestRow] = []
        while (await host.settled(run, scope=ME)).status == "waiting":
            for request in await host.requests(scope=ME, run=run):
                asked.append(request)
                assert len(asked) < _MOST_ASKED, [call.tool for call in asked]
                await _agree(host, run, request, brief)
        state = await host.state(run, scope=ME)
        events = [event async for event in host.events(run, scope=ME)]
        return Generation(state, events, asked, model.requests)


def sound(made: Generation, folder: Path) -> list[Path]:
    """Write what was generated, and check that it loads and has no errors."""
    assert made.outcome == "completed The package is ready.", made.errors
    written = made.written(folder)
    assert not [finding for finding in review(folder).findings if is_error(finding)]
    return written


async def _agree(host: Host, run: str, request: RequestRow, brief: str) -> None:
    answers: Mapping[str, dict[str, Any]] = {
        "interview": ANSWERS,
        "mermaid_sequence_diagram": {"plan_acceptance": "accepted"},
        "download": {"promotion": "approved"},
    }
    if request.kind == "chat":
        await host.deliver(run, UserMessage(brief, id=request.id), scope=ME)
        return
    answer = dict(answers[request.tool or ""])
    if "plan_acceptance" in answer:
        answer["plan_hash"] = request.payload["plan_hash"]
    await host.deliver(run, Answer(request.id, answer), scope=ME)
