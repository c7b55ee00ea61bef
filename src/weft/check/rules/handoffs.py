"""Family HAND: who hands off to whom, and groups of agents that work in parallel."""

import math
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Final, TypeAlias

from weft.check.code.facts import reachable
from weft.check.declarations import set_in_turns
from weft.check.explore.domains import questions_in, samples
from weft.check.explore.ground import MOST_QUESTIONS, Truth, lay_out, truth
from weft.check.rules.code import tool_entries
from weft.check.spelling import listed
from weft.check.subject import CONVERSATION, Hit, Subject, rule
from weft.check.texts import PlacedCondition, parsed_conditions
from weft.engine.compile import handoff_tools
from weft.engine.conversation.routing import startup_mode
from weft.engine.variables.conditions import UNKNOWN
from weft.findings import Fix, Json, Path, Remove
from weft.ids import USER
from weft.spec.agents import Handoff
from weft.spec.conditions import And, Condition, names
from weft.spec.orchestrator import Orchestrator
from weft.spec.type_meaning import validation_error
from weft.spec.types import Scalar as ScalarType
from weft.spec.variables import ComputedSource, StaticSource, Variable


@rule("HAND006", "handoffs", modes=CONVERSATION)
def one_fallback(subject: Subject) -> Iterator[Hit]:
    kept: dict[str, tuple[int, Handoff]] = {}
    for index, handoff in sorted(enumerate(subject.spec.handoffs), key=_order):
        if handoff.condition is not None:
            continue
        first, other = kept.setdefault(handoff.source_agent, (index, handoff))
        if first != index:
            same = other.target_agent == handoff.target_agent
            yield Hit(
                ("handoffs", index, "source_agent"),
                f"{handoff.source_agent} has a second handoff without a condition, "
                f"to {handoff.target_agent}; the one to {other.target_agent} always applies first",
                hint=("give one of the two a condition, or remove it",),
                fix=Fix("remove the repeated rule", (Remove(("handoffs", index)),))
                if same
                else None,
            )


def _order(entry: tuple[int, Handoff]) -> tuple[int, int]:
    return entry[1].priority, entry[0]


@rule("HAND016", "handoffs", "agents", modes=CONVERSATION)
def reason_of_an_end(subject: Subject) -> Iterator[Hit]:
    # NAME001 reports a target that does not exist, such as a misspelt "terminate".
    going_on = (*subject.agents, USER)
    for index, handoff in enumerate(subject.spec.handoffs):
        if handoff.reason is not None and handoff.target_agent in going_on:
            yield Hit(
                ("handoffs", index, "reason"),
                f"{handoff.source_agent} hands off to {handoff.target_agent} with a reason, "
                "which is used only when the run ends",
                hint=('remove "reason", or make "terminate" the target',),
            )


@rule("HAND018", "handoffs", "orchestrator", modes=CONVERSATION)
def user_takes_part(subject: Subject) -> Iterator[Hit]:
    absence = _why_no_user(subject.spec.orchestrator)
    if absence is None:
        return
    targets: list[tuple[Path, str, str | None]] = [
        (("handoffs", index, "target_agent"), handoff.source_agent, handoff.target_agent)
        for index, handoff in enumerate(subject.spec.handoffs)
    ]
    default = subject.spec.orchestrator.default_target
    targets.append((("orchestrator", "default_target"), "the default target", default))
    for path, source, target in targets:
        if target == USER:
            yield Hit(
                path,
                f"{source} hands off to the user, but {absence}",
                hint=('hand off to an agent or to "terminate"', _LET_USER_IN),
            )


@rule("HAND024", "agents", "handoffs", "tools", modes=CONVERSATION)
def model_can_hand_off(subject: Subject) -> Iterator[Hit]:
    for index, agent in enumerate(subject.spec.agents):
        if not agent.handoff_tools:
            continue
        targets = handoff_tools(subject.spec, agent)
        path = ("agents", index, "handoff_tools")
        if not targets:
            yield Hit(
                path,
                f"{agent.agent_name} may hand off by tools, but has no handoffs",
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


_LET_USER_IN: Final = "or let a person take part: human_in_the_loop true and a chat start"


def _why_no_user(orchestrator: Orchestrator) -> str | None:
    if startup_mode(orchestrator) == "BackendOnly":
        return "a run that starts in the background has no user"
    return None if orchestrator.human_in_the_loop else "human_in_the_loop is false"


# -- ties: two handoffs of the same priority


@rule("HAND007", "handoffs", "variables", modes=CONVERSATION)
def priorities_differ(subject: Subject) -> Iterator[Hit]:
    for (first, earlier), (second, later) in _tied(subject):
        values = domain(earlier, later, subject.spec.variables)
        # No rule is evaluated after one that always applies; HAND009 reports those.
        if hold_together(earlier, later, values) and not holds_always(earlier, values):
            yield Hit(
                second.path,
                f"the handoffs {first.owner} and {second.owner} may apply at the same time and "
                f"have the same priority {second.part.priority}; the first in the file wins",
                hint=("give them different priorities, or conditions that exclude each other",),
            )


_Found: TypeAlias = tuple[PlacedCondition[Handoff], Condition]


def _tied(subject: Subject) -> Iterator[tuple[_Found, _Found]]:
    known = [
        (placed, condition)
        for placed, condition in parsed_conditions(subject, Handoff)
        if subject.variable_names.issuperset(names(condition))
    ]
    for _, group in groupby(sorted(known, key=_rank), key=_rank):
        rules = list(group)
        for position, second in enumerate(rules):
            for first in rules[:position]:
                if first[0].part.target_agent != second[0].part.target_agent:
                    yield first, second


def _rank(found: _Found) -> tuple[str, str, int]:
    handoff = found[0].part
    return handoff.source_agent, handoff.condition_scope, handoff.priority


#: The values to try for each variable.
Samples: TypeAlias = dict[str, tuple[Json, ...]]

#: With more combinations than this two conditions are assumed to overlap.
_MOST_COMBINATIONS: Final = 1 << 20
_TEXT: Final = ScalarType("str")


def domain(left: Condition, right: Condition, variables: Mapping[str, Variable]) -> Samples:
    """Choose the values to try; a variable without known values gets one unknown value."""
    both = And((left, right))
    return {name: _samples(name, variables.get(name), both) for name in names(both)}


def hold_together(left: Condition, right: Condition, values: Samples) -> bool:
    """Return whether both conditions may hold at once; assumed if there are too many cases."""
    combinations = math.prod(map(len, values.values()))
    if combinations > _MOST_COMBINATIONS:
        return True
    first, second = _truth(left, values), _truth(right, values)
    if 2 * combinations > MOST_QUESTIONS or any(UNKNOWN in found for found in values.values()):
        return bool((first.yes | first.open) & (second.yes | second.open))
    # All cases were tried and all values are known: no answer counts as false.
    return bool(first.yes & second.yes)


def holds_always(condition: Condition, values: Samples) -> bool:
    """Return whether a condition holds for all values."""
    found = _truth(condition, values)
    return not (found.no or found.open)


def _truth(condition: Condition, values: Samples) -> Truth:
    space = lay_out(values)
    return truth(condition, {name: axis.blocks for name, axis in space.axes.items()}, space.full)


def _samples(name: str, variable: Variable | None, condition: Condition) -> tuple[Json, ...]:
    found = samples(variable.type if variable else _TEXT, questions_in([condition])[name])
    if found is None:
        return (UNKNOWN,)
    return (None, *found) if variable and _may_be_empty(variable) else found


def _may_be_empty(variable: Variable) -> bool:
    source = variable.source
    if validation_error(variable.type, None, {}) is None:
        return True
    return not isinstance(source, StaticSource | ComputedSource) and source.default is None


# -- groups


@rule("HAND023", "orchestrator", "agents", "variables", "tools", "code", modes=CONVERSATION)
def members_set_variables_of_their_own(subject: Subject) -> Iterator[Hit]:
    for index, group in enumerate(subject.spec.orchestrator.parallel):
        if group.merge in ("first", "majority"):
            continue  # the value of one member is kept
        writers: dict[str, set[str]] = {}
        for agent, name in _writes(subject):
            if agent in group.members:
                writers.setdefault(name, set()).add(agent)
        for name, found in writers.items():
            variable = subject.spec.variables.get(name)
            if len(found) > 1 and variable is not None and variable.merge is None:
                first, *others = [member for member in group.members if member in found]
                yield Hit(
                    ("orchestrator", "parallel", index, "members"),
                    f"in the group {group.name}, {listed([first, *others])} may set {name}: "
                    f"what {first} sets counts, what differs is refused",
                    hint=(
                        f'declare for {name} how to merge: "append" or "merge"',
                        "or give each a variable of its own",
                    ),
                )


def _writes(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield which agent may set which variable in its turn."""
    for entry in tool_entries(subject):
        tool = entry.declared
        found = reachable(subject, entry.file or "", tool.function) if entry.function else ()
        names = {write.variable for activation in found for write in activation.writes}
        yield from ((tool.agent, name) for name in names if name is not None)
    yield from set_in_turns(subject)
