"""Family STATE: derived variables with transitions, which are state machines."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from weft.check.declarations import assigned, placed_triggers
from weft.check.rules.usage import read_variables
from weft.check.spelling import short, variable_meant
from weft.check.subject import Hit, Subject, rule
from weft.check.texts import routing_conditions
from weft.check.values import format_value, is_open_secret, key_of, value_error
from weft.engine.variables.conditions import same
from weft.findings import Fix, Json, Path, Remove
from weft.spec.conditions import And, Compare, Condition, ListOf, Name, Not, Or, Value, names
from weft.spec.variables import ComputedSource, DerivedSource


@dataclass(frozen=True)
class _Machine:
    """The states of one variable; a state is identified by its value as canonical JSON."""

    name: str
    source: DerivedSource

    @property
    def path(self) -> Path:
        return ("variables", self.name, "source")

    def text(self, *states: str) -> str:
        return short(", ".join(format_value(self.name, json.loads(state)) for state in states))

    @cached_property
    def start(self) -> str:
        return key_of(self.source.default)

    @cached_property
    def steps(self) -> dict[str, list[str]]:
        """The next states of each state; none for a final state."""
        steps: dict[str, list[str]] = {}
        for transition in self.source.transitions:
            steps.setdefault(key_of(transition.from_), []).append(key_of(transition.to))
            steps.setdefault(key_of(transition.to), [])
        return steps

    @cached_property
    def reached(self) -> set[str]:
        waiting, reached = [self.start], set[str]()
        while waiting:
            state = waiting.pop()
            if state not in reached:
                reached.add(state)
                waiting += self.steps.get(state, ())
        return reached

    @cached_property
    def places(self) -> dict[str, tuple[Path, Json]]:
        """The place where each state first occurs, and its value."""
        places: dict[str, tuple[Path, Json]] = {}
        for index, transition in enumerate(self.source.transitions):
            path = (*self.path, "transitions", index)
            places.setdefault(key_of(transition.from_), ((*path, "from"), transition.from_))
            places.setdefault(key_of(transition.to), ((*path, "to"), transition.to))
        return places


def _machines(subject: Subject) -> Iterator[_Machine]:
    for name, source in subject.sources(DerivedSource):
        if source.transitions and not is_open_secret(subject.spec.variables[name]):
            yield _Machine(name, source)


def _sound(subject: Subject) -> list[_Machine]:
    """Return the machines whose values fit their type; VAR002 reports the others."""
    return [machine for machine in _machines(subject) if _fits(subject, machine)]


def _fits(subject: Subject, machine: _Machine) -> bool:
    type_, default = subject.spec.variables[machine.name].type, machine.source.default
    values = [value for _, value in machine.places.values()]
    values += [] if default is None else [default]
    return not any(value_error(type_, value, subject.models) for value in values)


@rule("STATE001", "variables", "models")
def default_is_a_state(subject: Subject) -> Iterator[Hit]:
    for machine in subject.once(_sound):
        if machine.start in machine.steps:
            continue
        hint = (f"the states are {machine.text(*machine.steps)}",)
        if machine.source.default is None:
            fact = f"{machine.name} has transitions but no default, so no transition can apply"
            yield Hit(machine.path, fact, hint=hint)
        else:
            fact = f"{machine.name} starts as {machine.text(machine.start)}, which is not a state"
            yield Hit((*machine.path, "default"), fact, hint=hint)


@rule("STATE002", "variables", "models")
def state_is_reachable(subject: Subject) -> Iterator[Hit]:
    for machine in subject.once(_sound):
        orphans = [state for state in machine.steps if state not in machine.reached]
        # With an unknown start all states are unreachable; STATE001 reports the start.
        if orphans and machine.start in machine.steps:
            path, _ = machine.places[orphans[0]]
            yield Hit(
                path,
                f"{machine.name} can never be {machine.text(*orphans)}: "
                f"no transition leads there from the default {machine.text(machine.start)}",
                hint=(f"add a transition to {machine.text(orphans[0])}, or remove those from it",),
            )


@rule("STATE003", "variables", "models", "handoffs", "agents", "exposure", "code")
def end_state_is_noticed(subject: Subject) -> Iterator[Hit]:
    # A variable that nothing reads is reported by NAME003 only.
    read = subject.once(read_variables)
    for machine in subject.once(_sound):
        for state, following in machine.steps.items():
            if following or state not in machine.reached or machine.name not in read:
                continue
            path, value = machine.places[state]
            if not _is_noticed(subject, machine, value):
                yield Hit(
                    path,
                    f"{machine.name} stays {machine.text(state)} forever, "
                    "and no handoff condition tests for it",
                    hint=(
                        f"add a handoff for {machine.name} == {machine.text(state)}",
                        "or a transition that leads on",
                    ),
                )


def _is_noticed(subject: Subject, machine: _Machine, value: Json) -> bool:
    name = machine.name
    type_ = subject.spec.variables[name].type

    def is_it(listed: Json) -> bool:
        # An impossible value is reported as a misspelt state.
        return same(listed, value) or value_error(type_, listed, subject.models) is not None

    for condition in routing_conditions(subject).values():
        meant = {variable_meant(subject, other): other for other in names(condition)}
        if name in meant and _tests(condition, meant[name], is_it):
            return True
    if any(name in source.inputs for _, source in subject.sources(ComputedSource)):
        return True
    judged = [
        handoff.condition
        for index, handoff in enumerate(subject.spec.handoffs)
        if handoff.condition and index not in routing_conditions(subject)
    ]
    return any(name in text or str(value) in text for text in judged)


def _tests(condition: Condition, name: str, is_it: Callable[[Json], bool]) -> bool:
    """Return whether this value of the variable may decide the condition."""
    match condition:
        case Compare("==" | "!=", Name(other), Value(listed)):
            return other == name and is_it(listed)
        case Compare("in" | "not in", Name(other), ListOf(items)):
            return other == name and any(is_it(item.value) for item in items)
        case Compare(_, left, right):
            return Name(name) in (left, right)
        case And(operands) | Or(operands):
            return any(_tests(operand, name, is_it) for operand in operands)
        case Not(operand):
            return _tests(operand, name, is_it)
        case _:
            return condition.name == name


@rule("STATE004", "variables", "models")
def trigger_follows_a_transition(subject: Subject) -> Iterator[Hit]:
    machines = {machine.name: machine for machine in _machines(subject)}
    for placed in placed_triggers(subject):
        machine, found = machines.get(placed.variable), assigned(placed)
        if machine is None or found is None:
            continue
        value, path = found
        targets = {key_of(transition.to) for transition in machine.source.transitions}
        type_ = subject.spec.variables[machine.name].type
        # A value of the wrong type is reported by VAR002.
        if key_of(value) not in targets and not value_error(type_, value, subject.models):
            yield Hit(
                path,
                f"a trigger sets {machine.name} to {machine.text(key_of(value))}, "
                "to which no transition leads",
                hint=(f"transitions lead to {machine.text(*sorted(targets))}",),
            )


@rule("NAME002", "variables")
def transition_stands_once(subject: Subject) -> Iterator[Hit]:
    for machine in _machines(subject):
        met: set[tuple[str, str, str]] = set()
        for index, transition in enumerate(machine.source.transitions):
            path = (*machine.path, "transitions", index)
            same_as = (key_of(transition.from_), key_of(transition.to), repr(transition.trigger))
            if same_as in met:
                yield Hit(
                    path,
                    f"duplicate transition of {machine.name} from {machine.text(same_as[0])} to "
                    f"{machine.text(same_as[1])}",
                    hint=("remove one of the two",),
                    fix=Fix("remove the second transition", (Remove(path),)),
                    severity="warning",
                )
            met.add(same_as)
