"""Performing the commands of the engine through ports; the results become events."""

import asyncio
import contextvars
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol, cast

from weft.context.prompt import Assembly, assemble
from weft.context.segment import values_of
from weft.context.user_code import describe_error, error_type, user_code
from weft.engine.commands import CallModel, CallTool, Effect, Fetch, Judge, WriteDocument
from weft.engine.compile import refreshed
from weft.engine.events import (
    SOURCE,
    ConditionJudged,
    ContextFetched,
    DocumentWritten,
    EventData,
    ModelFailed,
    VariableSet,
)
from weft.engine.events.kinds import StepInput
from weft.errors import ModelError, PortError, RunError, ToolError, UsageError
from weft.findings import Json
from weft.ports.clock import Clock
from weft.ports.external import ExternalPorts
from weft.ports.live import LiveStream, ModelRetry
from weft.ports.model import ChatMessage, Model, ModelReply, ModelRequest, OutputSchema
from weft.ports.scope import Scope
from weft.ports.tools import Call
from weft.ports.vault import Vault
from weft.runtime.board.preparing import prepare_activation
from weft.runtime.flow.calls import step_call
from weft.runtime.flow.preparing import prepare_step
from weft.runtime.models import (
    JUDGEMENT,
    compare,
    judge_messages,
    parse_judgement,
    question_of,
    reply_event,
    tool_messages,
)
from weft.runtime.runs.decision import Decision, NewEvent
from weft.runtime.runs.effects import HeldRuns, Pace
from weft.runtime.runs.live_stream import text_sender
from weft.runtime.runs.ownership import Ownership
from weft.runtime.tools.calls import ToolCaller
from weft.runtime.tools.code_call import CodeCall, CodePorts
from weft.runtime.tools.questions import CallingRun
from weft.runtime.variables.fetching import fetch, hidden_settings, read_variable, without_secrets
from weft.runtime.variables.json_values import masked
from weft.runtime.variables.sources import write_entity
from weft.runtime.variables.values import secret_values
from weft.runtime.workflow import Workflow, in_run
from weft.spec.agents import ModelSettings
from weft.spec.variables import EntitySource

#: The longest part of a turn's name in the id of a tool call: providers limit the length of ids.
_NAME_CHARACTERS: Final = 20

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
    """Ignore a decision: no callback is set."""


@dataclass
class Performer:
    """Performs commands with the ports of a host."""

    models: ModelSource
    clock: Clock
    #: Receives streamed text.
    live: LiveStream
    outside: ExternalPorts
    vault: Vault
    code_ports: CodePorts
    #: Called when something was written to a run.
    tell: Callable[[Decision], None] = _nothing
    #: The owner of the runs, set by the worker.
    ownership: Ownership = field(init=False)
    #: The context variables of all runs, whichever task started them.
    context: contextvars.Context = field(default_factory=contextvars.copy_context)
    pace: Pace = field(default_factory=Pace)
    holding: HeldRuns = field(default_factory=HeldRuns)
    tools: ToolCaller = field(init=False)

    def __post_init__(self) -> None:
        """Create the tool caller."""
        self.tools = ToolCaller(
            ports=self.code_ports,
            outside=self.outside,
            consult=self.consult,
            secrets_of=self.secrets_of,
            tell=lambda run, item: self.live.publish((run.scope.app, item.run), item),
            vault=self.vault,
        )

    async def on_ended(self, run: CallingRun) -> None:
        """Drop the caches of a run that has ended."""
        key = (run.scope.app, run.state.run)
        self.code_ports.searches.forget(*key)
        if any(form.secret_fields for form in run.workflow.forms.values()):
            await self.vault.drop(key)

    def perform(
        self, run: CallingRun, command: Effect, assembly: Assembly | None
    ) -> Coroutine[Any, Any, tuple[NewEvent, ...]]:
        """Return the coroutine that performs a command, not started yet."""
        match command:
            case CallModel():
                return self.call_model(run, command, assembly)
            case CallTool():
                return self.call_tool(run, command)
            case Fetch():
                return self.fetch(run, command)
            case WriteDocument():
                return self.write_document(run, command)
            case Judge():
                return self.judge(run, command)

    async def call_model(
        self, run: CallingRun, command: CallModel, assembly: Assembly | None
    ) -> tuple[NewEvent, ...]:
        """Ask a model."""
        workflow, state, scope = run.workflow, run.state, run.scope
        view, settings = workflow.views[command.agent], workflow.settings.get(command.agent)
        sent = assembly or assemble(view, state, command.turn)
        key = (scope.app, state.run)

        def on_retry(text: str) -> None:
            self.live.publish(key, ModelRetry(key[1], command.seq, text))

        request = ModelRequest(
            model=state.model or workflow.models[command.agent] or "",
            run=state.run,
            agent=command.agent,
            turn=command.turn,
            call=command.call,
            key=f"{scope.app}/{state.run}:{command.seq}",
            messages=sent.messages,
            tools=sent.tools,
            output=view.output,
            settings=settings and in_run(settings, scope.app, workflow.name, state.run),
            on_retry=on_retry,
            app=scope.app,
        )
        result: EventData
        try:
            model = self.models(request.model, workflow, scope)
        except UsageError as error:
            # Not a failure of the run: it continues in a process that knows the model.
            raise RunError(str(error)) from error
        try:
            # Text that hooks have not processed yet is not streamed.
            streams = not workflow.compiled.agents[command.agent].send
            streams = streams and self.live.has_subscribers(key)
            send_text = text_sender(self.live, key, command.seq) if streams else None
            with user_code:
                reply = await model.reply(request, send_text)
            if send_text is not None:  # Followers get the pieces before the whole reply.
                await asyncio.sleep(0)
            await self.pace.turn()
            state = run.state
            active = state.active.get(command.turn)
            turn = (active.name if active else "")[:_NAME_CHARACTERS] or str(command.turn)
            result = reply_event(workflow, state, command, reply, turn)
        except ModelError as error:
            result = ModelFailed(command.call, str(error), error.attempts, error.retries)
        except Exception as error:  # noqa: BLE001 - a command's outcome becomes an event
            _log.exception("the model of %s failed unexpectedly", command.agent)
            result = ModelFailed(command.call, describe_error(error))
        return (NewEvent(f"agent:{command.agent}", result, command.seq, command.turn),)

    async def call_tool(self, run: CallingRun, command: CallTool) -> tuple[NewEvent, ...]:
        """Call a tool, a hook or a tool of a server."""
        return await self.tools.call(run, command, _call_key(run, command))

    async def fetch(self, run: CallingRun, command: Fetch) -> tuple[NewEvent, ...]:
        """Read values from outside the run."""
        found: list[EventData] = [ContextFetched({}, {})]
        if command.names or command.servers:
            outside = self.outside.for_app(run.scope.app)
            found = await fetch(outside, run.workflow, run.state, command)
        if command.board:
            found = [*found[:-1], await self._with_board(run, command, found[-1])]
        if command.flow:
            found = [*found[:-1], await self._with_step(run, command, found)]
        if run.workflow.has_secrets:
            environment = self.outside.for_app(run.scope.app).environment
            hidden = hidden_settings(run.workflow, environment)
            found = without_secrets(found, hidden)
        return tuple([NewEvent(SOURCE, data, command.seq, command.turn) for data in found])

    async def _with_board(self, run: CallingRun, command: Fetch, read: EventData) -> EventData:
        """Add the results of a board's providers and components to the fetched values."""
        active = run.state.active[command.turn]
        call = Call("", key=_named_key(run, f"fetch-{active.name}"), app=run.scope.app)
        given, fault = await prepare_activation(self._code_call(run, command, call))
        fetched = cast("ContextFetched", read)
        return replace(fetched, board=given, error=fault)

    async def _with_step(
        self, run: CallingRun, command: Fetch, read: Sequence[EventData]
    ) -> EventData:
        """Add the context of a flow step to the fetched values."""
        call = Call("", key=f"{run.scope.app}/{run.state.run}:{command.seq}", app=run.scope.app)
        fresh = {event.name: event.value for event in read if isinstance(event, VariableSet)}
        code = replace(self._code_call(run, command, call), fresh=fresh)
        given, fault = await prepare_step(step_call(code))
        if fault:
            given, fault = await self._unsecret(run, given, fault)
        fetched = cast("ContextFetched", read[-1])
        return replace(fetched, step=given, error=fault)

    def _code_call(self, run: CallingRun, command: Fetch, call: Call) -> CodeCall:
        state = run.state
        return CodeCall(self.code_ports, run.workflow, state, call, state.active[command.turn])

    async def _unsecret(
        self, run: CallingRun, given: StepInput, fault: str
    ) -> tuple[StepInput, str]:
        """Return the message of an error with its secrets masked."""
        try:
            secrets = await self.secrets_of(run)
        except (UsageError, PortError) as error:  # It was set when the run started.
            return {}, str(error)
        return cast("Any", masked(cast("Json", given), secrets)), str(masked(fault, secrets))

    async def write_document(self, run: CallingRun, command: WriteDocument) -> tuple[NewEvent, ...]:
        """Write the current value of an entity variable to its document."""
        state = run.state
        source = run.workflow.spec.variables[command.name].source
        fault = ""
        try:
            if isinstance(source, EntitySource):
                value, values = state.variables.get(command.name), values_of(state, 0)
                with user_code:
                    await write_entity(self.outside, source, value, app=state.app, values=values)
        except TimeoutError:
            fault = "the document store did not answer in time"
        except (PortError, UsageError) as error:
            fault = str(error)
        except Exception as error:  # noqa: BLE001 - a command's outcome becomes an event
            _log.exception("the document of %s could not be written", command.name)
            fault = f"it failed unexpectedly, with {error_type(error)}"
        return (NewEvent(SOURCE, DocumentWritten(command.name, command.seq, fault), command.seq),)

    async def judge(self, run: CallingRun, command: Judge) -> tuple[NewEvent, ...]:
        """Decide a condition in words with a model, or by the nearest meaning."""
        if run.workflow.spec.handoffs[command.rule].condition_type == "nearest":
            compared = await compare(self.code_ports.similarity, run.workflow, run.state, command)
            return (NewEvent(f"agent:{command.agent}", compared, command.seq),)
        messages = judge_messages(run.workflow, run.state, command)
        try:
            reply = await self._ask(run, command.agent, command.seq, messages, JUDGEMENT)
        except (
            UsageError
        ) as error:  # Not a failure of the run: it continues in a process that knows the model.
            raise RunError(str(error)) from error
        except ModelError as error:
            fault = f"the model gave no answer: {error}"
            result = ConditionJudged(command.rule, holds=False, text="", error=fault)
        else:
            facts = {"usage": reply.usage, "model": reply.model, "answerer": reply.answerer}
            result = parse_judgement(command, reply.text, facts)
        return (NewEvent(f"agent:{command.agent}", result, command.seq),)

    async def consult(
        self, run: CallingRun, command: CallTool, instruction: str, output: OutputSchema | None
    ) -> ModelReply:
        """Ask the model of an agent on behalf of one of its tools."""
        messages = tool_messages(instruction)
        return await self._ask(run, command.agent, command.seq, messages, output, command.turn)

    async def _ask(
        self,
        run: CallingRun,
        agent: str,
        seq: int,
        messages: list[ChatMessage],
        output: OutputSchema | None,
        turn: int = 0,
    ) -> ModelReply:
        """Ask a model outside of the conversation; raises ModelError or UsageError."""
        named = run.workflow.models.get(agent, run.workflow.spec.orchestrator.model)
        request = ModelRequest(
            model=run.state.model or named or "",
            run=run.state.run,
            agent=agent,
            turn=turn,
            call=0,
            key=f"{run.scope.app}/{run.state.run}:{seq}",
            messages=messages,
            output=output,
            settings=_settings(run, agent),
            question=question_of(messages, output),
            app=run.scope.app,
        )
        try:
            model = self.models(request.model, run.workflow, run.scope)
            with user_code:
                reply = await model.reply(request)
            for text in (reply.text, reply.model):
                text.encode()
        except (ModelError, UsageError):
            raise
        except Exception as error:  # every error becomes an event
            _log.exception("the model of %s failed unexpectedly", agent)
            raise ModelError(describe_error(error)) from error
        return reply

    async def secrets_of(self, run: CallingRun) -> Mapping[str, Json]:
        """Return the current values of all secrets of a workflow."""
        workflow, state = run.workflow, run.state
        if not workflow.has_secrets:
            return {}
        outside = self.outside.for_app(run.scope.app)
        values = secret_values(workflow.compiled, outside.environment)
        for name, variable in workflow.spec.variables.items():
            if variable.secret and refreshed(variable.source) is not None:
                reading, fault = await read_variable(outside, workflow, state, 0, name)
                if reading is None:
                    raise ToolError(f"the secret {name} could not be read: {fault}")
                values[name] = reading.value
        return {**values, **hidden_settings(workflow, outside.environment)}


def _settings(run: CallingRun, agent: str) -> ModelSettings | None:
    workflow = run.workflow
    settings = workflow.settings.get(agent)
    return settings and in_run(settings, run.scope.app, workflow.name, run.state.run)


def _call_key(run: CallingRun, command: CallTool) -> str:
    """Return the key by which a tool recognises a repeated call.

    On a board it has no event number, which would reveal events that the agent may not see.
    """
    active = run.state.active.get(command.turn)
    named = active is not None and active.name
    return _named_key(run, command.id if named else str(command.seq))


def _named_key(run: CallingRun, name: str) -> str:
    return f"{run.scope.app}/{run.state.run}:{name}"
