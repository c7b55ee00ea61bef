"""Who is next: handoff rules, then the pattern's default, then the declared target.

A run uses a test that always has an answer, and takes the first route. The checker uses a test that
may answer None ("could be either"), and gets every possible route. Both evaluate the same rules in
the same order, so that they cannot disagree.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from weft.ids import TERMINATE, USER
from weft.spec.agents import REPLY_LIMITS, WORD_CONDITIONS, Agent, Handoff
from weft.spec.condition_parser import parse_condition
from weft.spec.conditions import Condition
from weft.spec.orchestrator import Merge, Orchestrator, StartupMode
from weft.spec.variables import Variable
from weft.spec.workflow import WorkflowSpec

Why: TypeAlias = Literal["rule", "fallback", "pattern", "default", "chosen"]


@dataclass(frozen=True, slots=True)
class RoutingRule:
    """A handoff with its condition parsed; None as condition means: always."""

    index: int
    target: str
    condition: Condition | None
    judged: bool


@dataclass(frozen=True, slots=True)
class Route:
    """Who is next and why; `rule` is the handoff's index if a rule decided.

    `asked` has the rules that were evaluated, in order, and whether each holds.
    """

    target: str
    why: Why
    rule: int | None = None
    asked: tuple[tuple[int, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class GroupRules:
    """Agents that take their turns in parallel, and the target they hand off to."""

    name: str
    members: tuple[str, ...]
    next: str
    merge: Merge = "concatenate"
    function: str | None = None
    deadline: float | None = None
    on_failure: Literal["fail", "continue"] = "fail"


@dataclass(frozen=True, slots=True)
class Routing:
    """The rules of one workflow, sorted and parsed once."""

    pre: Mapping[str, tuple[RoutingRule, ...]]
    post: Mapping[str, tuple[RoutingRule, ...]]
    otherwise: Mapping[str, Route]
    #: The group that a handoff to this name starts.
    groups: Mapping[str, GroupRules]
    #: The required similarity of a message, for each rule whose description is compared with it.
    thresholds: Mapping[int, float]


#: The default similarity that a message must have to a description.
NEAR: Final = 0.3

#: The name of the group that the pattern of the same name implies.
REDUNDANT: Final = "Redundant"

#: Answers whether a rule's condition holds; None where that is not known.
Test: TypeAlias = Callable[[RoutingRule], bool | None]


def link_routing(spec: WorkflowSpec) -> Routing:
    """Sort and parse the handoffs of a workflow, once for all its runs."""
    ranked = sorted(enumerate(spec.handoffs), key=_rank)
    return Routing(
        pre=_by_source(ranked, "pre"),
        post=_by_source(ranked, "post"),
        otherwise={agent.agent_name: _otherwise(spec, agent.agent_name) for agent in spec.agents},
        groups=_groups(spec),
        thresholds={
            index: NEAR if handoff.threshold is None else handoff.threshold
            for index, handoff in enumerate(spec.handoffs)
            if handoff.condition_type == "nearest" and handoff.condition is not None
        },
    )


def routes_before(routing: Routing, agent: str, test: Test) -> Iterator[Route]:
    """Yield the routes that may hand off before `agent` replies.

    If the last of them is not certain, the agent may also get to reply.
    """
    for rule, _ in _applicable(routing.pre.get(agent, ()), test):
        yield Route(rule.target, "rule", rule.index)


def routes_after(routing: Routing, agent: str, test: Test) -> Iterator[Route]:
    """Yield the routes that may follow a reply of `agent`, the certain one last."""
    for rule, certain in _applicable(routing.post.get(agent, ()), test):
        yield Route(rule.target, "fallback" if _is_fallback(rule) else "rule", rule.index)
        if certain:
            return
    yield routing.otherwise[agent]


def compared_with(routing: Routing, agent: str, rule: int) -> tuple[int, ...]:
    """Return the rules whose descriptions are compared together with that of a rule."""
    before = routing.pre.get(agent, ())
    asked = (
        before if rule in {each_rule.index for each_rule in before} else routing.post.get(agent, ())
    )
    return tuple(each_rule.index for each_rule in asked if each_rule.index in routing.thresholds)


def nearest_rule(routing: Routing, scores: Mapping[int, float]) -> int | None:
    """Return the rule whose description is nearest, if it is near enough; the first of equals."""
    nearest = max(scores, key=lambda rule: scores[rule], default=None)
    if nearest is None or scores[nearest] < routing.thresholds[nearest]:
        return None
    return nearest


def _applicable(rules: Iterable[RoutingRule], test: Test) -> Iterator[tuple[RoutingRule, bool]]:
    """Yield the rules that may apply, up to the first that certainly does."""
    for rule in rules:
        holds = True if _is_fallback(rule) else test(rule)
        if holds is not False:
            yield rule, holds is True
        if holds:
            return


def _is_fallback(rule: RoutingRule) -> bool:
    return rule.condition is None and not rule.judged


def _rank(entry: tuple[int, Handoff]) -> tuple[bool, int, int]:
    """Order conditional rules before the fallback, then by priority, then as in the file."""
    index, handoff = entry
    return handoff.condition is None, handoff.priority, index


def _by_source(
    ranked: Iterable[tuple[int, Handoff]], scope: Literal["pre", "post"]
) -> dict[str, tuple[RoutingRule, ...]]:
    rules: dict[str, list[RoutingRule]] = {}
    for index, handoff in ranked:
        if handoff.condition_scope == scope:
            rules.setdefault(handoff.source_agent, []).append(_rule(index, handoff))
    return {source: tuple(found) for source, found in rules.items()}


def _rule(index: int, handoff: Handoff) -> RoutingRule:
    judged = handoff.condition_type in WORD_CONDITIONS and handoff.condition is not None
    text = None if judged else handoff.condition
    return RoutingRule(
        index=index,
        target=handoff.target_agent,
        condition=None if text is None else parse_condition(text),
        judged=judged,
    )


def _otherwise(spec: WorkflowSpec, agent: str) -> Route:
    """Return the route when no rule of `agent` applies."""
    names = [member.agent_name for member in spec.agents]
    pattern = _PATTERN_DEFAULTS.get(spec.orchestrator.orchestration_pattern)
    target = pattern(names, spec.orchestrator.initial_agent, agent) if pattern else None
    if target is not None:
        return Route(target, "pattern")
    return Route(_default_target(spec.orchestrator), "default")


def _groups(spec: WorkflowSpec) -> dict[str, GroupRules]:
    """Return the declared groups; the pattern Redundant implies one if none is declared."""
    fallback = _default_target(spec.orchestrator)
    declared = {
        group.name: GroupRules(
            name=group.name,
            members=group.members,
            next=group.next or fallback,
            merge=group.merge,
            function=group.function,
            deadline=group.deadline_seconds,
            on_failure=group.on_failure,
        )
        for group in spec.orchestrator.parallel
    }
    return declared or _redundant(spec)


def _redundant(spec: WorkflowSpec) -> dict[str, GroupRules]:
    """Return the group of the pattern Redundant: all agents before the last, the evaluator.

    There is none if one of them has handoff rules: these say in which order they work.
    """
    *members, evaluator = [agent.agent_name for agent in spec.agents] or [""]
    ruled = {handoff.source_agent for handoff in spec.handoffs}
    if (
        spec.orchestrator.orchestration_pattern != "Redundant"
        or len(members) < 2
        or ruled.intersection(members)
    ):
        return {}
    name = REDUNDANT if REDUNDANT not in (*members, evaluator) else f"{REDUNDANT}Agents"
    group = GroupRules(name, tuple(members), evaluator)
    return dict.fromkeys(members, group)


def reply_limit(agent: Agent) -> int:
    """Return how many replies in a row an agent may give."""
    return agent.max_consecutive_auto_reply or REPLY_LIMITS[agent.human_interaction]


def startup_mode(orchestrator: Orchestrator) -> StartupMode:
    """Return who opens the run: the user, an agent, or no person at all."""
    if orchestrator.startup_mode:
        return orchestrator.startup_mode
    if orchestrator.trigger.type != "chat":
        return "BackendOnly"
    return "UserDriven" if orchestrator.initiated_by == "user" else "AgentDriven"


def may_route(variable: Variable) -> bool:
    """Return whether handoff conditions may use a variable."""
    if variable.routing is not None:
        return variable.routing
    return variable.source.type in {"environment", "derived"}


def _default_target(orchestrator: Orchestrator) -> str:
    """Return the declared default target; without one the user, if there is one, else the end."""
    if orchestrator.default_target:
        return orchestrator.default_target
    attended = orchestrator.human_in_the_loop and startup_mode(orchestrator) != "BackendOnly"
    return USER if attended else TERMINATE


def _next_in_line(names: list[str], initial: str, agent: str) -> str | None:  # noqa: ARG001
    following = names.index(agent) + 1
    return names[following] if following < len(names) else None


def _back_to_hub(names: list[str], initial: str, agent: str) -> str | None:  # noqa: ARG001
    return None if agent == initial else initial


_PATTERN_DEFAULTS: Final[Mapping[str, Callable[[list[str], str, str], str | None]]] = {
    "Pipeline": _next_in_line,
    "Redundant": _next_in_line,
    "FeedbackLoop": _next_in_line,
    "Star": _back_to_hub,
}
