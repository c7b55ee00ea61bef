"""Skeletons: plans that hold what a brief and its answers say, and list all that is open.

Nothing is guessed from words: a start, a person or an agent is in a skeleton only if an answer of
the interview names it. What is not decided stands in `assumptions` and begins with OPEN.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeVar

from weft.findings import Json
from weft.generator.faults import LONGEST_TEXT
from weft.generator.names import pascal_case, snake_case, unique
from weft.generator.plan import make_plan
from weft.generator.rules import MOST_MODULES, module_purpose
from weft.spec.agents import REPLY_LIMITS
from weft.spec.form import TRIGGERS
from weft.spec.part import Part
from weft.spec.patterns import PATTERN_BY_NAME
from weft.spec.plan import (
    ActionPlan,
    ModuleAgents,
    PatternSelection,
    PlannedAgent,
    PlannedComponent,
    PlannedTool,
    StrategyModule,
    TechnicalBlueprint,
    Trigger,
    WorkflowStrategy,
)

#: How an assumption begins that a person must decide.
OPEN: Final = "OPEN: "
_LONGEST: Final = 300
_NAME: Final = 40
_NOTHING: Final = "Nothing is said about the workflow."
#: Answers that name nobody and nothing.
_NONE: Final = frozenset({"", "none", "nobody", "no one", "nothing", "-", "no", "(nothing)"})
_ADDRESSEE: Final = re.compile(r"(user|role|group):\S(.*\S)?")
_APPROVAL: Final = "Approval"
_P = TypeVar("_P", bound=Part)


def open_places(plan: ActionPlan) -> tuple[str, ...]:
    """Return what a plan leaves open; it is a skeleton if there is anything."""
    return tuple(text for text in plan.strategy.assumptions if text.startswith(OPEN.strip()))


def skeleton_plan(
    brief: str, answers: Mapping[str, str], comments: Sequence[str] = ()
) -> ActionPlan:
    """Return the skeleton of a brief; comments of people are open places as well."""
    asked = _Asked(brief, answers, comments)
    selection = asked.selection()
    strategy = asked.strategy(selection)
    blueprint = asked.blueprint(strategy)
    return make_plan(1, selection, strategy, blueprint, asked.agents(strategy, blueprint))


def skeleton_parts(
    brief: str, answers: Mapping[str, str], values: Mapping[str, Json] | None = None
) -> dict[str, Json]:
    """Return the parts of a skeleton by key; each fits the parts that `values` has already."""
    asked, known = _Asked(brief, answers), values or {}
    selection = _given(PatternSelection, known.get("pattern_selection")) or asked.selection()
    strategy = _given(WorkflowStrategy, known.get("workflow_strategy"))
    strategy = strategy or asked.strategy(selection)
    blueprint = _given(TechnicalBlueprint, known.get("technical_blueprint"))
    blueprint = blueprint or asked.blueprint(strategy)
    modules = asked.agents(strategy, blueprint)
    return {
        "PatternSelection": _data(selection),
        "WorkflowStrategy": _data(strategy),
        "TechnicalBlueprint": _data(blueprint),
        "ModuleAgents": [_data(each) for each in modules],
    }


def _given(model: type[_P], value: Json) -> _P | None:
    return model.model_validate(value) if value else None


def _data(part: Part) -> Json:
    return part.model_dump(mode="json", by_alias=True)


class _Asked:
    """A brief with the answers to the questions about it."""

    def __init__(
        self, brief: str, answers: Mapping[str, str], comments: Sequence[str] = ()
    ) -> None:
        self._answers = {name: _line(text) for name, text in answers.items()}
        self._comments = comments
        self.goal = self._answer("goal") or _first_sentence(brief) or _NOTHING
        word = self._answer("started_by").lower()
        known: dict[str, Trigger] = {**TRIGGERS, **{each: each for each in TRIGGERS.values()}}
        self._start = known.get(word)
        self.trigger: Trigger = self._start or "chat"
        self.approver = _person(self._answer("approver"))

    def _answer(self, name: str) -> str:
        text = self._answers.get(name, "")
        return "" if text.lower() in _NONE else text

    def _people(self) -> list[str]:
        """Return the agents that an answer lists."""
        names: list[str] = []
        for each in re.split(r"[,;\n]", self._answer("specialists")):
            if name := pascal_case(each, ""):
                names.append(unique(name, [*names, _APPROVAL]))
        return names[: MOST_MODULES - 1] or ["Assistant"]

    def selection(self) -> PatternSelection:
        """Return one workflow, named after the goal."""
        words = self.goal if len(self.goal) <= _NAME else self.goal[:_NAME].rpartition(" ")[0]
        name = pascal_case(words, "NewWorkflow")
        legend = _legend("Pipeline")
        workflow = {"name": name, "role": "primary", "description": self.goal, **legend}
        return PatternSelection.model_validate(
            {"is_multi_workflow": False, "pack_name": name, "workflows": [workflow]}
        )

    def strategy(self, selection: PatternSelection) -> WorkflowStrategy:
        """Return one step for each agent that was named, and the approval."""
        modules: list[dict[str, object]] = []
        for planned in selection.workflows:
            is_first = planned is selection.workflows[0]
            people = self._people() if is_first else [f"{planned.name}Agent"]
            names = [*people, *([_APPROVAL] if self.approver and is_first else [])]
            for name in names:
                modules.append(
                    {
                        "module_name": f"Module {len(modules) + 1}: {name}",
                        "module_index": len(modules),
                        "module_description": planned.description,
                        "pattern_id": planned.pattern_id,
                        "pattern_name": planned.pattern_name,
                        "agents_needed": [name],
                        "workflow": planned.name,
                    }
                )
        followed = dict.fromkeys(each.pattern_name for each in selection.workflows)
        begins = {"chat": "user", "form_submit": "user", "webhook": "external_event"}
        return WorkflowStrategy.model_validate(
            {
                "workflow_name": selection.workflows[0].name,
                "workflow_description": self.goal,
                "human_in_loop": self.trigger == "chat",
                "pattern": [*followed],
                "trigger": self.trigger,
                "initiated_by": begins.get(self.trigger, "system"),
                "modules": modules,
                "assumptions": [f"{OPEN}{text}"[:LONGEST_TEXT] for text in self._open()],
            }
        )

    def _open(self) -> Iterator[str]:
        """Yield what must be decided."""
        yield "the steps, what each can come to, and what follows"
        yield "what is kept of a case, and how it is found (now: nothing is kept)"
        yield "what must never happen, and which words of the user interrupt the work"
        if self._start is None:
            said = self._answer("started_by")
            yield f"how a run starts (now: a chat){f'; the answer was: {said}' if said else ''}"
        elif self._start != "chat":
            yield f"the details of the start {self._start}"
        if not self.approver:
            yield "who decides or approves (now: nobody)"
        told = {"data": "data", "integrations": "services", "risks": "risks"}
        for name, word in told.items():
            if said := self._answer(name):
                yield f"{word} that were named: {said}"
        for comment in self._comments:
            if said := _line(comment):
                yield f"a comment: {said}"

    def blueprint(self, strategy: WorkflowStrategy) -> TechnicalBlueprint:
        """Return what the person who approves is asked with, where the strategy has the step."""
        asked = [each for each in strategy.modules if each.agents_needed == (_APPROVAL,)]
        if not (asked and self.approver):
            return TechnicalBlueprint()
        component = PlannedComponent(
            module_name=asked[0].module_name,
            agent=_APPROVAL,
            tool="ask_approval",
            label=_APPROVAL,
            component="ApprovalForm",
            display="inline",
            summary="Approves the result, or rejects it.",
            approver=self.approver,
        )
        return TechnicalBlueprint(ui_components=(component,))

    def agents(
        self, strategy: WorkflowStrategy, blueprint: TechnicalBlueprint
    ) -> list[ModuleAgents]:
        """Return the agents that the modules need, with the tools that the components need."""
        return [
            ModuleAgents(
                module_index=module.module_index,
                agents=tuple(
                    self._agent(name, module, strategy, blueprint) for name in module.agents_needed
                ),
            )
            for module in strategy.modules
        ]

    def _agent(
        self,
        name: str,
        module: StrategyModule,
        strategy: WorkflowStrategy,
        blueprint: TechnicalBlueprint,
    ) -> PlannedAgent:
        shown = [each for each in blueprint.ui_components if each.agent == name]
        asked = next((each.approver for each in shown if each.approver), None)
        way = "approval" if asked else "context" if strategy.trigger == "chat" else "none"
        tools = (
            PlannedTool(name=each.tool, purpose=each.summary[:140], interaction_mode=each.display)
            for each in shown
        )
        return PlannedAgent(
            agent_name=name,
            agent_type="worker",
            objective=f"{module_purpose(module)}: {module.module_description}"[:LONGEST_TEXT],
            human_interaction=way,
            max_consecutive_auto_reply=REPLY_LIMITS[way],
            agent_tools=tuple(tools),
            approver=asked,
        )


def _legend(name: str) -> dict[str, object]:
    pattern = PATTERN_BY_NAME[name]
    return {"pattern_id": pattern.id, "pattern_name": pattern.title}


def _person(answer: str) -> str | None:
    """Return the addressee that an answer names: as it is, or as a role."""
    if not answer or _ADDRESSEE.fullmatch(answer):
        return answer or None
    return f"role:{snake_case(answer, 'approver')}"


def _line(text: str) -> str:
    """Return a text as one printable line of limited length."""
    seen = "".join(char if char.isprintable() else " " for char in text[: 10 * _LONGEST])
    line = " ".join(seen.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."


def _first_sentence(brief: str) -> str:
    """Return the first sentence of several words; the first line with a letter if there is none."""
    parts = re.split(r"(?<=[.!?])\s+|(?<=。)|\n\s*\n", brief[:10_000])
    lines = [line for line in map(_line, parts) if any(char.isalpha() for char in line)]
    long = (line for line in lines if len(line.split()) > 2 or not line.isascii())
    return next(long, lines[0] if lines else "")
