"""A language model behind the Generator, with the designer behind it.

What the model returns is checked by the run: a reply that does not fit is sent back with what is
wrong. The third that is of no use is not the end of the run but of the model's say in this part:
the designer's result stands for it, and the reply tells so.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, cast

from weft.engine.events.codec import parse_reply
from weft.errors import ModelError
from weft.findings import Json
from weft.generator.designer.model import NEXT, DesignerModel, is_answered
from weft.generator.judging import in_words, part_faults
from weft.generator.reading import listed_values
from weft.generator.steps import STEP_OF
from weft.ports.model import Model, ModelReply, ModelRequest
from weft.runtime.tools.forms import first_error, validator_for
from weft.runtime.variables.json_values import plain_json

#: How often a model may try before the designer's result is taken.
TRIES: Final = 3
#: A longer reply is of no use: it is neither kept nor sent back.
LONGEST_REPLY: Final = 200_000

#: What is told of a fault.
_LONGEST: Final = 300

_INTERVIEWER: Final = "InterviewAgent"
_FORM: Final = "interview"


class AssistedModel:
    """Asks a model for every part, and the designer for what the model does not manage."""

    def __init__(self, model: Model, *, name: str) -> None:
        self._model = model
        self._designer = DesignerModel()
        self._name = name

    async def reply(
        self, request: ModelRequest, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        """Return the reply of the model, or in its last try that of the designer."""
        if request.agent not in STEP_OF or request.question:
            return await self._model.reply(request, on_text)
        last = _is_last(request)
        try:
            # A last try that fails is heard by nobody.
            heard = None if last or on_text is None else _Ear(on_text).hear
            reply = _sifted(request, await self._model.reply(request, heard))
        except ModelError as error:
            return await self._instead(request, f"gave no answer: {error}")
        unfit = _not_to_be_kept(reply)
        if unfit:
            made = await self._instead(request, f"gave no answer that can be kept: {unfit}")
            return replace(made, usage=reply.usage)
        fault = _fault(request, reply) if last else None
        if fault is None:
            return reply
        tries = f" in {TRIES} tries" if _tries(request) >= TRIES else ""
        made = await self._instead(request, f"gave nothing of use{tries}: {fault}")
        return replace(made, usage=reply.usage)

    async def _instead(self, request: ModelRequest, why: str) -> ModelReply:
        reply = await self._designer.reply(request)
        return replace(reply, instead_of=f"{self._name}, which {_short(why)}")


def _short(why: str) -> str:
    """Return a reason without its middle, which quotes the reply: what is wrong stands at the end.

    What no journal could hold is left out.
    """
    told = why.encode("utf-8", "replace").decode()
    half = _LONGEST // 2
    return told if len(told) <= _LONGEST else f"{told[:half]} ... {told[-half:]}"


class _Ear:
    """Passes pieces of a text on, as many as a reply may have."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self._on_text = on_text
        self._left = LONGEST_REPLY

    def hear(self, text: str) -> None:
        self._left -= len(text)
        if self._left >= 0:
            self._on_text(text)


def _tries(request: ModelRequest) -> int:
    """Count the tries of a model: every call of a turn is one.

    The interview begins the run, so its turns are tries as well.
    """
    return request.call + (request.turn - 1 if request.agent == _INTERVIEWER else 0)


def _is_last(request: ModelRequest) -> bool:
    """Tell whether this is the last try: to say that the interview is over, one is enough."""
    over = request.agent == _INTERVIEWER and is_answered(request)
    return over or _tries(request) >= TRIES


def _sifted(request: ModelRequest, reply: ModelReply) -> ModelReply:
    """Leave out calls that are not for the agent to make: it has no tools, or one form."""
    if request.output is not None:
        return replace(reply, tool_requests=()) if reply.tool_requests else reply
    forms = [it for it in reply.tool_requests if it.tool == _FORM]
    return replace(reply, tool_requests=(forms[0],)) if forms else reply


def _not_to_be_kept(reply: ModelReply) -> str:
    """Say why a reply has no place in a journal; nothing if it has."""
    size = len(reply.text)
    if size > LONGEST_REPLY:
        return f"it has {size:,} characters, {LONGEST_REPLY:,} are the limit"
    try:
        reply.text.encode()
        asked = plain_json([[it.tool, dict(it.arguments)] for it in reply.tool_requests])
    except ValueError as error:
        return str(error)
    called = sum(len(str(it)) for it in cast("list[Json]", asked))
    if size + called > LONGEST_REPLY:
        return f"it calls tools with {called:,} characters, {LONGEST_REPLY:,} are the limit"
    return ""


def _fault(request: ModelRequest, reply: ModelReply) -> str | None:
    """Say why a reply is of no use; None if it is."""
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
    """Say why a reply does not bring the interview on: it asks by its form, then it is over."""
    if is_answered(request):
        over = reply.text.strip() == NEXT and not reply.tool_requests
        return None if over else f"it did not reply {NEXT} when the form was answered"
    asked = next((it for it in reply.tool_requests if it.tool == _FORM), None)
    if asked is None:
        return f"it did not call {_FORM}"
    schema = next((it.parameters for it in request.tools if it.name == _FORM), None)
    return first_error(validator_for(schema)(asked.arguments))
