"""Where the rules of a package lead, compared with where its plan says."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice, product
from typing import Any, Final, cast

from weft.engine.variables.conditions import UNKNOWN, decide
from weft.errors import ExpressionError
from weft.findings import Json
from weft.generator.plans.workflow_plan import PlannedModule, WorkflowPlan
from weft.ids import TERMINATE, USER
from weft.spec.agents import Handoff
from weft.spec.condition_parser import parse_condition
from weft.spec.conditions import And, Compare, Condition, ListOf, Name, Not, Or, Value, names
from weft.spec.plan import NextStep, PlannedAgent
from weft.spec.tools import UiTool
from weft.spec.triggers import ToolResponseTrigger
from weft.spec.type_meaning import finite_values, validation_error
from weft.spec.types import Scalar
from weft.spec.variables import DerivedSource, StaticSource
from weft.spec.workflow import WorkflowSpec

_END: Final = "end"
#: The most combinations of values that two conditions are compared with.
_MOST: Final = 200


#: How messages name the targets of a plan that are no modules.
_PHRASES: Final = {_END: "the end", USER: "the user"}


class Routes:
    """The handoff rules of a package, and the ways of its plan."""

    def __init__(self, workflow: WorkflowPlan, spec: WorkflowSpec, code: Mapping[str, str]) -> None:
        self._workflow, self._spec, self._code = workflow, spec, code
        self._agents = {agent.agent_name for agent in spec.agents}
        self._unknown: dict[str, object] = dict.fromkeys(spec.variables, UNKNOWN)

    @cached_property
    def _rules(self) -> dict[str, list[tuple[Condition | None, str]]]:
        """The rules of each agent in their order: conditions, and targets."""
        found: dict[str, list[tuple[Condition | None, str]]] = {}
        rules = sorted(
            self._spec.handoffs, key=lambda rule: (rule.condition is None, rule.priority)
        )
        for rule in rules:
            condition = _parsed(rule)
            if rule.condition is None or condition is not None:
                found.setdefault(rule.source_agent, []).append((condition, rule.target_agent))
        for group in self._spec.orchestrator.parallel:
            found.setdefault(group.name, []).append((None, group.next or USER))
            for member in group.members:  # Members have no rules: the group leads on.
                found.setdefault(member, []).append((None, group.next or USER))
        return found

    def _targets(self, to: str) -> set[str]:
        """Return what a way of the plan may lead to in the package."""
        if to in (_END, USER):
            return {TERMINATE if to == _END else USER}
        modules = (
            module for module in self._workflow.modules if to in (module.name, module.purpose)
        )
        found = {agent.agent_name for module in modules for agent in module.agents} or {to}
        groups = self._spec.orchestrator.parallel
        return found | {group.name for group in groups if found.intersection(group.members)}

    def impossible(self) -> Iterator[str]:
        """Yield the outcomes of agents that nothing in the package can come to."""
        for agent in self._workflow.agents:
            if len(agent.outcomes) < 2 or agent.agent_name not in self._agents:
                continue
            said = self._sayable(agent)
            for outcome in agent.outcomes:
                if outcome not in said:
                    yield f"{agent.agent_name} cannot come to {outcome}"

    def _sayable(self, agent: PlannedAgent) -> set[str]:
        """Return the texts that an agent, its tools or its people can decide on."""
        name = agent.agent_name
        tools = [tool for tool in self._spec.tools if tool.agent == name]
        asked = (tool.response_schema for tool in tools if isinstance(tool, UiTool))
        said = {text for schema in asked for text in _texts_in(schema)}
        bound = {binding.model for binding in self._spec.registry if binding.agent == name}
        for model in self._spec.models:
            if model.name in bound:
                for field in model.fields.values():
                    said |= {str(value) for value in finite_values(field.type, 64) or ()}
        functions = {tool.function for tool in tools}
        # What people are asked and what replies may be is closed; what code returns is not.
        if not said or self._is_decided_by_code(functions):
            for tool in tools:
                code = self._code.get(f"tools/{tool.file}", "")
                said |= {*re.findall(r"""["'](\w+)["']""", code)}
        for variable, declared in self._spec.variables.items():
            source = declared.source
            for trigger in source.triggers if isinstance(source, DerivedSource) else ():
                owners = {getattr(trigger, key, None) for key in ("agent", "source_agent", "tool")}
                if owners & {name, *functions}:
                    said |= {str(getattr(trigger, "value", "")), variable}
        return said

    def _is_decided_by_code(self, functions: set[str]) -> bool:
        """Return whether a state is set to what one of the tools returns."""
        sources = (declared.source for declared in self._spec.variables.values())
        return any(
            isinstance(trigger, ToolResponseTrigger)
            and trigger.response_key is not None
            and trigger.tool in functions
            for source in sources
            if isinstance(source, DerivedSource)
            for trigger in source.triggers
        )

    def astray(self) -> Iterator[str]:
        """Yield the ways of the plan that the rules do not take."""
        for module in self._workflow.modules:
            staff = [agent for agent in module.agents if agent.agent_name in self._agents]
            ways = self._ways(module)
            for way in ways if staff else ():
                yield from self._way(way, staff, only=len(ways) == 1)

    def _ways(self, module: PlannedModule) -> Sequence[NextStep]:
        planned = self._workflow.strategy.modules
        found = next((one for one in planned if one.module_index == module.index), None)
        return found.leads_to if found else ()

    def _way(self, way: NextStep, staff: list[PlannedAgent], *, only: bool) -> Iterator[str]:
        targets, to = self._targets(way.to), _PHRASES.get(way.to, way.to)
        deciding = [agent for agent in staff if way.when in agent.outcomes]
        sources = [agent.agent_name for agent in deciding or staff]
        anyone = " or ".join(sources)
        if not deciding and (asked := self._expression(way.when)):
            if not any(self._applies(asked, name, targets) for name in sources):
                yield f"no rule leads from {anyone} to {to} exactly when {way.when}"
            return
        for name in sources if deciding else ():
            alone = only or len(next(a for a in deciding if a.agent_name == name).outcomes) == 1
            if not self._leads(name, way.when, targets, alone=alone):
                yield f"{name} does not lead to {to} when it comes to {way.when}"
        if not deciding and not any(self._reaches(name, way.when, targets) for name in sources):
            yield f"nothing leads from {anyone} to {to} when {way.when}"

    def _leads(self, agent: str, outcome: str, targets: set[str], *, alone: bool) -> bool:
        """Return whether an agent hands off to a target when it has come to an outcome."""
        rules = self._rules.get(agent, [])
        if alone and any(target in targets and self._can_hold(each) for each, target in rules):
            return True
        tested = dict.fromkeys(
            name for condition, _ in rules if condition for name in names(condition)
        )
        values = [
            (name, value) for name in tested if (value := self._value(name, outcome)) is not None
        ]
        return any(self._first(rules, {name: value}) in targets for name, value in values)

    def _can_hold(self, condition: Condition | None) -> bool:
        """Return whether a condition holds for some values of its variables."""
        if condition is None:
            return True
        samples = [(name, self._samples(name, condition)) for name in names(condition)]
        cases = product(*([(name, value) for value in values] for name, values in samples))
        return any(
            _decided(condition, {**self._unknown, **dict(case)}) is not False
            for case in islice(cases, _MOST)
        )

    def _samples(self, name: str, condition: Condition) -> Sequence[object]:
        """Return values that a variable can have, those that matter to a condition among them."""
        variable = self._spec.variables.get(name)
        if variable is None:
            return [UNKNOWN]
        if isinstance(variable.source, StaticSource):
            return [variable.source.value]
        listed = finite_values(variable.type, _MOST)
        near = [
            value
            for value in _around(name, [condition])
            if not validation_error(variable.type, value, {})
        ]
        return listed if listed is not None else near or [UNKNOWN]

    def _value(self, name: str, outcome: str) -> Json:
        """Return the value of a variable that means an outcome; None if it has none."""
        variable = self._spec.variables.get(name)
        if variable is None or not isinstance(variable.source, DerivedSource):
            return None
        if variable.type == Scalar("bool") and name == outcome:
            return True
        if validation_error(variable.type, outcome, {}):
            return None
        return (
            outcome if variable.type == Scalar("str") or finite_values(variable.type, 64) else None
        )

    def _first(
        self, rules: Iterable[tuple[Condition | None, str]], known: Mapping[str, Json]
    ) -> str:
        """Return where the first rule leads that holds, or may and tests what is known."""
        values = {**self._unknown, **known}
        for condition, target in rules:
            if condition is None:
                return target
            held = _decided(condition, values)
            if held or (held is None and known.keys() & {*names(condition)}):
                return target
        return USER

    def _reaches(self, agent: str, when: str, targets: set[str]) -> bool:
        """Return whether a rule leads to a target; it must test the numbers that a way names."""
        numbers = {float(number) for number in re.findall(r"\d+(?:\.\d+)?", when.replace(",", ""))}
        for condition, target in self._rules.get(agent, []):
            constants = {float(value) for value in _constants(condition) if _is_number(value)}
            if target in targets and numbers <= constants:
                return True
        return False

    def _expression(self, when: str) -> Condition | None:
        """Return a way of the plan as a condition over variables, if it is one."""
        try:
            condition = parse_condition(when)
        except ExpressionError:
            return None
        return condition if {*names(condition)} <= self._spec.variables.keys() else None

    def _applies(self, asked: Condition, agent: str, targets: set[str]) -> bool:
        """Return whether the rules to a target hold exactly when a condition does."""
        rules = [condition for condition, target in self._rules.get(agent, []) if target in targets]
        about = {*names(asked)}
        tested = [rule for rule in rules if rule is not None and about & {*names(rule)}]
        if not tested:
            return False
        samples = [(name, _around(name, [asked, *tested])) for name in names(asked)]
        cases = product(*([(name, value) for value in values] for name, values in samples))
        for case in islice(cases, _MOST):
            values = {**self._unknown, **dict(case)}
            wanted, held = _decided(asked, values), [_decided(rule, values) for rule in tested]
            if wanted is True and all(answer is False for answer in held):
                return False
            if wanted is False and any(answer is not False for answer in held):
                return False
        return True

    def astray_after(self, heard: Mapping[str, Json], to: str) -> Iterator[str]:
        """Yield the agents that hear the user and do not hand off to a target after it."""
        targets = self._targets(to)
        for agent in sorted(self._agents - targets):
            rules = self._rules.get(agent, [])
            listens = any(target == USER for _, target in rules)
            if (listens or agent == self._spec.orchestrator.initial_agent) and not any(
                self._first(rules, {name: value}) in targets for name, value in heard.items()
            ):
                yield agent


def _parsed(rule: Handoff) -> Condition | None:
    if rule.condition is None or rule.condition_type != "expression":
        return None
    try:
        return parse_condition(rule.condition)
    except ExpressionError:
        return None


def _decided(condition: Condition, values: Mapping[str, object]) -> bool | None:
    try:
        return decide(condition, values)
    except ExpressionError:
        return None


def _around(name: str, conditions: Iterable[Condition]) -> list[Json]:
    """Return values of a variable between which conditions may differ."""
    found: list[Json] = []
    for condition in conditions:
        for value in _compared(condition, name):
            near: list[Json] = [value]
            if _is_number(value):
                near += [value - 1, value + 1]
            else:
                near += [not value if isinstance(value, bool) else "another"]
            found += [one for one in near if one not in found]
    return found or [True, False]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _compared(condition: Condition, name: str) -> Iterator[Any]:
    """Yield the constants that a condition compares a variable with."""
    match condition:
        case And(operands) | Or(operands):
            for operand in operands:
                yield from _compared(operand, name)
        case Not(operand):
            yield from _compared(operand, name)
        case Compare(_, left, right):
            if Name(name) in (left, right):
                for side in (left, right):
                    yield from (
                        (item.value for item in side.items) if isinstance(side, ListOf) else ()
                    )
                    yield from (side.value,) if isinstance(side, Value) else ()
        case _:
            return


def _constants(condition: Condition | None) -> Iterator[Any]:
    for name in names(condition) if condition else ():
        yield from _compared(cast("Condition", condition), name)


def _texts_in(value: object) -> Iterator[str]:
    """Yield the texts that a schema allows as values."""
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        chosen = fields.get("enum")
        yield from map(str, cast("list[object]", chosen)) if isinstance(chosen, list) else ()
        yield from (str(fields["const"]),) if "const" in fields else ()
        for inner in fields.values():
            yield from _texts_in(inner)
    elif isinstance(value, list):
        for inner in cast("list[object]", value):
            yield from _texts_in(inner)
