"""Questions of tools to people: opened in the name of one call, and bound to it."""

import hashlib
from collections.abc import Callable, MutableMapping, Sequence
from typing import Protocol

from pydantic_core import to_json

from weft.context.segment import values_of
from weft.engine.commands import CallTool
from weft.engine.events import EventData, RequestOpened
from weft.engine.state import GivenAnswer, State
from weft.errors import ToolError, UsageError
from weft.findings import Json
from weft.ids import nearest
from weft.ports.clock import Clock
from weft.ports.scope import Scope
from weft.runtime.tools.forms import Form
from weft.runtime.tools.tool_api import check_timeout
from weft.runtime.variables.json_values import has_mask, masked
from weft.runtime.variables.sources import filled
from weft.runtime.variables.values import SecretAnswers
from weft.runtime.workflow import Workflow


class CallingRun(Protocol):
    """A run as those see it who work for it: an active run."""

    @property
    def scope(self) -> Scope: ...

    @property
    def workflow(self) -> Workflow: ...

    @property
    def state(self) -> State: ...

    def ask(self, command: CallTool, opened: RequestOpened) -> None:
        """Open a question for a tool."""
        ...

    async def answer(self, command: CallTool, opened: RequestOpened) -> Json:
        """Wait, in a tool, for the answer to its question."""
        ...

    async def note(self, command: CallTool, data: EventData) -> None:
        """Write something that happens in the course of a call, and return when it is written."""
        ...


class Questions:
    """Asks people on behalf of one tool call; answers it has had come back at once."""

    def __init__(
        self,
        run: CallingRun,
        command: CallTool,
        clock: Clock,
        secrets: MutableMapping[str, Json],
        *,
        typed: SecretAnswers,
        on_answer: Callable[[State], None],
    ) -> None:
        #: What no text may repeat; what a person types into a secret field is added to it.
        self._secrets = secrets
        self._run = run
        self._command = command
        self._clock = clock
        self._typed = typed
        self._on_answer = on_answer
        #: All answers that this call has had, and those of them that are still to be given: each
        #: for the same question only, and only once in an attempt.
        self._had: list[GivenAnswer] = []
        self._had += self._revealed(command.answers)
        self._given = self._usable()
        self._number = len(command.answers)
        #: The last question, until it is known to be answered, and whether it is waited for now.
        self._open: RequestOpened | None = None
        self._waits = False

    async def __call__(
        self, tool: str, payload: Json, seconds: float | None, otherwise: Json
    ) -> Json:
        """Ask, and return the answer.

        A tool may give up waiting, but its question stays open: it can wait for it once more.
        """
        if self._waits:
            raise self._too_early()
        self._refuse_unknown(tool)
        opened = self.opened(tool, payload, seconds, otherwise)
        self._take_late_answers()
        for answer in self._given:
            if answer.digest == opened.digest:
                self._given.remove(answer)
                return answer.value
        if self._open is None:
            self._number += 1
            self._open = opened
            self._run.ask(self._command, opened)
        elif self._open.digest != opened.digest:  # Its answer would be taken for one to this.
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
        (given,) = self._revealed((GivenAnswer(asked.digest, value),))
        self._had.append(given)
        return given.value

    def _revealed(self, answers: Sequence[GivenAnswer]) -> list[GivenAnswer]:
        """Return answers with what was typed into secret fields, as long as that is known here."""
        found: list[GivenAnswer] = []
        for number, given in enumerate(answers, start=len(self._had)):
            request = f"{self._run.state.run}:{self._command.seq}:{number}"
            typed = self._typed.get(self._run.scope.app, request)
            if typed is not None:
                for at, secret in enumerate(typed.secrets):
                    self._secrets[f"{request}.{at}"] = secret
            found.append(given if typed is None else GivenAnswer(given.digest, typed.value))
        return found

    def _usable(self) -> list[GivenAnswer]:
        """Return the answers that are known whole: a secret that is gone is asked for again."""
        return [it for it in self._had if not has_mask(it.value)]

    def _take_late_answers(self) -> None:
        """Keep what was answered when the call did not wait for it any more."""
        call = self._run.state.calls.get(self._command.id)
        late = call.answers[len(self._had) :] if call else ()
        if late:
            self._open = None
            known = self._revealed(late)
            self._had += known
            self._given += [it for it in known if not has_mask(it.value)]

    def _too_early(self) -> UsageError:
        return UsageError(
            f"{self._command.tool} asks a second question before the first is answered",
            hint="await use_ui_tool once after the other, or ask both in one",
        )

    def restart(self) -> None:
        """Reuse the answers for the next attempt: no person is asked twice."""
        self._given = self._usable()

    def opened(
        self, tool: str, payload: Json, seconds: float | None, otherwise: Json
    ) -> RequestOpened:
        """Return the event that opens a question, numbered after all that were asked before."""
        check_timeout(seconds)
        payload, otherwise = masked(payload, self._secrets), masked(otherwise, self._secrets)
        form = self._run.workflow.forms.get(tool)
        fault = form.payload_error(payload) if form else None
        if fault:
            raise ToolError(f"what {tool} shows does not fit its payload_schema: {fault}")
        fault = form.answer_error(otherwise) if form and otherwise is not None else None
        if fault:
            raise ToolError(f"what holds if nobody answers {tool} does not fit: {fault}")
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
        addressee = str(filled(form.addressee, values))
        if not addressee.partition(":")[2].strip():
            raise ToolError(f"nobody is asked: the addressee {form.addressee} is {addressee}")
        return addressee

    def _refuse_unknown(self, tool: str) -> None:
        """Refuse a question that nothing says how to show, nor what answers it."""
        forms = self._run.workflow.forms
        if tool not in forms:
            near = nearest(tool, forms)
            remedy = f"did you mean {near}?" if near else "declare it in tools.json as UI_Tool"
            raise ToolError(f"the package has no UI tool {tool}; {remedy}")
