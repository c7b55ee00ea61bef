"""Skeletons: plans that hold what a brief and its answers say, and list all that is open.

Nothing is guessed from words: a start, a person or an agent is in a skeleton only if an answer of
the interview names it. What is not decided stands in `assumptions` and begins with OPEN.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from weft.findings import Json
from weft.generator.names import pascal_case, snake_case, unique
from weft.generator.plans.faults import LONGEST_TEXT
from weft.generator.plans.rules import MOST_MODULES, module_purpose
from weft.spec.agents import REPLY_LIMITS
from weft.spec.form import INITIATED_BY, TRIGGERS
from weft.spec.plan import (
    ActionPlan,
    ModuleAgents,
    PatternSelection,
    StrategyModule,
    TechnicalBlueprint,
    Trigger,
    WorkflowStrategy,
)
from weft.spec.workflow import plain

#: How an assumption begins that a person must decide.
OPEN: Final = "OPEN: "
_LONGEST: Final = 300
_NAME: Final = 40
_NOTHING: Final = "Nothing is said about the workflow."
#: Answers that name no one and nothing.
_NONE: Final = frozenset({"", "none", "nobody", "no one", "nothing", "-", "no", "(nothing)"})
_ADDRESSEE: Final = re.compile(r"(user|role|group):\S(.*\S)?")
_APPROVAL: Final = "Approval"


def open_places(plan: ActionPlan) -> tuple[str, ...]:
    """Return what a plan leaves open; it is a skeleton if there is anything."""
    return tuple(text for text in plan.strategy.assumptions if text.startswith(OPEN.strip()))


def skeleton_parts(
    brief: str, answers: Mapping[str, str], values: Mapping[str, Json] | None = None
) -> dict[str, Json]:
    """Return the parts of a skeleton by key; each fits the parts that `values` has already."""
    asked, known = _Asked(brief, answers), values or {}
    given = known.get("pattern_selection") or plain(asked.selection())
    selection = PatternSelection.model_validate(given)
    given = known.get("workflow_strategy") or plain(asked.strategy(selection))
    strategy = WorkflowStrategy.model_validate(given)
    given = known.get("technical_blueprint") or plain(asked.blueprint(strategy))
    blueprint = TechnicalBlueprint.model_validate(given)
    modules = asked.agents(strategy, blueprint)
    return {
        "PatternSelection": selection.model_dump(mode="json"),
        "WorkflowStrategy": strategy.model_dump(mode="json"),
        "TechnicalBlueprint": blueprint.model_dump(mode="json"),
        "ModuleAgents": [module.model_dump(mode="json") for module in modules],
    }


class _Asked:
    """A brief with the answers to the questions about it."""

    def __init__(self, brief: str, answers: Mapping[str, str]) -> None:
        lines = {name: _line(text) for name, text in answers.items()}
        self.answers = {name: text for name, text in lines.items() if text.lower() not in _NONE}
        self.goal = self.answers.get("goal") or _first_sentence(brief) or _NOTHING
        known: dict[str, Trigger] = {**TRIGGERS, **{each: each for each in TRIGGERS.values()}}
        self.start = known.get(self.answers.get("started_by", "").lower())
        self.trigger: Trigger = self.start or "chat"
        person = self.answers.get("approver")
        if person and not _ADDRESSEE.fullmatch(person):
            person = f"role:{snake_case(person, 'approver')}"
        self.approver = person

    def _people(self) -> list[str]:
        """Return the agents that an answer lists."""
        names: list[str] = []
        for each in re.split(r"[,;\n]", self.answers.get("specialists", "")):
            if name := pascal_case(each, ""):
                names.append(unique(name, [*names, _APPROVAL]))
        return names[: MOST_MODULES - 1] or ["Assistant"]

    def selection(self) -> PatternSelection:
        """Return one workflow, named after the goal."""
        words = self.goal if len(self.goal) <= _NAME else self.goal[:_NAME].rpartition(" ")[0]
        name = pascal_case(words, "NewWorkflow")
        workflow = {"name": name, "role": "primary", "description": self.goal}
        legend = {"pattern_id": 6, "pattern_name": "Pipeline"}
        return PatternSelection.model_validate(
            {"is_multi_workflow": False, "pack_name": name, "workflows": [workflow | legend]}
        )

    def strategy(self, selection: PatternSelection) -> WorkflowStrategy:
        """Return one step for each agent that was named, and the approval."""
        first, *others = selection.workflows
        people = [*self._people(), *([_APPROVAL] if self.approver else [])]
        steps = [(first, name) for name in people]
        steps += [(planned, f"{planned.name}Agent") for planned in others]
        modules = [
            {
                "module_name": f"Module {place + 1}: {name}",
                "module_index": place,
                "module_description": planned.description,
                "pattern_id": planned.pattern_id,
                "pattern_name": planned.pattern_name,
                "agents_needed": [name],
                "workflow": planned.name,
            }
            for place, (planned, name) in enumerate(steps)
        ]
        return WorkflowStrategy.model_validate(
            {
                "workflow_name": first.name,
                "workflow_description": self.goal,
                "human_in_loop": self.trigger == "chat",
                "pattern": [*dict.fromkeys(each.pattern_name for each in selection.workflows)],
                "trigger": self.trigger,
                "initiated_by": INITIATED_BY[self.trigger],
                "modules": modules,
                "assumptions": [f"{OPEN}{text}"[:LONGEST_TEXT] for text in self._open()],
            }
        )

    def _open(self) -> Iterator[str]:
        """Yield what must be decided."""
        yield "the steps, what each can come to, and what follows"
        yield "what is kept of a case, and how it is found (now: nothing is kept)"
        yield "what must never happen, and which words of the user interrupt the work"
        if self.start is None:
            said = self.answers.get("started_by")
            yield f"how a run starts (now: a chat){f'; the answer was: {said}' if said else ''}"
        elif self.start != "chat":
            yield f"the details of the start {self.start}"
        if not self.approver:
            yield "who decides or approves (now: no one)"
        told = {"data": "data", "integrations": "services", "risks": "risks"}
        for name, word in told.items():
            if said := self.answers.get(name):
                yield f"{word} that were named: {said}"

    def blueprint(self, strategy: WorkflowStrategy) -> TechnicalBlueprint:
        """Return what the person who approves is asked with, where the strategy has the step."""
        asked = [each for each in strategy.modules if each.agents_needed == (_APPROVAL,)]
        component = {
            "agent": _APPROVAL,
            "tool": "ask_approval",
            "label": _APPROVAL,
            "component": "ApprovalForm",
            "display": "inline",
            "summary": "Approves the result, or rejects it.",
            "approver": self.approver,
        }
        shown = [{"module_name": each.module_name, **component} for each in asked[:1]]
        return TechnicalBlueprint.model_validate({"ui_components": shown if self.approver else []})

    def agents(
        self, strategy: WorkflowStrategy, blueprint: TechnicalBlueprint
    ) -> list[ModuleAgents]:
        """Return the agents that the modules need, with the tools that the components need."""
        return [
            ModuleAgents.model_validate(
                {
                    "module_index": module.module_index,
                    "agents": [
                        self._agent(name, module, strategy, blueprint)
                        for name in module.agents_needed
                    ],
                }
            )
            for module in strategy.modules
        ]

    def _agent(
        self,
        name: str,
        module: StrategyModule,
        strategy: WorkflowStrategy,
        blueprint: TechnicalBlueprint,
    ) -> dict[str, object]:
        shown = [each for each in blueprint.ui_components if each.agent == name]
        approver = next((each.approver for each in shown if each.approver), None)
        way = "approval" if approver else "context" if strategy.trigger == "chat" else "none"
        return {
            "agent_name": name,
            "agent_type": "worker",
            "objective": f"{module_purpose(module)}: {module.module_description}"[:LONGEST_TEXT],
            "human_interaction": way,
            "max_consecutive_auto_reply": REPLY_LIMITS[way],
            "approver": approver,
            "agent_tools": [
                {
                    "name": each.tool,
                    "purpose": each.summary[:140],
                    "interaction_mode": each.display,
                }
                for each in shown
            ],
        }


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
