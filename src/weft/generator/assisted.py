"""A language model behind the Generator, with the designer behind it.

The run checks what the model returns and sends a wrong reply back with what is wrong. If the third
is of no use either, the designer replies instead: a part of the plan becomes an open place of it, a
part of the package has the whole package compiled from the plan. The reply says why.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Final, cast

from weft.engine.events.codec import parse_reply
from weft.errors import ModelError
from weft.findings import Json
from weft.generator.designer import NEXT, DesignerModel, is_answered
from weft.generator.judging import in_words, part_faults
from weft.generator.reading import listed_values
from weft.generator.steps import DESIGNERS, INTERVIEWER, MAKERS, REPAIRER, REPLACED, STEP_OF
from weft.ports.model import Model, ModelReply, ModelRequest
from weft.runtime.tools.forms import first_error, validator_for
from weft.runtime.variables.json_values import plain_json

#: How many replies a model may give for a part.
TRIES: Final = 3
#: The longest reply that is kept, or sent back.
LONGEST_REPLY: Final = 200_000

#: The longest reason in a report.
_LONGEST: Final = 300

_FORM: Final = "interview"
#: The agents whose outputs have a field for the reason why they are not by the model.
_NOTED: Final = frozenset({*DESIGNERS, *MAKERS, REPAIRER})


class AssistedModel:
    """Asks a model for every part, and the designer for those the model fails to give."""

    def __init__(self, model: Model, *, name: str) -> None:
        self._model = model
        self._designer = DesignerModel()
        self._name = name

    async def reply(
        self, request: ModelRequest, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        """Return the reply of the model, or at its last try that of the designer."""
        if request.agent not in STEP_OF or request.question:
            return await self._model.reply(request, on_text)
        last = _is_last(request)
        try:
            # Users do not see a last try that fails.
            heard = None if last or on_text is None else _Limited(on_text).hear
            reply = _usable_calls(request, await self._model.reply(request, heard))
        except ModelError as error:
            return await self._replace(request, f"gave no answer: {error}")
        fault = _storage_fault(reply)
        if fault:
            made = await self._replace(request, f"gave no answer that can be kept: {fault}")
            return replace(made, usage=reply.usage)
        fault = _fault(request, reply) if last else None
        if fault is None:
            return reply
        tries = f" in {TRIES} tries" if _tries(request) >= TRIES else ""
        made = await self._replace(request, f"gave nothing of use{tries}: {fault}")
        return replace(made, usage=reply.usage)

    async def _replace(self, request: ModelRequest, reason: str) -> ModelReply:
        """Return the designer's reply, with the model that it replaces and why."""
        why = f"{self._name}, which {_short(reason)}"
        made = await self._designer.reply(request)
        if request.agent not in _NOTED:
            return replace(made, instead_of=why)
        noted = json.dumps({REPLACED: why, **json.loads(made.text)}, ensure_ascii=False)
        return replace(made, text=noted, instead_of=why)


def _short(reason: str) -> str:
    """Return a reason without its middle, which quotes the reply: the error is at the end.

    What no journal can hold is left out.
    """
    text = reason.encode("utf-8", "replace").decode()
    half = _LONGEST // 2
    return text if len(text) <= _LONGEST else f"{text[:half]} ... {text[-half:]}"


class _Limited:
    """Passes on the pieces of a text, up to the length of a reply."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self._on_text = on_text
        self._left = LONGEST_REPLY

    def hear(self, text: str) -> None:
        """Pass a piece on while there is room."""
        self._left -= len(text)
        if self._left >= 0:
            self._on_text(text)


def _tries(request: ModelRequest) -> int:
    """Return the number of this try: every call of a turn is one.

    The interview begins the run, so its turns are tries as well.
    """
    return request.call + (request.turn - 1 if request.agent == INTERVIEWER else 0)


def _is_last(request: ModelRequest) -> bool:
    """Tell whether this is the last try: to say that the interview is over, there is one."""
    is_over = request.agent == INTERVIEWER and is_answered(request)
    return is_over or _tries(request) >= TRIES


def _usable_calls(request: ModelRequest, reply: ModelReply) -> ModelReply:
    """Remove tool calls that the agent cannot make: it has no tools, or one form."""
    if request.output is not None:
        return replace(reply, tool_requests=()) if reply.tool_requests else reply
    forms = [call for call in reply.tool_requests if call.tool == _FORM]
    return replace(reply, tool_requests=(forms[0],)) if forms else reply


def _storage_fault(reply: ModelReply) -> str:
    """Return why a reply cannot be stored in a journal; empty if it can."""
    size = len(reply.text)
    if size > LONGEST_REPLY:
        return f"it has {size:,} characters, {LONGEST_REPLY:,} are the limit"
    try:
        reply.text.encode()
        asked = plain_json([[call.tool, dict(call.arguments)] for call in reply.tool_requests])
    except ValueError as error:
        return str(error)
    called = sum(len(str(call)) for call in cast("list[Json]", asked))
    if size + called > LONGEST_REPLY:
        return f"it calls tools with {called:,} characters, {LONGEST_REPLY:,} are the limit"
    return ""


def _fault(request: ModelRequest, reply: ModelReply) -> str | None:
    """Return why a reply is of no use; None if it can be used."""
    if request.output is None:
        return _form_fault(request, reply)
    try:
        output = parse_reply(reply.text)
    except ValueError as error:
        return f"no JSON: {error}"
    wrong = first_error(validator_for(request.output.schema)(output))
    if wrong is not None:
        return wrong
    values = listed_values(request)
    faults = part_faults(request.agent, cast("dict[str, Json]", output), values)
    return in_words(faults) if faults else None


def _form_fault(request: ModelRequest, reply: ModelReply) -> str | None:
    """Return why a reply does not continue the interview: it calls the form, then it ends it."""
    if is_answered(request):
        is_over = reply.text.strip() == NEXT and not reply.tool_requests
        return None if is_over else f"it did not reply {NEXT} when the form was answered"
    asked = next((call for call in reply.tool_requests if call.tool == _FORM), None)
    if asked is None:
        return f"it did not call {_FORM}"
    schema = next((tool.parameters for tool in request.tools if tool.name == _FORM), None)
    return first_error(validator_for(schema)(asked.arguments))
