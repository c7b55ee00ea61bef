"""Values: what a workflow knows, which record keeps it, and what needs a variable of its own."""

from dataclasses import dataclass
from functools import cached_property

from weft.generator.compile.wiring import Turn, Wiring, condition_names
from weft.generator.plans.data_rules import VARIABLE_KINDS, start_fields
from weft.generator.plans.workflow_plan import WorkflowPlan
from weft.ids import BUILT_IN_VARIABLES
from weft.spec.plan import PlannedField, PlannedVariable
from weft.spec.templates import references
from weft.spec.types import LiteralOf, OptionalOf, TypeExpr

#: How the address of a service begins that is called: with a method that changes something.
CALLS = ("POST ", "PUT ", "PATCH ", "DELETE ")


def optional(type_: TypeExpr) -> TypeExpr:
    """Return a type whose values may be null."""
    return type_ if isinstance(type_, OptionalOf) else OptionalOf(type_)


@dataclass(frozen=True)
class Values:
    """The values of a workflow: in documents, or in variables of their own."""

    workflow: WorkflowPlan
    wiring: Wiring

    @cached_property
    def planned(self) -> dict[str, PlannedVariable]:
        """The variables of the plan, by name."""
        return {each.name: each for each in self.workflow.blueprint.global_context_variables}

    def kind(self, name: str) -> str:
        """Return the kind of a variable of the plan; "" for another value."""
        planned = self.planned.get(name)
        return VARIABLE_KINDS.get(planned.type, planned.type) if planned else ""

    @cached_property
    def kept_in(self) -> dict[str, str]:
        """By the name of a field: the record that keeps it."""
        return {
            field.name: variable.name
            for variable in self.planned.values()
            if self.kind(variable.name) == "data_entity"
            for field in variable.fields
        }

    @cached_property
    def fields(self) -> dict[str, PlannedField]:
        """All values that are set one by one: fields of records, answers, and of the start."""
        found = list(start_fields(self.workflow.strategy))
        for each in self.planned.values():
            found += each.fields if self.kind(each.name) == "data_entity" else ()
        found += self._asked
        for each in self.planned.values():
            if self.kind(each.name) == "state":
                type_ = LiteralOf(each.outcomes) if each.outcomes else each.value_type
                state = PlannedField(name=each.name, type=type_, description=each.purpose)
                found.append(state)
        return {field.name: field for field in found}

    @cached_property
    def _asked(self) -> list[PlannedField]:
        """What people fill in."""
        return [field for each in self.workflow.blueprint.ui_components for field in each.fields]

    def of_reply(self, turn: Turn) -> list[PlannedField]:
        """Return the values that the structured reply of an agent sets."""
        shown = turn.component(turn.tool) if turn.is_person else None
        filled_in = {field.name for field in shown.fields} if shown else set[str]()
        return [
            self.fields[name]
            for name in turn.agent.writes
            if name in self.fields and name not in filled_in and name != turn.variable
        ]

    def read_after(self, turn: Turn, outcome: str) -> set[str]:
        """Return the values that the agent after an outcome reads or shows."""
        following = {way.target for way in turn.ways if way.when == outcome}
        found: set[str] = set()
        for each in self.wiring.turns:
            if each.name in following:
                found.update(each.agent.reads, *(shown.shows for shown in each.components))
        return found

    def is_structured(self, turn: Turn) -> bool:
        """Return whether an agent replies with fields, which a tool gets."""
        return bool(turn.outcomes or turn.is_person or self.of_reply(turn) or self.calls(turn))

    def calls(self, turn: Turn) -> list[str]:
        """Return the services that are called when an agent has decided."""
        return [name for name in turn.agent.writes if self.is_called(name)]

    def is_called(self, name: str) -> bool:
        """Return whether a variable is a service that is called, not read."""
        planned = self.planned.get(name)
        return planned is not None and (planned.url or "").startswith(CALLS)

    def answer_fields(self, turn: Turn, tool: str) -> list[PlannedField]:
        """Return what a person fills in, besides a decision."""
        shown = turn.component(tool)
        if shown and shown.fields:
            return list(shown.fields)
        is_question = not turn.is_person or turn.tool != tool
        return [PlannedField(name="answer", description="Your answer")] if is_question else []

    @cached_property
    def inserted(self) -> set[str]:
        """The values that must be variables: conditions test them, or sources insert them."""
        named = condition_names(self.wiring)
        for planned in self.planned.values():
            if planned.key:
                named.add(planned.key)
            if planned.type == "external":
                named |= {each.name for each in references(planned.url or "")}
            if self.is_called(planned.name):
                named |= {field.name for field in planned.fields}
        return named - BUILT_IN_VARIABLES

    @cached_property
    def own(self) -> list[str]:
        """The values that have a variable of their own: a source needs one, or no record has it.

        What is only answered, and read by no agent, is in the conversation.
        """
        agents = self.workflow.agents
        shown = {name for each in self.workflow.blueprint.ui_components for name in each.shows}
        read = shown.union(*(agent.reads for agent in agents))
        set_ = {field.name for field in self._asked}.union(*(agent.writes for agent in agents))
        kept = {self.kept_in[name] for name in set_ if name in self.kept_in}
        brought = {field.name for field in start_fields(self.workflow.strategy)}
        needed = self.inserted.union(
            name for name in brought if name in read or self.kept_in.get(name) in kept
        )
        states = {name for name in set_ if self.kind(name) == "state"}
        loose = (read | states) - self.kept_in.keys()
        return [name for name in self.fields if name in needed or name in loose]

    @cached_property
    def keys(self) -> dict[str, list[str]]:
        """By value: the variables whose documents are found by it."""
        found: dict[str, list[str]] = {}
        for planned in self.planned.values():
            if planned.key in self.fields:
                found.setdefault(planned.key, []).append(planned.name)
        return found
