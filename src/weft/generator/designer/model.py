"""`designer`: the model behind the Generator when there is none. It follows stated rules."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

from weft.adapters.models.usage import FREE
from weft.engine.events import ToolRequest
from weft.errors import ModelError
from weft.findings import Json
from weft.generator.designer.blueprint import design_blueprint
from weft.generator.designer.brief import Brief, read_brief
from weft.generator.designer.interview import defaults
from weft.generator.designer.patterns import choose_pattern
from weft.generator.designer.staffing import design_agents
from weft.generator.designer.strategy import design_strategy
from weft.generator.reading import listed_values, said_by_user
from weft.generator.steps import DESIGNER, STEP_OF
from weft.ports.model import ModelReply, ModelRequest
from weft.spec.part import Part
from weft.spec.plan import (
    ActionPlan,
    PatternSelection,
    TechnicalBlueprint,
    WorkflowStrategy,
)

#: What the agent that asks says when it knows enough.
NEXT: Final = "NEXT"


class DesignerModel:
    """Answers for the sixteen agents of the Generator, always the same to the same request."""

    async def reply(
        self, request: ModelRequest, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        """Work out the reply; raises ModelError for an agent of any other workflow."""
        if request.agent not in STEP_OF:
            raise ModelError(
                f"designer answers for the agents of the Generator only, not for {request.agent}; "
                "name another model, such as sample"
            )
        if request.agent == "InterviewAgent":
            return _interview(request, on_text)
        text = json.dumps(design(request), ensure_ascii=False)
        if on_text is not None:
            on_text(text)
        return ModelReply(text, usage=FREE, model=DESIGNER, answerer=DESIGNER)


def _interview(request: ModelRequest, on_text: Callable[[str], None] | None) -> ModelReply:
    """Ask all questions in one form, with a default for each; then there is nothing to add."""
    if is_answered(request):
        if on_text is not None:
            on_text(NEXT)
        return ModelReply(NEXT, usage=FREE, model=DESIGNER, answerer=DESIGNER)
    said = said_by_user(request)
    arguments: dict[str, Json] = {"brief": said, **defaults(said)}
    asked = ToolRequest(f"designer-{request.key}", "interview", arguments)
    return ModelReply("", (asked,), FREE, model=DESIGNER, answerer=DESIGNER)


def is_answered(request: ModelRequest) -> bool:
    """Tell whether the form of the interview was answered: then its variable holds something."""
    return bool(listed_values(request).get("interview"))


def design(request: ModelRequest) -> dict[str, Json]:
    """Return the structured output of an agent, worked out from the variables it is shown."""
    values = listed_values(request)
    if request.agent in _DESIGNED:
        return _DESIGNED[request.agent](values)
    if request.agent == "DownloadAgent":
        return {"agent_message": "Your workflow bundle is ready for download."}
    # The rules of the second half are applied before these agents are asked.
    part = values.get("plain_part")
    if not isinstance(part, dict) or not part:
        raise ModelError(f"{request.agent} was shown no plain_part, so there is nothing to return")
    return cast("dict[str, Json]", part)


def brief_of(values: Mapping[str, Json]) -> Brief:
    """Return what is asked for: the brief, the answers, and what was said of earlier rounds."""
    interview = cast("dict[str, Json]", values.get("interview") or {})
    answers = {name: str(it) for name, it in interview.items() if name != "brief" and it}
    comments = cast("Sequence[Mapping[str, Json]]", values.get("plan_comments") or ())
    return read_brief(
        str(interview.get("brief", "")), answers, [str(it.get("text", "")) for it in comments]
    )


def _selection(values: Mapping[str, Json]) -> dict[str, Json]:
    return {"PatternSelection": _plain(choose_pattern(brief_of(values)).selection)}


def _strategy(values: Mapping[str, Json]) -> dict[str, Json]:
    made = design_strategy(brief_of(values), _chosen(values))
    return {"WorkflowStrategy": _plain(made)}


def _blueprint(values: Mapping[str, Json]) -> dict[str, Json]:
    strategy = WorkflowStrategy.model_validate(values.get("workflow_strategy"))
    made = design_blueprint(brief_of(values), _chosen(values), strategy)
    return {"TechnicalBlueprint": _plain(made)}


def _modules(values: Mapping[str, Json]) -> dict[str, Json]:
    strategy = WorkflowStrategy.model_validate(values.get("workflow_strategy"))
    blueprint = TechnicalBlueprint.model_validate(values.get("technical_blueprint"))
    made = design_agents(brief_of(values), _chosen(values), strategy, blueprint)
    return {"ModuleAgents": [_plain(it) for it in made]}


def _diagram(values: Mapping[str, Json]) -> dict[str, Json]:
    plan = ActionPlan.model_validate(values.get("action_plan"))
    message = "Here is the plan and its diagram. Approve it, or say what shall be different."
    return {"MermaidSequenceDiagram": _plain(plan.diagram), "agent_message": message}


def _chosen(values: Mapping[str, Json]) -> PatternSelection:
    return PatternSelection.model_validate(values.get("pattern_selection"))


def _plain(part: Part) -> Json:
    return part.model_dump(mode="json", by_alias=True)


_DESIGNED: Final[dict[str, Callable[[Mapping[str, Json]], dict[str, Json]]]] = {
    "PatternAgent": _selection,
    "WorkflowStrategyAgent": _strategy,
    "WorkflowArchitectAgent": _blueprint,
    "WorkflowImplementationAgent": _modules,
    "ProjectOverviewAgent": _diagram,
}
