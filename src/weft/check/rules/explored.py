"""Family HAND, last part: what the exploration of all runs has found."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from weft.check.explore import EndlessRun, Exploration, UnusedRule, explore
from weft.check.explore.domains import questions_in
from weft.check.explore.happenings import Setting, code_writes
from weft.check.explore.triggers import triggered
from weft.check.rules import handoffs, states, usage
from weft.check.spelling import listed
from weft.check.subject import CONVERSATION, Hit, Subject, rule
from weft.check.texts import routing_conditions
from weft.check.values import key_of
from weft.engine.conversation.routing import link_routing
from weft.engine.variables.conditions import UNKNOWN, decide
from weft.findings import Json, Path
from weft.spec.conditions import names as names_in
from weft.spec.type_meaning import finite_values
from weft.spec.variables import Variable

#: The parts of a spec that determine the course of a run.
READS: Final = (
    "orchestrator", "agents", "variables", "handoffs", "tools", "lifecycle_tools", "hooks", "code",
    "models", "registry", "mcp_servers",
)  # fmt: skip

_FEWER: Final = "let fewer variables decide handoffs, or give them fewer values"
_WAY_OUT: Final = "add a handoff to user or terminate for this state"


@rule("HAND008", *READS, modes=CONVERSATION)
def every_agent_speaks(subject: Subject) -> Iterator[Hit]:
    found = subject.once(explore)
    for agent, others in _gathered(subject, found.unreachable_agents):
        message = f"{agent} is unreachable"
        hint = f"add a handoff to {agent}, or remove it"
        if agent not in found.unvisited_agents:
            message = f"{agent} never replies: a handoff before its replies always applies"
            hint = f"narrow the conditions of the handoffs before the replies of {agent}"
        either = f"so are {', '.join(others)}, which only {agent} leads to"
        yield Hit(
            _place(subject, agent),
            message,
            cause=(*_closed_ways(subject, found, agent), *([either] if others else ())),
            hint=(hint,),
        )


def _place(subject: Subject, name: str) -> Path:
    if name in subject.agents:
        return ("agents", list(subject.agents).index(name), "agent_name")
    return ("orchestrator", "parallel", list(subject.groups).index(name), "name")


def _closed_ways(subject: Subject, found: Exploration, agent: str) -> Iterator[str]:
    """Yield why each rule that targets an agent never applies."""
    for unused in found.unused_rules:
        handoff = subject.spec.handoffs[unused.index]
        source = handoff.source_agent
        if handoff.target_agent == agent and source not in found.unreachable_agents:
            yield f"the handoff {source} -> {agent} never applies: {unused.why}"
            yield from unused.facts


@rule("HAND009", *READS, modes=CONVERSATION)
def every_rule_applies(subject: Subject) -> Iterator[Hit]:
    found = subject.once(explore)
    for unused in found.unused_rules:
        if not _is_reported_elsewhere(subject, found, unused):
            handoff = subject.spec.handoffs[unused.index]
            yield Hit(
                ("handoffs", unused.index, "condition"),
                f"the handoff {handoff.source_agent} -> {handoff.target_agent} never applies: "
                f"{unused.why}",
                cause=unused.facts,
                hint=("correct the condition or the priority, or remove the handoff",),
            )


def _is_reported_elsewhere(subject: Subject, found: Exploration, unused: UnusedRule) -> bool:
    """Return whether another finding already reports the cause of an unused rule."""
    handoff = subject.spec.handoffs[unused.index]
    path = ("handoffs", unused.index, "condition")
    return (
        # An unneeded fallback is not a mistake; but the rules of a group's members are never
        # evaluated.
        (handoff.condition is None and handoff.source_agent not in _members(subject))
        or handoff.source_agent in found.unreachable_agents
        or handoff.target_agent in found.unreachable_agents
        or path in subject.once(_tied)
        or (unused.always_false and _is_about_stuck_variable(subject, unused.index))
    )


def _members(subject: Subject) -> set[str]:
    return {member for group in subject.groups.values() for member in group.members}


def _tied(subject: Subject) -> frozenset[Path]:
    return frozenset(hit.path for hit in handoffs.priorities_differ.check(subject))


def _is_about_stuck_variable(subject: Subject, index: int) -> bool:
    """Return whether a variable in the condition is already reported as never set."""
    return not subject.once(_stuck_variables).isdisjoint(
        names_in(routing_conditions(subject)[index])
    )


def _stuck_variables(subject: Subject) -> frozenset[str | int]:
    rules = (
        usage.something_sets_it,
        states.default_is_a_state,
        states.state_is_reachable,
        states.trigger_follows_a_transition,
    )
    return frozenset(hit.path[1] for found in rules for hit in found.check(subject))


@rule("HAND010", *READS, modes=CONVERSATION)
def no_agent_is_a_dead_end(subject: Subject) -> Iterator[Hit]:
    for endless in _endless(subject):
        if len(endless.agents) == 1:
            agent = endless.agents[0]
            fact = f"{agent} repeats its turn forever{_once(endless)}"
            yield _hit(subject, endless, f"{fact}: no handoff leads to an end")


@rule("HAND011", *READS, modes=CONVERSATION)
def no_circle_is_closed(subject: Subject) -> Iterator[Hit]:
    for endless in _endless(subject):
        if len(endless.agents) > 1:
            fact = f"{listed(endless.agents)} hand off to each other forever{_once(endless)}"
            yield _hit(subject, endless, f"{fact}: no handoff leads out")


@rule("HAND012", *READS, modes=CONVERSATION)
def every_run_can_end(subject: Subject) -> Iterator[Hit]:
    found = subject.once(explore)
    if found.status == "unfinished":
        yield Hit(
            ("orchestrator", "initial_agent"),
            f"not all runs were explored: {found.reason}",
            hint=(_FEWER,),
        )
    if found.status == "may be endless":
        endless = found.endless[0]
        fact = f"a run may reach {listed(endless.agents)} and never end"
        yield _hit(
            subject, endless, f"{fact}{_once(endless)}", f"it depends on this: {found.reason}"
        )


def _endless(subject: Subject) -> tuple[EndlessRun, ...]:
    found = subject.once(explore)
    return found.endless if found.status == "endless" else ()


def _once(endless: EndlessRun) -> str:
    values = " and ".join(f"{name} = {value}" for name, value in endless.values)
    return f" once {values}" if values else ""


def _hit(subject: Subject, endless: EndlessRun, fact: str, *why: str) -> Hit:
    way = (f"a run reaches it by: {endless.witness}", f"and continues: {endless.cycle}")
    return Hit(
        _place(subject, endless.agents[0]),
        fact,
        cause=(*why, *way),
        hint=(_WAY_OUT, "or correct the one that should apply"),
    )


@rule("HAND025", *READS, modes=CONVERSATION)
def every_outcome_has_a_rule(subject: Subject) -> Iterator[Hit]:
    pattern = subject.spec.orchestrator.orchestration_pattern
    routing = link_routing(subject.spec)
    for agent, otherwise in routing.otherwise.items():
        # Rules before a reply are also evaluated when a value has changed.
        rules = (*routing.pre.get(agent, ()), *routing.post.get(agent, ()))
        conditions = [rule.condition for rule in rules if rule.condition is not None]
        # The hub of a star decides; a rule without an expression may always apply.
        if otherwise.why != "pattern" or pattern == "Star" or len(conditions) < len(rules):
            continue
        tested = questions_in(conditions)
        unknown = dict.fromkeys(subject.variable_names, UNKNOWN)
        # Where another outcome has a rule for it, the next agent is not the answer to this one.
        is_ruled = otherwise.target in {rule.target for rule in rules}
        for (owner, name), values in subject.once(_outcomes).items():
            for value in values if owner == agent and name in tested else ():
                is_known = isinstance(value, bool) or value in tested[name].constants
                known = {**unknown, name: value}
                may_hold = any(decide(condition, known) is not False for condition in conditions)
                if (is_ruled or not is_known) and not may_hold:
                    shown = f"{name} == {json.dumps(value)}"
                    yield Hit(
                        ("agents", list(subject.agents).index(agent), "agent_name"),
                        f"{agent} has no handoff for {shown}: the pattern {pattern} continues "
                        f"with {otherwise.target}",
                        hint=(
                            f"add a handoff of {agent} for {shown}",
                            f"or one without a condition, to {otherwise.target}",
                        ),
                    )


def _outcomes(subject: Subject) -> dict[tuple[str, str], list[Json]]:
    """Return the values that the turn of an agent may give to variables with few values."""
    found: dict[tuple[str, str], dict[str, Json]] = {}
    variables = subject.spec.variables
    for happening in (*triggered(subject, variables), *code_writes(subject, variables)):
        agent = happening.when.agent
        if agent is None or happening.when.moment not in ("auto", "turn", "say"):
            continue
        for setting in happening.settings:
            values = found.setdefault((agent, setting.variable), {})
            values.update((key_of(value), value) for value in _values(variables, setting))
    return {key: list(values.values()) for key, values in found.items()}


def _values(variables: Mapping[str, Variable], setting: Setting) -> Sequence[Json]:
    if setting.value is not UNKNOWN:
        return (setting.value,)
    variable = variables[setting.variable]
    listed = finite_values(variable.type) or ()
    if set(map(type, listed)) <= {bool, type(None)}:  # A default of false is an answer as well.
        return [value for value in listed if value is not None]
    default = getattr(variable.source, "default", None)
    return [value for value in listed if value is not None and value != default]


def _gathered(subject: Subject, silent: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield silent agents that no other silent agent leads to, each with those it leads to.

    Making the first one reachable may make the others reachable too. Of silent agents that lead to
    each other, the first is yielded.
    """
    if not silent:
        return
    ahead = _led_to(subject, silent)
    left = list(silent)
    for agent in reversed(silent):
        before = [name for name in left if agent in ahead[name]]
        if agent in left and all(other in ahead[agent] for other in before):
            root = min([agent, *before], key=silent.index)
            others = [
                name for name in silent if name in left and name in ahead[root] and name != root
            ]
            yield root, others
            left = [name for name in left if name != root and name not in others]


def _led_to(subject: Subject, silent: Sequence[str]) -> dict[str, set[str]]:
    """Return the silent agents that each of them leads to, directly or by others."""
    routing = link_routing(subject.spec)
    groups = routing.groups
    links = {
        name: {groups[name].next, *groups[name].members}
        if name in groups
        else {routing.otherwise[name].target}
        for name in silent
    }
    for handoff in subject.spec.handoffs:
        if handoff.source_agent in links:
            links[handoff.source_agent].add(handoff.target_agent)
    found: dict[str, set[str]] = {}
    for agent in silent:
        waiting, met = [agent], set[str]()
        while waiting:
            fresh = (links[waiting.pop()] & links.keys()) - met
            met |= fresh
            waiting.extend(fresh)
        found[agent] = met
    return found
