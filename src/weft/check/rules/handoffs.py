"""Family HAND, first part: who hands off to whom. Conditions are in `condition_rules`."""

from collections.abc import Iterator
from typing import Final

from weft.check.spelling import unknown_name
from weft.check.subject import Hit, Subject, rule
from weft.engine.compile import handoff_tools
from weft.engine.conversation.routing import startup_mode
from weft.findings import Fix, Remove
from weft.ids import USER
from weft.spec.agents import WORD_CONDITIONS, ConditionScope, Handoff
from weft.spec.orchestrator import Orchestrator


@rule("HAND001", "handoffs", "agents", "orchestrator")
def target_exists(subject: Subject) -> Iterator[Hit]:
    for index, handoff in enumerate(subject.spec.handoffs):
        target = handoff.target_agent
        if target not in subject.targets:
            path = ("handoffs", index, "target_agent")
            fact = f'{handoff.source_agent} hands off to "{target}", which is no agent'
            yield unknown_name(path, target, subject.targets, fact, _NAME_A_TARGET)


@rule("HAND002", "handoffs", "agents")
def source_exists(subject: Subject) -> Iterator[Hit]:
    for index, handoff in enumerate(subject.spec.handoffs):
        source = handoff.source_agent
        if source not in subject.agents:
            path = ("handoffs", index, "source_agent")
            fact = f'the rule to {handoff.target_agent} belongs to "{source}", which is no agent'
            otherwise = "name the agent whose turn the rule follows"
            yield unknown_name(path, source, subject.agents, fact, otherwise)


@rule("HAND006", "handoffs")
def one_fallback(subject: Subject) -> Iterator[Hit]:
    kept: dict[str, tuple[int, Handoff]] = {}
    for index, handoff in sorted(enumerate(subject.spec.handoffs), key=_order):
        if not _is_fallback(handoff):
            continue
        first, other = kept.setdefault(handoff.source_agent, (index, handoff))
        if first != index:
            same = other.target_agent == handoff.target_agent
            yield Hit(
                ("handoffs", index, "source_agent"),
                f"{handoff.source_agent} has a second rule without a condition, "
                f"to {handoff.target_agent}; the one to {other.target_agent} always comes first",
                hint=("give one of the two a condition, or remove it",),
                fix=Fix("remove the repeated rule", (Remove(("handoffs", index)),))
                if same
                else None,
            )


def _order(entry: tuple[int, Handoff]) -> tuple[int, int]:
    return entry[1].priority, entry[0]


def _is_fallback(handoff: Handoff, scope: ConditionScope = "post") -> bool:
    plain = handoff.condition is None and handoff.condition_type == "expression"
    return plain and handoff.condition_scope == scope


@rule("HAND014", "handoffs", "orchestrator")
def judging_is_enabled(subject: Subject) -> Iterator[Hit]:
    if subject.spec.orchestrator.llm_conditions:
        return
    for index, handoff in enumerate(subject.spec.handoffs):
        if handoff.condition_type == "llm" and handoff.condition is not None:
            yield Hit(
                ("handoffs", index, "condition_type"),
                f"a model is to judge when {handoff.source_agent} hands off to "
                f"{handoff.target_agent}, but the workflow does not allow that",
                hint=(
                    "write the condition as an expression over variables",
                    'or set "llm_conditions": true in the orchestrator file',
                ),
            )


@rule("HAND016", "handoffs", "agents")
def reason_of_an_end(subject: Subject) -> Iterator[Hit]:
    # A target that does not exist, such as a misspelt "terminate", is reported by HAND001.
    going_on = (*subject.agents, USER)
    for index, handoff in enumerate(subject.spec.handoffs):
        if handoff.reason is not None and handoff.target_agent in going_on:
            yield Hit(
                ("handoffs", index, "reason"),
                f"{handoff.source_agent} hands off to {handoff.target_agent} with a reason, "
                "which is used only when the run ends",
                hint=('remove "reason", or make "terminate" the target',),
            )


@rule("HAND017", "handoffs")
def agent_gets_to_reply(subject: Subject) -> Iterator[Hit]:
    for index, handoff in enumerate(subject.spec.handoffs):
        if _is_fallback(handoff, "pre"):
            yield Hit(
                ("handoffs", index, "condition_scope"),
                f"{handoff.source_agent} could never reply: before each of its turns it "
                f"hands off to {handoff.target_agent}, without a condition",
                hint=('give the rule a condition, or set "condition_scope": "post"',),
            )


@rule("HAND018", "handoffs", "orchestrator")
def user_is_there(subject: Subject) -> Iterator[Hit]:
    absence = _why_no_user(subject.spec.orchestrator)
    if absence is None:
        return
    for index, handoff in enumerate(subject.spec.handoffs):
        if handoff.target_agent == USER:
            yield Hit(
                ("handoffs", index, "target_agent"),
                f"{handoff.source_agent} hands off to the user, but {absence}",
                hint=('hand off to an agent or "terminate"', _LET_USER_IN),
            )


@rule("HAND019", "handoffs")
def judged_condition_is_written(subject: Subject) -> Iterator[Hit]:
    for index, handoff in enumerate(subject.spec.handoffs):
        if handoff.condition_type in WORD_CONDITIONS and handoff.condition is None:
            judge, do = _JUDGES[handoff.condition_type]
            yield Hit(
                ("handoffs", index, "condition_type"),
                f"{judge} when {handoff.source_agent} hands off to "
                f"{handoff.target_agent}, but there is no condition to {do}",
                hint=('write the condition in words, or remove "condition_type"',),
            )


@rule("HAND025", "handoffs")
def threshold_is_compared(subject: Subject) -> Iterator[Hit]:
    for index, handoff in enumerate(subject.spec.handoffs):
        if handoff.threshold is not None and handoff.condition_type != "nearest":
            yield Hit(
                ("handoffs", index, "threshold"),
                f"the rule {handoff.source_agent} -> {handoff.target_agent} has a threshold, "
                "but nothing is compared",
                hint=('set "condition_type": "nearest", or remove "threshold"',),
            )


@rule("HAND020", "orchestrator", "agents")
def default_target_exists(subject: Subject) -> Iterator[Hit]:
    path = ("orchestrator", "default_target")
    target = subject.spec.orchestrator.default_target
    absence = _why_no_user(subject.spec.orchestrator)
    if target is not None and target not in subject.targets:
        fact = f'the default target "{target}" is no agent'
        yield unknown_name(path, target, subject.targets, fact, _NAME_A_TARGET)
    elif target == USER and absence:
        yield Hit(
            path,
            f"the default target is the user, but {absence}",
            hint=('name an agent or "terminate"', _LET_USER_IN),
        )


@rule("HAND024", "agents", "handoffs", "tools")
def model_can_hand_off(subject: Subject) -> Iterator[Hit]:
    for index, agent in enumerate(subject.spec.agents):
        if not agent.handoff_tools:
            continue
        targets = handoff_tools(subject.spec, agent)
        path = ("agents", index, "handoff_tools")
        if not targets:
            yield Hit(
                path,
                f"{agent.agent_name} may hand off by tools, but has no rule that names a target",
                hint=(f"add the handoffs of {agent.agent_name}", 'or remove "handoff_tools"'),
            )
        for place, tool in enumerate(subject.spec.tools):
            if tool.agent == agent.agent_name and tool.function in targets:
                yield Hit(
                    ("tools", place, "function"),
                    f"{tool.function} is a tool of {tool.agent} and, because of handoff_tools, "
                    f"the one that hands off to {targets[tool.function]}: that can never be called",
                    hint=("give the function another name",),
                )


_JUDGES: Final = {
    "llm": ("a model is to judge", "judge"),
    "nearest": ("the nearest description is to decide", "compare with"),
}

_NAME_A_TARGET: Final = 'name an agent of agents.json, a group, "user" or "terminate"'
_LET_USER_IN: Final = "or let a person take part: human_in_the_loop true and a chat start"


def _why_no_user(orchestrator: Orchestrator) -> str | None:
    if startup_mode(orchestrator) == "BackendOnly":
        return "nobody takes part in a run that starts in the background"
    return None if orchestrator.human_in_the_loop else "human_in_the_loop is false"
