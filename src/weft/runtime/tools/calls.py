"""Calling tools: functions of the package, hooks at boundaries, tools of servers."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Final, cast

from weft.context.similarity import Similarity
from weft.engine.board.turn import POINTS
from weft.engine.commands import CallTool
from weft.engine.events import (
    ContextFetched,
    EventData,
    ModelConsulted,
    SurfaceShown,
    ToolFailed,
    ToolReturned,
)
from weft.engine.events.calls import FailureKind
from weft.engine.flow.turn import POINTS as STEP_POINTS
from weft.engine.turn.offered import Offered, offered_tools
from weft.errors import Ask, ModelError, PortError, Refuse, RetryModel, ToolError, UsageError
from weft.findings import Json
from weft.ports.board import BoardStore
from weft.ports.clock import Clock
from weft.ports.model import ModelReply, OutputSchema
from weft.ports.tools import ShowPerson, ToolCall
from weft.runtime.board.calls import BoardCall, called
from weft.runtime.external_ports import Outside
from weft.runtime.flow.calls import FlowCall, exception_of
from weft.runtime.flow.calls import called as called_step
from weft.runtime.flow.retrieval import RunSearches, SearchMemory
from weft.runtime.models.consulting import question_of, tool_messages
from weft.runtime.runs.decision import NewEvent
from weft.runtime.runs.live_stream import ToolProgress
from weft.runtime.tools.context_variables import Context
from weft.runtime.tools.forms import approval_form
from weft.runtime.tools.hooks import HookCall
from weft.runtime.tools.questions import CallingRun, Questions
from weft.runtime.variables.fetching import reach, read_variable, without_secrets
from weft.runtime.variables.json_values import plain_json
from weft.runtime.variables.masking import masked
from weft.runtime.variables.secrets import SecretAnswers

_log: Final = logging.getLogger("weft.runtime")

NOTHING_FRESH: Final[Mapping[str, Json]] = {}

#: Asks the model of an agent something beside the conversation.
Consult = Callable[[CallingRun, CallTool, str, OutputSchema | None], Awaitable[ModelReply]]


@dataclass
class ToolCaller:
    """Carries out calls of tools with the ports of a host."""

    clock: Clock
    journal: BoardStore
    outside: Outside
    consult: Consult
    #: The values of a workflow's secrets, as they are now.
    secrets_of: Callable[[CallingRun], Awaitable[Mapping[str, Json]]]
    tell: Callable[[CallingRun, ToolProgress], None]
    secret_answers: SecretAnswers
    similarity: Similarity | None
    searches: SearchMemory

    async def call(self, run: CallingRun, command: CallTool, key: str) -> tuple[NewEvent, ...]:
        """Call a tool; what came of it, with all it has set, as events."""
        try:
            secrets = await self.secrets_of(run)
        except (UsageError, PortError) as error:  # It was there when the run began.
            return _results(command, ToolFailed(command.id, str(error)))
        hidden = dict(secrets)
        around = _Surroundings(self, run, command, hidden)
        context = Context(
            run.workflow.compiled,
            run.state,
            turn=command.turn,
            agent=command.agent,
            tool=command.tool.rpartition(":")[2],
            key=key,
            answers=tuple(it.value for it in command.answers),
            secrets=hidden,
            surroundings=around,
        )
        questions = Questions(
            run,
            command,
            self.clock,
            hidden,
            typed=self.secret_answers,
            on_answer=context.catch_up,
        )
        result = await self._result(run, command, key, context, questions, hidden)
        written = context.finish()
        if isinstance(result, ToolReturned) and around.last is not None:
            result = ToolReturned(result.id, result.value, around.last)
        if isinstance(result, ToolReturned | ToolFailed):
            self.secret_answers.forget(run.scope.app, f"{run.state.run}:{command.seq}:")
        counting = [*(written if _counts(result) else ()), *around.fetched()]
        return _results(command, *without_secrets(counting, hidden), result)

    async def _result(
        self,
        run: CallingRun,
        command: CallTool,
        key: str,
        context: Context,
        questions: Questions,
        secrets: Mapping[str, Json],
    ) -> EventData:
        try:
            value = await self._value(run, command, key, context, questions, secrets)
            return ToolReturned(command.id, masked(value, secrets))
        except Ask as signal:
            return _asks(questions, command, signal)
        except Refuse as refusal:
            return _failed(command, refusal, "refused", secrets)
        except RetryModel as signal:
            return _failed(command, signal, "retry", secrets)
        except PortError as error:
            slow = isinstance(error.__cause__, TimeoutError)
            return _failed(command, error, "timeout" if slow else "error", secrets)
        except Exception as error:  # noqa: BLE001 - a command's outcome becomes an event
            _log.exception("the tool %s failed unexpectedly", command.tool)
            return _failed(command, error, "error", secrets)

    async def _value(
        self,
        run: CallingRun,
        command: CallTool,
        key: str,
        context: Context,
        questions: Questions,
        secrets: Mapping[str, Json],
    ) -> Json:
        offered = self._offered(run, command)
        if offered is not None:
            return await self._of_server(run, command, offered, questions, context)
        numbers = count()

        async def show(tool: str, payload: Json) -> None:
            await self._show(run, command, tool, masked(payload, secrets), next(numbers))

        if command.point in POINTS:
            board = BoardCall(
                store=self.journal,
                clock=self.clock,
                workflow=run.workflow,
                state=run.state,
                active=run.state.active[command.turn],
                call=self._tool_call(run, command, key, context, questions, show),
                variables=context,
                similarity=self.similarity,
            )
            return await called(board, command.point)
        if command.point in STEP_POINTS:
            call = self._tool_call(run, command, key, context, questions, show)
            return await called_step(self.step_call(run, command.turn, call), command.point)
        hook = HookCall(run.workflow, run.state, command, context) if command.point else None
        call = self._tool_call(run, command, key, context, questions, show)
        given = None if hook is None else hook.given
        value = await run.workflow.tools.call(replace(call, given=given))
        return value if hook is None else hook.result(value)

    def step_call(
        self, run: CallingRun, turn: int, call: ToolCall, fresh: Mapping[str, Json] = NOTHING_FRESH
    ) -> FlowCall:
        """Return the activation of a flow whose code is to be called."""
        state = run.state
        return FlowCall(
            store=self.journal,
            clock=self.clock,
            searches=RunSearches(state.app, state.run, self.outside.retrievers, self.searches),
            workflow=run.workflow,
            state=state,
            active=state.active[turn],
            call=call,
            fresh=fresh,
        )

    def _tool_call(
        self,
        run: CallingRun,
        command: CallTool,
        key: str,
        context: Context,
        questions: Questions,
        show: ShowPerson,
    ) -> ToolCall:
        return ToolCall(
            id=command.id,
            run=run.state.run,
            agent=command.agent,
            tool=command.tool,
            key=key,
            arguments=command.arguments,
            variables=context,
            ask=questions,
            show=show,
            auto=_is_auto(run, command),
            answer_again=questions.restart,
        )

    def _offered(self, run: CallingRun, command: CallTool) -> Offered | None:
        if not run.state.offered or command.point or not command.agent:
            return None
        rules = run.workflow.compiled.agents[command.agent]
        if command.tool in rules.tools or command.tool == rules.auto_tool:
            return None
        return offered_tools(run.state, rules.servers).get(command.tool)

    async def _of_server(
        self,
        run: CallingRun,
        command: CallTool,
        offered: Offered,
        questions: Questions,
        context: Context,
    ) -> Json:
        """Call a tool of a server, after a person has approved it where that is asked for."""
        servers = self.outside.servers
        if servers is None:
            raise ToolError("no tool servers can be used here")
        server = next(it for it in run.workflow.spec.mcp_servers if it.name == offered.server)
        if server.approval == "always" or (server.approval == "write" and not offered.reads):
            shown = {"tool": command.tool, "arguments": command.arguments}
            answer = await questions(approval_form(server.name), shown, None, None)
            if not (isinstance(answer, dict) and answer.get("approved") is True):  # pyright: ignore[reportUnknownMemberType]
                raise Refuse(f"a person did not approve the call of {command.tool}")
        return await servers.call(
            reach(server, run.workflow, self.outside),
            offered.tool,
            command.arguments,
            on_progress=context.progress,
        )

    async def _show(
        self, run: CallingRun, command: CallTool, tool: str, payload: Json, number: int
    ) -> None:
        """Show a person something; a repeated call does not show again what was shown."""
        form = run.workflow.forms.get(tool)
        if form is None or form.component is None:
            raise ToolError(f"the package has no UI tool {tool} that could be shown")
        fault = form.payload_error(payload)
        if fault:
            raise ToolError(f"what {tool} shows does not fit its payload_schema: {fault}")
        open_call = run.state.calls.get(command.id)
        if open_call is not None and number < open_call.surfaces:
            return
        component, mode = form.component
        shown = SurfaceShown(command.id, number, tool, component, mode, payload)
        await run.note(command, shown)


class _Surroundings:
    """What one call can do beside reading and setting variables."""

    def __init__(
        self, caller: ToolCaller, run: CallingRun, command: CallTool, hidden: dict[str, Json]
    ) -> None:
        self._caller = caller
        #: What nobody is told; a secret that is read anew is added to it.
        self._hidden = hidden
        self._run = run
        self._command = command
        self.last: tuple[float, str] | None = None
        #: What was read anew in the course of the call, and why some of it could not be.
        self.found: dict[str, Json] = {}
        self.faults: dict[str, str] = {}
        open_call = run.state.calls.get(command.id)
        self._given = list(open_call.consulted) if open_call else []

    async def ask_model(self, instruction: str, output: OutputSchema | None) -> str:
        instruction = self._masked(instruction)
        question = question_of(tool_messages(instruction), output)
        for it in self._given:
            if it.digest == question:
                self._given.remove(it)
                return str(it.value)
        try:
            reply = await self._caller.consult(self._run, self._command, instruction, output)
        except (ModelError, UsageError) as error:
            raise ToolError(f"the model gave no answer: {error}") from error
        text = self._masked(reply.text)
        await self._run.note(
            self._command,
            ModelConsulted(
                self._command.id, question, text, reply.usage, reply.model, reply.answerer
            ),
        )
        return text

    async def refreshed(self, name: str, values: Mapping[str, Json]) -> Json:
        run, command = self._run, self._command
        reading, fault = await read_variable(
            self._caller.outside, run.workflow, run.state, command.turn, name, values
        )
        if fault:
            self.faults[name] = fault
        if reading is None:
            raise ToolError(f"{name} could not be read: {fault}")
        self.found[name] = reading.note
        if run.workflow.compiled.variables[name].secret:
            self._hidden[f"{name} anew"] = reading.value
        return reading.value

    def fetched(self) -> list[EventData]:
        """Return what is put down of all that was read anew."""
        read = self.found or self.faults
        return [ContextFetched(self.found, self.faults)] if read else []

    def progress(self, share: float, text: str) -> None:
        text = self._masked(text)
        self.last = (share, text)
        command = self._command
        told = ToolProgress(self._run.state.run, command.seq, command.tool, share, text)
        self._caller.tell(self._run, told)

    def _masked(self, text: str) -> str:
        return str(masked(text, self._hidden))


def _results(command: CallTool, *results: EventData) -> tuple[NewEvent, ...]:
    actor = f"tool:{command.tool}"
    return tuple(NewEvent(actor, it, command.seq, command.turn) for it in results)


def _is_auto(run: CallingRun, command: CallTool) -> bool:
    opened = run.state.calls.get(command.id)
    return opened is not None and opened.auto


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
    told = str(masked(str(error), secrets))
    if command.point not in STEP_POINTS:
        return ToolFailed(command.id, told, kind)
    raised = masked(cast("Json", exception_of(error)), secrets)
    return ToolFailed(command.id, told, kind, cast("dict[str, Json] | None", raised))


def _asks(questions: Questions, command: CallTool, signal: Ask) -> EventData:
    """Return the question a tool has raised, or why it cannot be asked."""
    try:
        payload, otherwise = plain_json(signal.payload), plain_json(signal.otherwise)
        return questions.opened(command.tool, payload, signal.timeout, otherwise)
    except (ValueError, ToolError, UsageError) as error:
        return ToolFailed(command.id, f"{command.tool} asked a question that cannot be: {error}")
