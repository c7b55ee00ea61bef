"""A language model behind the Generator, with the designer behind it.

What the model returns is checked by the run: a reply that does not fit is sent back with what is
wrong. The third that is of no use is not the end of the run but of the model's say in this part:
the designer's result stands for it, and the reply tells so.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Final, cast

from weft.engine.codec import unfenced
from weft.errors import ModelError
from weft.findings import Json
from weft.generator.designer.model import NEXT, DesignerModel
from weft.generator.judging import in_words, part_faults
from weft.generator.reading import listed_values
from weft.generator.steps import STEP_OF
from weft.ports.model import Model, ModelReply, ModelRequest
from weft.runtime.forms import first_fault, misfits_of

#: How often a model may try before the designer's result is taken.
TRIES: Final = 3

#: What is told of a fault.
_LONGEST: Final = 300


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
        last = _tried(request) >= TRIES - 1
        try:
            # A last try that fails is heard by nobody.
            reply = await self._model.reply(request, None if last else on_text)
        except ModelError as error:
            return await self._instead(request, f"gave no answer: {error}")
        fault = _fault(request, reply) if last else None
        if fault is None:
            return reply
        made = await self._instead(request, f"gave nothing of use in {TRIES} tries: {fault}")
        return replace(made, usage=reply.usage)

    async def _instead(self, request: ModelRequest, why: str) -> ModelReply:
        reply = await self._designer.reply(request)
        return replace(reply, instead_of=f"{self._name}, which {why[:_LONGEST]}")


def _tried(request: ModelRequest) -> int:
    """Count what the model has said for this part: these agents are sent no other turn."""
    return sum(it["role"] == "assistant" and not it.get("tool_calls") for it in request.messages)


def _fault(request: ModelRequest, reply: ModelReply) -> str | None:
    """Say why a reply is of no use; None if it is."""
    if request.output is None:
        # The interview: either it asks with its form, or it is over.
        done = bool(reply.tool_requests) or reply.text.strip().upper() == NEXT
        return None if done else "it did not come to the end of the interview"
    try:
        output = json.loads(unfenced(reply.text))
    except ValueError as error:
        return f"no JSON: {error}"
    wrong = first_fault(misfits_of(request.output.schema)(output))
    if wrong is not None:
        return wrong
    values = listed_values(request)
    faults = part_faults(request.agent, cast("dict[str, Json]", output), values)
    return in_words(faults) if faults else None
