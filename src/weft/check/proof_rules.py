"""Family HAND, last part: what the exploration of all runs has found."""

from collections.abc import Iterator
from typing import Final

from weft.check import (
    auto_rules,
    bind_rules,
    condition_rules,
    out_rules,
    state_rules,
    trigger_rules,
    usage_rules,
    var_rules,
)
from weft.check.proof import EndlessRun, Proof, UnusedRule, gathered, prove
from weft.check.rules import rule
from weft.check.subject import Hit, Subject
from weft.findings import Path
from weft.spec.conditions import names

#: Everything that decides how a run can go.
_READS: Final = (
    "orchestrator", "agents", "variables", "handoffs", "tools", "lifecycle_tools", "hooks", "code",
    "models", "registry",
)  # fmt: skip

#: Rules whose findings say why something never happens; to prove on would say it twice.
_FIRST: Final = (
    bind_rules.binding_has_agent,
    bind_rules.required_model_is_bound,
    auto_rules.automatic_call_is_complete,
    auto_rules.output_gives_arguments,
    out_rules.type_names_a_model,
    out_rules.bound_model_exists,
    out_rules.model_can_be_filled,
    var_rules.value_fits_type,
    state_rules.default_is_a_state,
    trigger_rules.tool_of_trigger_exists,
    condition_rules.comparison_makes_sense,
)

_WAY_OUT: Final = "or add a rule without a condition that leads to user or terminate"


def _proof(subject: Subject) -> Proof:
    if any(True for first in _FIRST for _ in first.check(subject)):
        return Proof("not checked", "another rule has found what keeps something from happening")
    return prove(subject)


@rule("HAND008", *_READS)
def every_agent_speaks(subject: Subject) -> Iterator[Hit]:
    """Every agent has a turn in some run."""
    proof = subject.once(_proof)
    silent = proof.unreachable_agents
    for agent, others in gathered(subject, silent) if silent else ():
        message = f"no run ever comes to {agent}"
        hint = f"add a handoff to {agent}, or remove the agent"
        if agent not in proof.unvisited_agents:
            message = f"{agent} never speaks: a rule before its replies always passes the word on"
            hint = f"narrow the conditions of the rules before the replies of {agent}"
        either = f"nor does any come to {', '.join(others)} by way of {agent}"
        yield Hit(
            _place(subject, agent),
            message,
            cause=(*_closed_ways(subject, proof, agent), *([either] if others else ())),
            hint=(hint,),
        )


def _place(subject: Subject, agent: str) -> Path:
    return ("agents", list(subject.agents).index(agent), "agent_name")


def _closed_ways(subject: Subject, proof: Proof, agent: str) -> Iterator[str]:
    """Yield why the rules that lead to an agent do not."""
    for unused in proof.unused_rules:
        handoff = subject.spec.handoffs[unused.index]
        source = handoff.source_agent
        if handoff.target_agent == agent and source not in proof.unreachable_agents:
            yield f"the rule {source} -> {agent} never applies: {unused.why}"
            yield from unused.facts


@rule("HAND009", *_READS)
def every_rule_applies(subject: Subject) -> Iterator[Hit]:
    """Every rule with a condition applies in some run."""
    proof = subject.once(_proof)
    for unused in proof.unused_rules:
        if not _is_told_elsewhere(subject, proof, unused):
            handoff = subject.spec.handoffs[unused.index]
            yield Hit(
                ("handoffs", unused.index, "condition"),
                f"the rule {handoff.source_agent} -> {handoff.target_agent} never applies: "
                f"{unused.why}",
                cause=unused.facts,
                hint=("correct the condition or the priority, or remove the rule",),
            )


def _is_told_elsewhere(subject: Subject, proof: Proof, unused: UnusedRule) -> bool:
    """Tell whether another finding already speaks of the mistake behind an unused rule."""
    handoff = subject.spec.handoffs[unused.index]
    path = ("handoffs", unused.index, "condition")
    return (
        # A fallback that is never needed is a safety net, not a mistake.
        handoff.condition is None
        or handoff.source_agent in proof.unreachable_agents
        or handoff.target_agent in proof.unreachable_agents
        or path in subject.once(_tied)
        or (unused.always_false and _is_about_stuck_variable(subject, unused.index))
    )


def _tied(subject: Subject) -> frozenset[Path]:
    return frozenset(hit.path for hit in condition_rules.priorities_differ.check(subject))


def _is_about_stuck_variable(subject: Subject, index: int) -> bool:
    """Tell whether a rule about variables speaks of one that the condition tests."""
    return not subject.once(_stuck_variables).isdisjoint(names(subject.conditions[index]))


def _stuck_variables(subject: Subject) -> frozenset[str | int]:
    rules = (
        usage_rules.something_sets_it,
        state_rules.default_is_a_state,
        state_rules.state_is_reachable,
        state_rules.trigger_follows_a_transition,
    )
    return frozenset(hit.path[1] for found in rules for hit in found.check(subject))


@rule("HAND010", *_READS)
def no_agent_keeps_the_word(subject: Subject) -> Iterator[Hit]:
    """No agent keeps the word for ever."""
    for endless in subject.once(_proof).dead_ends:
        agent = endless.agents[0]
        fact = f"{agent} keeps the word for ever{_once(endless)}: no rule leads on to an end"
        yield _endless(subject, endless, fact)


@rule("HAND011", *_READS)
def no_circle_is_closed(subject: Subject) -> Iterator[Hit]:
    """No agents pass the word among themselves for ever."""
    for endless in subject.once(_proof).cycles:
        *others, last = endless.agents
        among = f"{', '.join(others)} and {last}"
        fact = f"{among} pass the word to each other for ever"
        if not endless.cycle:
            fact = f"the word stays among {among} for ever"
        yield _endless(subject, endless, f"{fact}{_once(endless)}: no rule leads out")


def _once(endless: EndlessRun) -> str:
    values = " and ".join(f"{name} = {value}" for name, value in endless.values)
    return f" once {values}" if values else ""


def _endless(subject: Subject, endless: EndlessRun, fact: str) -> Hit:
    onward = (f"and goes on: {endless.cycle}",) if endless.cycle else ()
    return Hit(
        _place(subject, endless.agents[0]),
        fact,
        cause=(f"a run gets there by: {endless.witness}", *onward),
        hint=("add a rule that leads to user or terminate then", "or correct the one that should"),
    )


@rule("HAND012", *_READS)
def every_run_can_end(subject: Subject) -> Iterator[Hit]:
    """An end can be reached from wherever a run can get to."""
    proof = subject.once(_proof)
    spoken_of = any(doubt.reported for doubt in proof.doubts)
    if proof.status != "not proven" or spoken_of:
        return
    path: Path = ("orchestrator", "initial_agent")
    for doubt in reversed(proof.doubts):
        if doubt.variable in subject.spec.variables:
            path = ("variables", doubt.variable, "type")
    yield Hit(
        path,
        f"it is not proven that every run can come to an end: {proof.reason}",
        cause=(f"it matters on this way: {proof.witness}",) if proof.witness else (),
        hint=(proof.doubts[0].remedy, _WAY_OUT),
    )
