"""`designer`: the model behind the Generator if there is no language model. It guesses nothing.

A plan comes from a form, or is a skeleton of the brief with open places. The parts of the package
are compiled from the plan.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

from weft.adapters.models.usage import FREE
from weft.engine.events import ToolRequest
from weft.errors import ModelError
from weft.findings import Json
from weft.generator.compile.compiler import compile_drafts
from weft.generator.forms.skeleton import skeleton_parts
from weft.generator.outputs import joined_output
from weft.generator.reading import listed_values, said_by_user
from weft.generator.steps import (
    DESIGNER,
    DESIGNERS,
    DOWNLOADER,
    INTERVIEWER,
    MAKERS,
    REPAIRER,
    REPLACED,
    STEP_OF,
)
from weft.ports.model import ModelReply, ModelRequest
from weft.spec.plan import ActionPlan

#: What the agent that asks says when it has the answers.
NEXT: Final = "NEXT"

#: The longest text of comments in an open place.
_LONGEST: Final = 200


class DesignerModel:
    """Replies for the agents of the Generator; the reply to the same request is the same."""

    async def reply(
        self, request: ModelRequest, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        """Return the reply; raises ModelError for an agent of any other workflow."""
        if request.agent not in STEP_OF:
            raise ModelError(
                f"designer replies for the agents of the Generator only, not for {request.agent}; "
                "name another model, such as sample"
            )
        if request.agent == INTERVIEWER:
            return _interview(request, on_text)
        return _reply(json.dumps(_output(request), ensure_ascii=False), on_text)


def is_answered(request: ModelRequest) -> bool:
    """Tell whether the form of the interview was answered: then its variable has a value."""
    return bool(listed_values(request).get("interview"))


def _reply(text: str, on_text: Callable[[str], None] | None) -> ModelReply:
    if on_text is not None:
        on_text(text)
    return ModelReply(text, usage=FREE, model=DESIGNER, answerer=DESIGNER)


def _interview(request: ModelRequest, on_text: Callable[[str], None] | None) -> ModelReply:
    """Ask all questions in one form, without guesses; then end the interview."""
    if is_answered(request):
        return _reply(NEXT, on_text)
    arguments: dict[str, Json] = {"brief": said_by_user(request)}
    asked = ToolRequest(f"designer-{request.key}", "interview", arguments)
    return ModelReply("", (asked,), FREE, model=DESIGNER, answerer=DESIGNER)


def _output(request: ModelRequest) -> dict[str, Json]:
    """Return the structured output of an agent, made from the variables it is shown."""
    agent, values = request.agent, listed_values(request)
    if agent in DESIGNERS:
        return _designed(agent, values)
    if agent in MAKERS:
        plan = ActionPlan.model_validate(values.get("action_plan"))
        return joined_output(agent, compile_drafts(plan))
    if agent == REPAIRER:
        return {"parts": {}, "answers": {}}
    if agent == DOWNLOADER:
        return {"agent_message": "Your workflow bundle is ready for download."}
    plan = ActionPlan.model_validate(values.get("action_plan"))
    message = "Here is the plan and its diagram. Approve it, edit it, or say what should change."
    diagram = plan.diagram.model_dump(mode="json", by_alias=True)
    return {"MermaidSequenceDiagram": diagram, "agent_message": message}


def _designed(agent: str, values: Mapping[str, Json]) -> dict[str, Json]:
    """Return a part of the plan: the one of the last round, or that of a skeleton.

    Only a language model understands a comment, so a part that was commented on is open.
    """
    step = STEP_OF[agent]
    present = values.get(step.writes)
    if present:
        comments = cast("Sequence[Mapping[str, Json]]", values.get("plan_comments") or [])
        asked = " / ".join(str(comment.get("text", "")) for comment in comments)[:_LONGEST]
        reason = f'comments ask for "{asked}", which only a language model or a person can do'
        return {step.keys[0]: present, **({REPLACED: reason} if asked else {})}
    interview = cast("dict[str, Json]", values.get("interview") or {})
    answers = {name: str(text) for name, text in interview.items() if name != "brief" and text}
    parts = skeleton_parts(str(interview.get("brief", "")), answers, values)
    return {step.keys[0]: parts[step.keys[0]]}
