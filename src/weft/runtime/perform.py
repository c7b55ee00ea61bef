"""Performing: what the engine wants done, done through ports; what came of it, as drafts."""

import asyncio
import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

from pydantic_core import to_json

from weft.context.assembly import Assembly, assemble
from weft.engine.commands import Assemble, CallModel, CallTool
from weft.engine.events import (
    EventData,
    ModelFailed,
    ModelReplied,
    RequestOpened,
    ToolFailed,
    ToolRequest,
    ToolReturned,
)
from weft.errors import ModelError, PortError, Refuse, RetryModel
from weft.findings import Json
from weft.ports.clock import Clock
from weft.ports.journal import Journal
from weft.ports.model import Model, ModelRequest
from weft.ports.tools import ToolCall
from weft.runtime.context_variables import Context
from weft.runtime.decision import Draft, assembled
from weft.runtime.workflow import Workflow

if TYPE_CHECKING:  # an active run performs through this module
    from weft.runtime.active import ActiveRun

_log: Final = logging.getLogger("weft.runtime")

#: How long tools that wait for a person are held in memory before their run is let go.
HOLD_SECONDS: Final = 300.0


class ModelSource(Protocol):
    """Finds the model for a name."""

    def __call__(self, name: str | None, workflow: Workflow, run: str) -> Model:
        """Return the model that answers for an agent."""
        ...


@dataclass
class Performer:
    """The ports of a host, and how commands are carried out with them."""

    journal: Journal
    models: ModelSource
    clock: Clock
    #: Called when something was written to a run, and with pieces of text while a model speaks.
    tell: Callable[[str], None]
    say: Callable[[str, int, str], None]
    hold_seconds: float = HOLD_SECONDS

    def assemble(self, run: "ActiveRun", command: Assemble) -> tuple[Draft, ...]:
        """Put together what an agent is to see, for a turn that was interrupted before."""
        assembly = assemble(run.workflow.views[command.agent], run.state)
        return (Draft("engine", assembled(command, assembly)),)

    async def call_model(
        self, run: "ActiveRun", command: CallModel, assembly: Assembly | None
    ) -> tuple[Draft, ...]:
        """Ask a model."""
        view = run.workflow.views[command.agent]
        sent = assembly or assemble(view, run.state)
        request = ModelRequest(
            model=run.workflow.models[command.agent] or "",
            run=run.state.run,
            agent=command.agent,
            key=f"{run.state.run}:{command.seq}",
            messages=sent.messages,
            tools=view.tools,
            output=view.output,
        )
        result: EventData
        try:
            model = self.models(request.model, run.workflow, run.state.run)
            reply = await model.reply(
                request, lambda text: self.say(request.run, command.seq, text)
            )
            result = ModelReplied(
                turn=command.turn,
                call=command.call,
                text=reply.text,
                tool_requests=_numbered(command, reply.tool_requests),
                usage=reply.usage,
                model=reply.model,
                answerer=reply.answerer,
            )
        except ModelError as error:
            result = ModelFailed(command.turn, command.call, str(error))
        except Exception as error:  # noqa: BLE001 - a command's outcome becomes an event
            _log.exception("the model of %s failed unexpectedly", command.agent)
            result = ModelFailed(command.turn, command.call, f"{type(error).__name__}: {error}")
        return (Draft(f"agent:{command.agent}", result, command.seq),)

    async def call_tool(self, run: "ActiveRun", command: CallTool) -> tuple[Draft, ...]:
        """Call a tool."""
        key = f"{run.state.run}:{command.seq}"
        variables = Context(
            run.workflow.book, run.state, agent=command.agent, tool=command.tool, key=key
        )
        asked = _Asking(run, command, self.clock)
        call = ToolCall(
            id=command.id,
            run=run.state.run,
            agent=command.agent,
            tool=command.tool,
            key=key,
            arguments=command.arguments,
            variables=variables,
            ask=asked,
        )
        result: ToolReturned | ToolFailed
        try:
            result = ToolReturned(command.id, await run.workflow.tools.call(call))
        except Refuse as refusal:
            result = ToolFailed(command.id, str(refusal), "refused")
        except RetryModel as signal:
            result = ToolFailed(command.id, str(signal), "retry")
        except PortError as error:
            slow = isinstance(error.__cause__, TimeoutError)
            result = ToolFailed(command.id, str(error), "timeout" if slow else "error")
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - a command's outcome becomes an event
            _log.exception("the tool %s failed unexpectedly", command.tool)
            result = ToolFailed(command.id, f"{type(error).__name__}: {error}")
        actor = f"tool:{command.tool}"
        return tuple(Draft(actor, data, command.seq) for data in (*variables.finish(), result))


def _numbered(command: CallModel, asked: tuple[ToolRequest, ...]) -> tuple[ToolRequest, ...]:
    """Give tool calls ids of our own: what a provider calls them may come again in another turn."""
    return tuple(
        replace(request, id=f"call_{command.turn}_{command.call}_{number}")
        for number, request in enumerate(asked)
    )


class _Asking:
    """Asks people on behalf of one tool call; answers it has had come back at once."""

    def __init__(self, run: "ActiveRun", command: CallTool, clock: Clock) -> None:
        self._run = run
        self._command = command
        self._clock = clock
        self._asked = 0

    async def __call__(
        self, tool: str, payload: Json, seconds: float | None, otherwise: Json
    ) -> Json:
        number, self._asked = self._asked, self._asked + 1
        if number < len(self._command.answers):
            return self._command.answers[number]
        command = self._command
        opened = RequestOpened(
            id=f"{self._run.state.run}:{command.seq}:{number}",
            kind="ui",
            agent=command.agent,
            tool=tool,
            call=command.id,
            number=number,
            payload=payload,
            digest=hashlib.sha256(to_json([tool, payload])).hexdigest(),
            expires_at=None if seconds is None else self._clock.now() + round(seconds * 1000),
            otherwise=otherwise,
        )
        return await self._run.ask(command.id, opened)
