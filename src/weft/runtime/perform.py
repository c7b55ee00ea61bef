"""Performing: what the engine wants done, done through ports; what came of it, as drafts."""

import asyncio
import contextvars
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from weft.context.assembly import Assembly, assemble
from weft.context.values import shown
from weft.engine.activations import read_output
from weft.engine.commands import CallModel, CallTool
from weft.engine.events import (
    EventData,
    FailureKind,
    ModelFailed,
    ModelReplied,
    ToolFailed,
    ToolRequest,
    ToolReturned,
)
from weft.errors import (
    Ask,
    ModelError,
    PortError,
    Refuse,
    RetryModel,
    RunError,
    ToolError,
    UsageError,
)
from weft.findings import Json
from weft.ports.clock import Clock
from weft.ports.journal import Journal
from weft.ports.model import Model, ModelReply, ModelRequest
from weft.ports.scope import Scope
from weft.ports.tools import ToolCall
from weft.runtime.context_variables import Context
from weft.runtime.decision import Decision, NewEvent
from weft.runtime.deltas import ModelRetry, Speech
from weft.runtime.holding import Holding
from weft.runtime.json_values import plain_json
from weft.runtime.pacing import Pace
from weft.runtime.questions import CallingRun, Questions
from weft.runtime.secrets import masked
from weft.runtime.workflow import Workflow

_log: Final = logging.getLogger("weft.runtime")


class ModelSource(Protocol):
    """Finds the model for a name."""

    def __call__(self, name: str, workflow: Workflow, scope: Scope) -> Model:
        """Return the model that answers for an agent; an empty name means: none was declared.

        Raises UsageError if there is no such model, or a key or a library for it is missing.
        """
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...


def _nothing(_decision: Decision) -> None:
    """Do what there is to do where nobody wants to know."""


@dataclass
class Performer:
    """The ports of a host, and how commands are carried out with them."""

    journal: Journal
    models: ModelSource
    clock: Clock
    #: Who listens while a model speaks.
    speech: Speech
    #: The values of a workflow's secrets, as they are now.
    secrets_of: Callable[[Workflow], Mapping[str, Json]]
    #: Called when something was written to a run.
    tell: Callable[[Decision], None] = _nothing
    #: What all runs go on in, whoever has begun them.
    context: contextvars.Context = field(default_factory=contextvars.copy_context)
    pace: Pace = field(default_factory=Pace)
    holding: Holding = field(default_factory=Holding)

    async def call_model(
        self, run: CallingRun, command: CallModel, assembly: Assembly | None
    ) -> tuple[NewEvent, ...]:
        """Ask a model."""
        view = run.workflow.views[command.agent]
        sent = assembly or assemble(view, run.state, command.turn)
        request = ModelRequest(
            model=run.state.model or run.workflow.models[command.agent] or "",
            run=run.state.run,
            agent=command.agent,
            turn=command.turn,
            call=command.call,
            key=_key(run, command),
            messages=sent.messages,
            tools=view.tools,
            output=view.output,
            on_retry=self._on_retry(run, command),
        )
        result: EventData
        try:
            model = self.models(request.model, run.workflow, run.scope)
        except UsageError as error:
            # It is not the run's fault: it is given up here, and goes on where the model is known.
            raise RunError(str(error)) from error
        try:
            key = (run.scope.app, request.run)
            listener = self.speech.listener(key, command.seq) if self.speech.is_heard(key) else None
            reply = await model.reply(request, listener)
            if listener is not None:  # Its words are heard before the whole takes their place.
                await asyncio.sleep(0)
            await self.pace.turn()
            result = _replied(run.workflow, command, reply)
        except ModelError as error:
            result = ModelFailed(command.call, str(error), error.attempts, error.retries)
        except Exception as error:  # noqa: BLE001 - a command's outcome becomes an event
            _log.exception("the model of %s failed unexpectedly", command.agent)
            result = ModelFailed(command.call, f"{type(error).__name__}: {error}")
        return (NewEvent(f"agent:{command.agent}", result, command.seq, command.turn),)

    def _on_retry(self, run: CallingRun, command: CallModel) -> Callable[[str], None]:
        key = (run.scope.app, run.state.run)
        return lambda text: self.speech.tell(key, ModelRetry(key[1], command.seq, text))

    async def call_tool(self, run: CallingRun, command: CallTool) -> tuple[NewEvent, ...]:
        key = _key(run, command)
        try:
            secrets = self.secrets_of(run.workflow)
        except UsageError as error:  # It was there when the run began.
            return _results(command, ToolFailed(command.id, str(error)))
        variables = Context(
            run.workflow.compiled,
            run.state,
            turn=command.turn,
            agent=command.agent,
            tool=command.tool,
            key=key,
            answers=tuple(it.value for it in command.answers),
            secrets=secrets,
        )
        questions = Questions(run, command, self.clock, secrets)
        call = ToolCall(
            id=command.id,
            run=run.state.run,
            agent=command.agent,
            tool=command.tool,
            key=key,
            arguments=command.arguments,
            variables=variables,
            ask=questions,
            answer_again=questions.restart,
        )
        result: EventData
        try:
            value = await run.workflow.tools.call(call)
            result = ToolReturned(command.id, masked(value, secrets))
        except Ask as signal:
            result = _asks(questions, command, signal)
        except Refuse as refusal:
            result = _failed(command, refusal, "refused", secrets)
        except RetryModel as signal:
            result = _failed(command, signal, "retry", secrets)
        except PortError as error:
            slow = isinstance(error.__cause__, TimeoutError)
            result = _failed(command, error, "timeout" if slow else "error", secrets)
        except Exception as error:  # noqa: BLE001 - a command's outcome becomes an event
            _log.exception("the tool %s failed unexpectedly", command.tool)
            result = _failed(command, error, "error", secrets)
        writes = variables.finish()
        written = writes if _counts(result) else ()
        return _results(command, *written, result)


def _key(run: CallingRun, command: CallModel | CallTool) -> str:
    """Return what an effect is recognised by when it is repeated: no other has it anywhere."""
    return f"{run.scope.app}/{run.state.run}:{command.seq}"


def _results(command: CallTool, *results: EventData) -> tuple[NewEvent, ...]:
    actor = f"tool:{command.tool}"
    return tuple(NewEvent(actor, it, command.seq, command.turn) for it in results)


def _counts(result: EventData) -> bool:
    """Tell whether what a call has set counts: it has returned, or it declines on purpose.

    One that asks is not over: when it is made again, it sets again what it sets.
    """
    if isinstance(result, ToolFailed):
        return result.kind == "refused"
    return isinstance(result, ToolReturned)


def _failed(
    command: CallTool, error: Exception, kind: FailureKind, secrets: Mapping[str, Json]
) -> ToolFailed:
    """Return what the agent is told: the reason, without secrets it may quote."""
    return ToolFailed(command.id, str(masked(str(error), secrets)), kind)


def _asks(questions: Questions, command: CallTool, signal: Ask) -> EventData:
    """Return the question a tool has raised, or why it cannot be asked."""
    try:
        payload, otherwise = plain_json(signal.payload), plain_json(signal.otherwise)
        return questions.opened(command.tool, payload, signal.timeout, otherwise)
    except (ValueError, ToolError, UsageError) as error:
        return ToolFailed(command.id, f"{command.tool} asked a question that cannot be: {error}")


def _replied(workflow: Workflow, command: CallModel, reply: ModelReply) -> ModelReplied:
    """Return a reply as it is written down; raises ModelError if no journal could hold it.

    Tool calls get ids of our own: what a provider calls them may come again in another turn.
    """
    try:
        tools = (it.tool for it in reply.tool_requests)
        for text in (reply.text, reply.model, reply.finish, reply.instead_of, *tools):
            text.encode()
        requests = tuple(
            ToolRequest(
                f"call_{command.turn}_{command.call}_{number}",
                asked.tool,
                {name: plain_json(value) for name, value in asked.arguments.items()},
            )
            for number, asked in enumerate(reply.tool_requests)
        )
    except ValueError as error:
        raise ModelError(f"the reply cannot be kept: {error}") from error
    return ModelReplied(
        call=command.call,
        text=reply.text,
        tool_requests=requests,
        usage=reply.usage,
        model=reply.model,
        answerer=reply.answerer,
        finish=reply.finish,
        instead_of=reply.instead_of,
        shown=None if reply.tool_requests else _shown(workflow, command.agent, reply.text),
        retries=reply.retries,
    )


def _shown(workflow: Workflow, agent: str, text: str) -> str | None:
    """Return what a person reads of a structured reply: nothing of one that does not fit."""
    model = workflow.compiled.agents[agent].output
    if model is None:
        return None
    output, fault = read_output(workflow.compiled, model, text)
    if fault is not None or output is None:
        return ""
    said = output.get("agent_message")
    if isinstance(said, str):
        return said
    return "\n".join(f"{name}: {shown(value)}" for name, value in output.items())
