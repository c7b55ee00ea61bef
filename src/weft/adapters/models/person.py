"""`you`: a person answers for the model."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from pydantic_core import from_json, to_json

from weft.adapters.models.usage import FREE
from weft.errors import ModelError
from weft.ids import nearest
from weft.ports.model import ModelReply, ModelRequest

Ask = Callable[[ModelRequest], Awaitable[ModelReply]]


class PersonModel:
    """Lets a person reply, by the given function, and validates the reply."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def reply(
        self, request: ModelRequest, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        """Return the person's answer; raises ModelError, worth another attempt, if it cannot be."""
        reply = await self._ask(request)
        fault = _fault(request, reply)
        if fault is not None:
            raise ModelError(f"the answer given for {request.agent} {fault}", retryable=True)
        if on_text is not None and reply.text:
            on_text(reply.text)
        return replace(reply, usage=FREE, model="you", answerer="you")


def _fault(request: ModelRequest, reply: ModelReply) -> str | None:
    """Return what is wrong with the form of a reply; the run validates its content."""
    known = {tool.name for tool in request.tools}
    ids = [call.id for call in reply.tool_requests]
    if len(set(ids)) < len(ids):
        return "gives two tool calls the same identity"
    for call in reply.tool_requests:
        if call.tool not in known:
            near = nearest(call.tool, known)
            there = f"did you mean {near}?" if near else f"available: {', '.join(known) or 'none'}"
            return f"calls {call.tool}, which is not among its tools; {there}"
        try:
            to_json(call.arguments)
        except ValueError as error:
            return f"calls {call.tool} with arguments that are not JSON: {error}"
    if request.output is not None and not reply.tool_requests:
        try:
            from_json(reply.text)
        except ValueError as error:
            return f"must be JSON that fits {request.output.name}: {error}"
    return None
