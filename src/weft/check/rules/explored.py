"""Family HAND, last part: what the exploration of all runs has found."""

from collections.abc import Iterator, Sequence
from typing import Final

from weft.check.explore import EndlessRun, Exploration, UnusedRule, explore
from weft.check.rules import handoffs, states, usage
from weft.check.spelling import listed
from weft.check.subject import CONVERSATION, Hit, Subject, rule
from weft.engine.conversation.routing import link_routing
from weft.findings import Path
from weft.spec.conditions import names as names_in

#: Everything that decides how a run can go.
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
    """Yield why the rules that lead to an agent do not."""
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
        if not _is_told_elsewhere(subject, found, unused):
            handoff = subject.spec.handoffs[unused.index]
            yield Hit(
                ("handoffs", unused.index, "condition"),
                f"the handoff {handoff.source_agent} -> {handoff.target_agent} never applies: "
                f"{unused.why}",
                cause=unused.facts,
                hint=("correct the condition or the priority, or remove the handoff",),
            )


def _is_told_elsewhere(subject: Subject, found: Exploration, unused: UnusedRule) -> bool:
    """Tell whether another finding already speaks of the mistake behind an unused rule."""
    handoff = subject.spec.handoffs[unused.index]
    path = ("handoffs", unused.index, "condition")
    return (
        # A fallback that is never needed is a safety net, not a mistake; but in a group no rule of
        # a member is ever asked.
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
    """Tell whether a rule about variables speaks of one that the condition tests."""
    return not subject.once(_stuck_variables).isdisjoint(names_in(subject.conditions[index]))


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


def _gathered(subject: Subject, silent: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield silent agents to whom no other silent agent leads, and all those they lead to.

    Whoever makes the first one speak makes the others speak too, or sees what is left. Of silent
    agents that lead to each other, the first stands for all.
    """
    if not silent:
        return
    ahead = _led_to(subject, silent)
    left = list(silent)
    for agent in reversed(silent):
        before = [it for it in left if agent in ahead[it]]
        if agent in left and all(it in ahead[agent] for it in before):
            root = min([agent, *before], key=silent.index)
            others = [it for it in silent if it in left and it in ahead[root] and it != root]
            yield root, others
            left = [it for it in left if it != root and it not in others]


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
