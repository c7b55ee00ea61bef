"""Performing tool calls: functions of the package, hooks, engines, steps, tools of servers."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import count
from typing import Final, cast

from pydantic_core import from_json

from weft.context.user_code import user_code
from weft.engine.commands import CallTool
from weft.engine.events import (
    ContextFetched,
    EventData,
    ModelConsulted,
    RequestOpened,
    SurfaceShown,
    ToolFailed,
    ToolReturned,
)
from weft.engine.events.kinds import BOARD_HOOKS, STEP_HOOKS, FailureKind
from weft.engine.turn.calls import Offered, held_reply, offered_tools
from weft.errors import Ask, ModelError, PortError, Refuse, RetryModel, ToolError, UsageError
from weft.findings import Json
from weft.ports.external import ExternalPorts, ServiceRequest
from weft.ports.live import ToolProgress
from weft.ports.model import ModelReply, OutputSchema
from weft.ports.tools import Call
from weft.ports.vault import Vault
from weft.runtime.board.calls import call_engine
from weft.runtime.flow.calls import call_step, exception_of, step_call
from weft.runtime.models import question_of, tool_messages
from weft.runtime.runs.decision import NewEvent
from weft.runtime.tools.code_call import CodeCall, CodePorts
from weft.runtime.tools.context_variables import Context
from weft.runtime.tools.forms import SERVICE, approval_form
from weft.runtime.tools.hooks import HookInput
from weft.runtime.tools.questions import CallingRun, Questions
from weft.runtime.variables.fetching import reach, read_variable, without_secrets
from weft.runtime.variables.json_values import masked, plain_json
from weft.runtime.variables.sources import service_request
from weft.spec.variables import ExternalSource, is_call

_log: Final = logging.getLogger("weft.runtime")

#: Asks the model of an agent outside of the conversation.
Consult = Callable[[CallingRun, CallTool, str, OutputSchema | None], Awaitable[ModelReply]]


@dataclass
class ToolCaller:
    """Performs tool calls with the ports of a host."""

    ports: CodePorts
    outside: ExternalPorts
    consult: Consult
    #: Returns the current values of a workflow's secrets.
    secrets_of: Callable[[CallingRun], Awaitable[Mapping[str, Json]]]
    tell: Callable[[CallingRun, ToolProgress], None]
    vault: Vault

    async def call(self, run: CallingRun, command: CallTool, key: str) -> tuple[NewEvent, ...]:
        """Call a tool; return its result and the variables it has set, as events."""
        try:
            secrets = await self.secrets_of(run)
        except (UsageError, PortError) as error:  # It was set when the run started.
            return _events(command, ToolFailed(command.id, str(error)))
        call = _ToolRun(self, run, command, key, dict(secrets))
        await call.restore_answers()
        return await call.events()


class _ToolRun:
    """One tool call while it is performed."""

    def __init__(
        self,
        caller: ToolCaller,
        run: CallingRun,
        command: CallTool,
        key: str,
        secrets: dict[str, Json],
    ) -> None:
        self._caller = caller
        self._run = run
        self._command = command
        self._key = key
        #: Masked in everything that is recorded; secrets that are read or typed later are added.
        self._secrets = secrets
        self._context = Context(
            run.workflow.compiled,
            run.state,
            turn=command.turn,
            agent=command.agent,
            tool=command.tool.rpartition(":")[2],
            key=key,
            answers=tuple(answer.value for answer in command.answers),
            secrets=secrets,
            surroundings=self,
        )
        self._questions = Questions(
            run,
            command,
            caller.ports.clock,
            secrets,
            vault=caller.vault,
            on_answer=self._context.catch_up,
        )
        self._last_progress: tuple[float, str] | None = None
        #: Variables that the call has read again, and the errors of those reads.
        self._found: dict[str, Json] = {}
        self._faults: dict[str, str] = {}
        open_call = run.state.calls.get(command.id)
        self._consulted = list(open_call.consulted) if open_call else []
        self._is_auto = open_call is not None and open_call.auto
        self._shown_before = open_call.surfaces if open_call else 0
        self._surfaces = count()
        self._service_calls = count()

    async def restore_answers(self) -> None:
        """Read the secret answers that the call has had before."""
        if self._command.answers:
            await self._questions.restore()

    async def events(self) -> tuple[NewEvent, ...]:
        """Perform the call and return its events."""
        result = await self._result()
        written = self._context.finish()
        if isinstance(result, ToolReturned) and self._last_progress is not None:
            result = ToolReturned(result.id, result.value, self._last_progress)
        if isinstance(result, ToolReturned | ToolFailed):
            await self._questions.forget()
        counting: list[EventData] = list(written) if _counts(result) else []
        if self._found or self._faults:
            counting.append(ContextFetched(self._found, self._faults))
        if isinstance(result, RequestOpened):
            counting += held_reply(self._run.state, self._command.turn)
        return _events(self._command, *without_secrets(counting, self._secrets), result)

    async def _result(self) -> EventData:
        command = self._command
        try:
            with user_code:
                value = await self._value()
            return ToolReturned(command.id, masked(value, self._secrets))
        except Ask as signal:
            return self._question(signal)
        except Refuse as refusal:
            return self._failure_of(refusal, "refused")
        except RetryModel as signal:
            return self._failure_of(signal, "retry")
        except PortError as error:
            slow = isinstance(error.__cause__, TimeoutError)
            return self._failure_of(error, "timeout" if slow else "error")
        except Exception as error:  # noqa: BLE001 - a command's outcome becomes an event
            _log.exception("the tool %s failed unexpectedly", command.tool)
            return self._failure_of(error, "error")

    async def _value(self) -> Json:
        run, command = self._run, self._command
        offered = self._offered_by_server()
        if offered is not None:
            return await self._call_server(offered)
        call = Call(
            command.tool,
            key=self._key,
            app=run.scope.app,
            arguments=command.arguments,
            from_reply=self._is_auto,
            variables=self._context,
            ask=self._questions,
            show=self._show,
            restart_questions=self._questions.restart,
            mask=self._mask,
        )
        if command.hook in BOARD_HOOKS:
            return await call_engine(self._code_call(call), command.hook)
        if command.hook in STEP_HOOKS:
            return await call_step(step_call(self._code_call(call)), command.hook)
        if not command.hook:
            return await run.workflow.tools.call(call)
        hook = HookInput(run.workflow, run.state, command, self._context)
        returned = await run.workflow.tools.call(replace(call, offered=hook.arguments))
        return hook.changes(returned)

    def _code_call(self, call: Call) -> CodeCall:
        run, state = self._run, self._run.state
        active = state.active[self._command.turn]
        return CodeCall(self._caller.ports, run.workflow, state, call, active, self._context)

    def _offered_by_server(self) -> Offered | None:
        run, command = self._run, self._command
        if not run.state.offered or command.hook or not command.agent:
            return None
        rules = run.workflow.compiled.agents[command.agent]
        if command.tool in rules.tools or command.tool == rules.auto_tool:
            return None
        return offered_tools(run.state, rules.servers).get(command.tool)

    async def _call_server(self, offered: Offered) -> Json:
        """Call a tool of a server, after a person has approved it where that is required."""
        command, workflow, app = self._command, self._run.workflow, self._run.scope.app
        outside = self._caller.outside.for_app(app)
        if outside.servers is None:
            raise ToolError("this host has no tool servers")
        server = next(
            server for server in workflow.spec.mcp_servers if server.name == offered.server
        )
        if server.approval == "always" or (server.approval == "write" and not offered.reads):
            await self._approve(approval_form(server.name), command.tool, command.arguments)
        return await outside.servers.call(
            reach(server, workflow, outside, app),
            offered.tool,
            command.arguments,
            on_progress=self._context.progress,
        )

    async def _show(self, tool: str, payload: Json) -> None:
        """Show a component to a person; a repeated call does not show it again."""
        number = next(self._surfaces)
        payload = masked(payload, self._secrets)
        form = self._run.workflow.forms.get(tool)
        if form is None or form.component is None:
            raise ToolError(f"the package has no UI tool {tool} that could be shown")
        error = form.payload_error(payload)
        if error:
            raise ToolError(f"the payload of {tool} does not match its payload_schema: {error}")
        if number < self._shown_before:
            return
        component, mode = form.component
        shown = SurfaceShown(self._command.id, number, tool, component, mode, payload)
        await self._run.note(self._command, shown)

    # -- used through the context variables of a tool

    async def ask_model(self, instruction: str, output: OutputSchema | None) -> str:
        instruction = self._mask(instruction)
        question = question_of(tool_messages(instruction), output)
        for consulted in self._consulted:
            if consulted.digest == question:
                self._consulted.remove(consulted)
                return str(consulted.value)
        try:
            reply = await self._caller.consult(self._run, self._command, instruction, output)
        except (ModelError, UsageError) as error:
            raise ToolError(f"the model gave no answer: {error}") from error
        text = self._mask(reply.text)
        await self._run.note(
            self._command,
            ModelConsulted(
                self._command.id, question, text, reply.usage, reply.model, reply.answerer
            ),
        )
        return text

    async def refreshed(self, name: str, values: Mapping[str, Json]) -> Json:
        run, command = self._run, self._command
        source = run.workflow.spec.variables[name].source
        outside, key = self._caller.outside.for_app(run.scope.app), ""
        if isinstance(source, ExternalSource) and is_call(source):
            key = sha256(f"{self._key}:{name}:{next(self._service_calls)}".encode()).hexdigest()
            await self._approve_service(name, service_request(outside, source, values, key), source)
        reading, fault = await read_variable(
            outside, run.workflow, run.state, command.turn, name, values, key
        )
        if fault:
            self._faults[name] = fault
        if reading is None:
            raise ToolError(f"{name} could not be read: {fault}")
        self._found[name] = reading.note
        if run.workflow.compiled.variables[name].secret:
            self._secrets[f"{name} read again"] = reading.value
        return reading.value

    async def _approve_service(
        self, name: str, request: ServiceRequest, source: ExternalSource
    ) -> None:
        """Let a person approve a call of a service, unless its source needs no approval."""
        if source.approval == "write":
            shown: dict[str, Json] = {"method": request.method, "url": request.url}
            if request.body is not None:
                shown["body"] = from_json(request.body)
            what = f"{request.service} {request.operation}"
            await self._approve(approval_form(f"{SERVICE}{name}"), what, shown)

    async def _approve(self, form: str, tool: str, arguments: Mapping[str, Json]) -> None:
        shown: dict[str, Json] = {"tool": tool, "arguments": dict(arguments)}
        answer = cast("dict[str, Json]", await self._questions(form, shown, None, None))
        if answer.get("approved") is not True:
            comment = f": {answer['comment']}" if answer.get("comment") else ""
            raise Refuse(f"a person did not approve the call of {tool}{comment}")

    def progress(self, share: float, text: str) -> None:
        text = self._mask(text)
        self._last_progress = (share, text)
        command = self._command
        progress = ToolProgress(self._run.state.run, command.seq, command.tool, share, text)
        self._caller.tell(self._run, progress)

    def _mask(self, text: str) -> str:
        return str(masked(text, self._secrets))

    # -- results

    def _failure_of(self, error: Exception, kind: FailureKind) -> ToolFailed:
        """Return the failure for the agent, with secrets masked."""
        command, message = self._command, self._mask(str(error))
        if command.hook not in STEP_HOOKS:
            return ToolFailed(command.id, message, kind)
        raised = masked(cast("Json", exception_of(error)), self._secrets)
        return ToolFailed(command.id, message, kind, cast("dict[str, Json] | None", raised))

    def _question(self, signal: Ask) -> EventData:
        """Return the request of a tool, or a failure if it is invalid."""
        command = self._command
        try:
            payload, otherwise = plain_json(signal.payload), plain_json(signal.otherwise)
            return self._questions.opened(command.tool, payload, signal.timeout, otherwise)
        except (ValueError, ToolError, UsageError) as error:
            message = f"{command.tool} asked an invalid question: {error}"
            return ToolFailed(command.id, message)


def _events(command: CallTool, *results: EventData) -> tuple[NewEvent, ...]:
    actor = f"tool:{command.tool}"
    return tuple(NewEvent(actor, result, command.seq, command.turn) for result in results)


def _counts(result: EventData) -> bool:
    """Return whether the variables that a call has set are kept: it has returned or declined.

    A call that asks a person is repeated after the answer, and sets them again.
    """
    if isinstance(result, ToolFailed):
        return result.kind == "refused"
    return isinstance(result, ToolReturned)
