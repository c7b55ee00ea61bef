"""Questions of tools to people, bound to the call that asks."""

import hashlib
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Protocol

from pydantic_core import to_json

from weft.context.segment import values_of
from weft.engine.commands import CallTool
from weft.engine.events import EventData, RequestOpened
from weft.engine.state import GivenAnswer, State
from weft.errors import ToolError, UsageError
from weft.findings import Json
from weft.ids import suggestion
from weft.ports.clock import Clock
from weft.ports.scope import Scope
from weft.ports.store import RunKey
from weft.ports.vault import SecretAnswer, Vault
from weft.runtime.tools.forms import Form
from weft.runtime.tools.tool_api import check_timeout
from weft.runtime.variables.json_values import has_mask, masked
from weft.runtime.variables.sources import fill_template
from weft.runtime.workflow import Workflow


class CallingRun(Protocol):
    """The interface of an active run that tool calls use."""

    @property
    def scope(self) -> Scope: ...

    @property
    def workflow(self) -> Workflow: ...

    @property
    def state(self) -> State: ...

    def ask(self, command: CallTool, opened: RequestOpened) -> None:
        """Open the question of a tool."""
        ...

    async def answer(self, command: CallTool, opened: RequestOpened) -> Json:
        """Wait for the answer to the question of a tool."""
        ...

    async def note(self, command: CallTool, data: EventData) -> None:
        """Record an event during a call, and return when it is durable."""
        ...


class Questions:
    """Asks people on behalf of one tool call; earlier answers are returned at once."""

    def __init__(
        self,
        run: CallingRun,
        command: CallTool,
        clock: Clock,
        secrets: MutableMapping[str, Json],
        *,
        vault: Vault,
        on_answer: Callable[[State], None],
    ) -> None:
        #: Masked in every text; secrets that a person types are added.
        self._secrets = secrets
        self._run = run
        self._command = command
        self._clock = clock
        self._vault = vault
        #: Answers with secret fields, as they were typed, by request.
        self._typed: Mapping[str, SecretAnswer] = {}
        self._has_secrets = any(form.secret_fields for form in run.workflow.forms.values())
        self._on_answer = on_answer
        #: All earlier answers of this call, and those not returned yet in this attempt: each
        #: is returned for the same question only, and once.
        self._had: list[GivenAnswer] = []
        self._given: list[GivenAnswer] = []
        self._number = len(command.answers)
        #: The last unanswered question, and whether the tool is waiting for it.
        self._open: RequestOpened | None = None
        self._waits = False

    async def restore(self) -> None:
        """Read the answers that the call has had before."""
        await self._read_secrets()
        self._had += self._revealed(self._command.answers)
        self._given = self._usable()

    async def forget(self) -> None:
        """Delete the secret answers: the call is over."""
        if self._typed:
            await self._vault.drop(self._key, self._prefix)

    @property
    def _key(self) -> RunKey:
        return self._run.scope.app, self._run.state.run

    @property
    def _prefix(self) -> str:
        """The beginning of the ids of all requests of this call."""
        return f"{self._run.state.run}:{self._command.seq}:"

    async def _read_secrets(self) -> None:
        if self._has_secrets:
            self._typed = await self._vault.get(self._key, self._prefix)

    async def __call__(
        self, tool: str, payload: Json, seconds: float | None, otherwise: Json
    ) -> Json:
        """Ask, and return the answer.

        A tool may stop waiting; its question stays open, and it can wait for it again.
        """
        if self._waits:
            raise self._too_early()
        self._refuse_unknown(tool)
        opened = self.opened(tool, payload, seconds, otherwise)
        await self._take_late_answers()
        for answer in self._given:
            if answer.digest == opened.digest:
                self._given.remove(answer)
                return answer.value
        if self._open is None:
            self._number += 1
            self._open = opened
            self._run.ask(self._command, opened)
        elif self._open.digest != opened.digest:  # Its answer would be used for this question.
            raise self._too_early()
        return await self._answer(self._open)

    async def _answer(self, asked: RequestOpened) -> Json:
        self._waits = True
        try:
            value = await self._run.answer(self._command, asked)
        finally:
            self._waits = False
        self._open = None
        self._on_answer(self._run.state)
        await self._read_secrets()
        (given,) = self._revealed((GivenAnswer(asked.digest, value),))
        self._had.append(given)
        return given.value

    def _revealed(self, answers: Sequence[GivenAnswer]) -> list[GivenAnswer]:
        """Return answers with the values of secret fields, while the vault has them."""
        found: list[GivenAnswer] = []
        for number, given in enumerate(answers, start=len(self._had)):
            request = f"{self._prefix}{number}"
            typed = self._typed.get(request)
            if typed is not None:
                for at, secret in enumerate(typed.secrets):
                    self._secrets[f"{request}.{at}"] = secret
            found.append(given if typed is None else GivenAnswer(given.digest, typed.value))
        return found

    def _usable(self) -> list[GivenAnswer]:
        """Return the complete answers; a question whose secret is gone is asked again."""
        return [answer for answer in self._had if not has_mask(answer.value)]

    async def _take_late_answers(self) -> None:
        """Store answers that arrived after the call stopped waiting."""
        call = self._run.state.calls.get(self._command.id)
        late = call.answers[len(self._had) :] if call else ()
        if late:
            self._open = None
            await self._read_secrets()
            known = self._revealed(late)
            self._had += known
            self._given += [answer for answer in known if not has_mask(answer.value)]

    def _too_early(self) -> UsageError:
        return UsageError(
            f"{self._command.tool} asks a second question before the first is answered",
            hint="await one use_ui_tool after the other, or ask both in one",
        )

    def restart(self) -> None:
        """Reuse the answers in the next attempt, so that no person is asked twice."""
        self._given = self._usable()

    def opened(
        self, tool: str, payload: Json, seconds: float | None, otherwise: Json
    ) -> RequestOpened:
        """Return the event that opens a question, with the next number of this call."""
        check_timeout(seconds)
        payload, otherwise = masked(payload, self._secrets), masked(otherwise, self._secrets)
        form = self._run.workflow.forms.get(tool)
        fault = form.payload_error(payload) if form else None
        if fault:
            raise ToolError(f"the payload of {tool} does not match its payload_schema: {fault}")
        fault = form.answer_error(otherwise) if form and otherwise is not None else None
        if fault:
            raise ToolError(f"the default answer of {tool} is invalid: {fault}")
        settings = self._run.workflow.compiled.triggers.ui_response.get(tool, ())
        return RequestOpened(
            id=f"{self._run.state.run}:{self._command.seq}:{self._number}",
            kind="ui",
            agent=self._command.agent,
            tool=tool,
            call=self._command.id,
            number=self._number,
            payload=payload,
            digest=hashlib.sha256(to_json([tool, payload, self._command.arguments])).hexdigest(),
            expires_at=None if seconds is None else self._clock.now() + round(seconds * 1000),
            otherwise=otherwise,
            sets=tuple(dict.fromkeys(setting.variable for setting in settings)),
            component=form.component[0] if form and form.component else "",
            mode=form.component[1] if form and form.component else "",
            addressee=self._addressee(form),
        )

    def _addressee(self, form: Form | None) -> str:
        if form is None or not form.addressee:
            return ""
        values = values_of(self._run.state, self._command.turn)
        addressee = str(fill_template(form.addressee, values))
        if not addressee.partition(":")[2].strip():
            raise ToolError(
                f"the addressee {form.addressee} is {addressee}, so there is no one to ask"
            )
        return addressee

    def _refuse_unknown(self, tool: str) -> None:
        """Refuse the question of a tool that the package does not declare."""
        forms = self._run.workflow.forms
        if tool not in forms:
            remedy = suggestion(tool, forms, "declare it in tools.json as UI_Tool")
            raise ToolError(f"the package has no UI tool {tool}; {remedy}")
