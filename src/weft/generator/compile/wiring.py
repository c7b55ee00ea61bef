"""Wiring: how modules follow each other, who decides, and where a person is waited for."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from weft.generator.compile.patterns import Stage, fragment, pipeline
from weft.generator.compile.services import service_notes
from weft.generator.compile.starts import start_notes
from weft.generator.compile.texts import line, mentions
from weft.generator.compile.wires import (
    APPROVE,
    ASK_USER,
    REJECT,
    ROUNDS,
    Approval,
    Decision,
    Fragment,
    Option,
    Rounds,
    Test,
    Way,
    Wiring,
)
from weft.generator.names import pascal_case, snake_case, unique
from weft.generator.workflow_plan import PlannedModule, WorkflowPlan
from weft.ids import TERMINATE, USER
from weft.spec.plan import PlannedVariable

#: Beyond so many states a checker does not explore a workflow any more: agents then share the
#: variables that control the run, which are set anew whenever an agent begins.
_MOST_COMBINATIONS: Final = 1_000_000


def is_attended(workflow: WorkflowPlan) -> bool:
    """Tell whether words of a user are ever waited for."""
    return workflow.strategy.trigger == "chat" and workflow.strategy.human_in_loop


def wire(workflow: WorkflowPlan) -> Wiring:
    """Wire the modules of a workflow one after the other; after the last one the run ends."""
    notes: list[str] = []
    parts = tuple(_fragments(workflow, notes))
    names = _Names(workflow, shared=_combinations(workflow, parts) > _MOST_COMBINATIONS)
    decisions = dict(_decisions(workflow, parts, names))
    members = {it for part in parts if part.group for it in part.group.members}
    alone = [it for it in workflow.agents if it.agent_name not in members]
    approving = {
        it.agent_name: [one.name for one in it.agent_tools if one.interaction_mode != "none"]
        for it in alone
        if it.human_interaction == "approval"
    }
    talking = [
        it.agent_name for it in alone if it.human_interaction == "context" and is_attended(workflow)
    ]
    wiring = Wiring(
        entry=parts[0].entry,
        ways=(),
        decisions=decisions,
        ready={it: names.of(it, "ready") for it in talking if it not in decisions},
        approvals={
            name: Approval(
                names.deciding((name, *tools), name, "approval"),
                names.of(name, "approval comment"),
                back := _back(parts, name),
                names.of(name, "approval round") if back else None,
                by_reply=name in decisions or not is_attended(workflow),
            )
            for name, tools in approving.items()
        },
        rounds=tuple(_rounds(parts, names)),
        groups=tuple(part.group for part in parts if part.group),
        planned=names.planned,
        notes=(*notes, *start_notes(workflow), *service_notes(workflow)),
    )
    return replace(wiring, ways=tuple(_all_ways(workflow, parts, wiring)))


def _all_ways(workflow: WorkflowPlan, parts: Sequence[Fragment], wiring: Wiring) -> Iterator[Way]:
    attended = is_attended(workflow)
    for module, part in zip(workflow.modules, parts, strict=True):
        for agent in (it.agent_name for it in module.agents):
            if agent in wiring.members:
                continue
            for way in _ways(agent, part, wiring, attended=attended):
                ends = way.target == TERMINATE and not way.reason
                yield replace(way, reason=f"{line(module.purpose)}: done.") if ends else way


def _fragments(workflow: WorkflowPlan, notes: list[str]) -> Iterator[Fragment]:
    """Yield the modules, each with the entry of the next one as its exit."""
    taken = [it.agent_name for it in workflow.agents]
    stages: list[tuple[PlannedModule, str]] = []
    for module in workflow.modules:
        group = unique(pascal_case(f"{module.purpose} team", "Team"), taken)
        taken.append(group)
        stages.append((module, group))
    made: list[Fragment] = []
    following = TERMINATE
    for module, group in reversed(stages):
        stage = Stage(module.agents, following, group)
        part = fragment(module.pattern.id, stage)
        if part is None:
            notes.append(
                f"{module.name} has {len(module.agents)} agents, which do not make a "
                f"{module.pattern.title}: they work one after the other"
            )
            part = pipeline(stage)
        made.append(_judged_by_person(part, module, following))
        following = part.entry
    notes.reverse()
    return reversed(made)


def _judged_by_person(part: Fragment, module: PlannedModule, following: str) -> Fragment:
    """Return a loop in which a person says what is good enough, if one is asked there."""
    judge = module.agents[-1]
    if part.counted is None or judge.human_interaction != "approval":
        return part
    onward = {**part.onward, judge.agent_name: following}
    return replace(part, onward=onward, options={}, counted=None)


def _combinations(workflow: WorkflowPlan, parts: Sequence[Fragment]) -> int:
    """Return in how many states a run could be if every agent had variables of its own."""
    number = len(workflow.agents)
    for part in parts:
        values = {it.value for options in part.options.values() for it in options}
        number *= (len(values) + 2) * (2 if part.counted else 1)
    for agent in workflow.agents:
        number *= {"approval": 9, "context": 2}.get(agent.human_interaction, 1)
    return number


class _Names:
    """Names for the variables that control a run, beside those of the plan."""

    def __init__(self, workflow: WorkflowPlan, *, shared: bool) -> None:
        self._variables = workflow.blueprint.global_context_variables
        self._taken = {it.name for it in self._variables}
        self.shared = shared
        self._common: dict[str, str] = {}
        self.planned: dict[str, str] = {}

    def of(self, owner: str, kind: str) -> str:
        """Return a name for what an agent or a module has: its own, or one that all share."""
        if not self.shared:
            return self.new(f"{owner} {kind}")
        if kind not in self._common:
            self._common[kind] = self.new(f"any {kind}")
        return self._common[kind]

    def new(self, phrase: str) -> str:
        """Return a name that no variable has."""
        name = unique(snake_case(phrase, "value"), self._taken)
        self._taken.add(name)
        return name

    def deciding(self, by: Sequence[str], owner: str, kind: str) -> str:
        """Return the state of the plan that speaks of an agent or a tool, or a new name."""
        for it in self._variables:
            if it.name not in self.planned and _is_decided_by(it, by):
                self.planned[it.name] = it.purpose
                return it.name
        return self.of(owner, kind)


def _is_decided_by(variable: PlannedVariable, by: Sequence[str]) -> bool:
    said = f"{variable.trigger_hint or ''}\n{variable.purpose}"
    is_state = variable.type in ("state", "derived")
    return is_state and any(mentions(said, it) for it in by)


def _decisions(
    workflow: WorkflowPlan, parts: Sequence[Fragment], names: _Names
) -> Iterator[tuple[str, Decision]]:
    people = {it.agent_name: it.human_interaction for it in workflow.agents}
    for number, part in enumerate(parts, 1):
        if not part.options:
            continue
        kind = "decision" if names.shared else part.field
        variable = names.deciding(tuple(part.options), f"module {number}", kind)
        tasks = names.new(f"module {number} tasks") if part.tasks else None
        for agent, options in part.options.items():
            asks = people[agent] == "context" and is_attended(workflow)
            question = (Option(ASK_USER, USER, "the user must be asked first"),) if asks else ()
            yield agent, Decision(agent, variable, part.field, (*options, *question), tasks)


def _rounds(parts: Sequence[Fragment], names: _Names) -> Iterator[Rounds]:
    for part in parts:
        if part.counted:
            yield Rounds(names.of(part.counted, "rounds over"), part.counted, len(ROUNDS))


def _back(parts: Sequence[Fragment], agent: str) -> str | None:
    """Return to whom work of an agent goes back that a person rejects."""
    within = [part.back[agent] for part in parts if agent in part.back]
    return within[0] if within else _before(parts, agent)


def _before(parts: Sequence[Fragment], agent: str) -> str | None:
    """Return who leads to the module that an agent begins, if it is not the first."""
    entries = [it.entry for it in parts]
    if agent not in entries[1:]:
        return None
    earlier = parts[entries.index(agent) - 1]
    onward = [it for it, target in earlier.onward.items() if target == agent]
    deciding = [
        it
        for it, options in earlier.options.items()
        if any(option.target == agent for option in options)
    ]
    return (*onward, *deciding)[-1]


def _ways(agent: str, part: Fragment, wiring: Wiring, *, attended: bool) -> Iterator[Way]:
    """Yield who may be next after an agent, in the order in which it is asked."""
    approval, ready = wiring.approvals.get(agent), wiring.ready.get(agent)
    gate: tuple[Test, ...] = ()
    otherwise = Way(agent, USER if attended else agent)
    if approval:
        gate = (Test(approval.variable, (APPROVE,)),)
        rejected = Test(approval.variable, (REJECT,))
        # Where nothing precedes an agent, the first refusal is the last.
        last = (Test(approval.rounds, ROUNDS[-1:]),) if approval.rounds else ()
        ending = Way(agent, TERMINATE, (rejected, *last), f"What {agent} did was not approved.")
        refused = [ending, Way(agent, approval.back, (rejected,))] if approval.back else [ending]
        if approval.by_reply:
            # There is always an answer, so what is not approved is rejected.
            otherwise = replace(refused.pop(), tests=())
        yield from refused
    elif ready:
        gate = (Test(ready),)
    yield from _onward(agent, part, wiring, gate)
    if gate:
        yield otherwise


def _onward(agent: str, part: Fragment, wiring: Wiring, gate: tuple[Test, ...]) -> Iterator[Way]:
    """Yield the ways on from an agent; a gate must be open for all of them."""
    decision = wiring.decisions.get(agent)
    if decision is None:
        yield Way(agent, part.onward[agent], gate)
        return
    ways = [
        Way(agent, target, (Test(decision.variable, values), *gate))
        for target, values in _by_target(decision.options)
    ]
    if part.counted == agent:
        over = tuple(Test(it.variable) for it in wiring.rounds if it.agent == agent)
        ways.insert(1, Way(agent, ways[0].target, over))
    yield from ways if gate else _with_fallback(ways)


def _with_fallback(ways: Sequence[Way]) -> Iterator[Way]:
    """Yield ways of which the last that leads to an agent or the end needs no test."""
    last = [it for it in ways if it.target != USER][-1]
    yield from (it for it in ways if it is not last)
    yield replace(last, tests=())


def _by_target(options: Sequence[Option]) -> list[tuple[str, tuple[str, ...]]]:
    values: dict[str, tuple[str, ...]] = {}
    for it in options:
        values[it.target] = (*values.get(it.target, ()), it.value)
    return list(values.items())
