"""Sources: the kinds of variables a plan knows, each with what it needs to be read or set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from weft.check.secrets import names_a_key
from weft.generator.compile.texts import line, mentions, plain
from weft.generator.compile.variable_types import DEFAULTS, type_of
from weft.generator.compile.wires import DECISION, OPEN, Wiring
from weft.generator.names import pascal_case, snake_case
from weft.generator.quantities import AMOUNTS, computation_of, quantity_of
from weft.generator.shapes import ToolShape
from weft.generator.workflow_plan import WorkflowPlan
from weft.spec.part import JsonValue
from weft.spec.plan import PlannedVariable
from weft.spec.triggers import (
    LifecycleTrigger,
    ToolCallTrigger,
    ToolResponseTrigger,
    Trigger,
    UiResponseTrigger,
)
from weft.spec.type_field import ModelField
from weft.spec.type_parser import parse_type
from weft.spec.types import LiteralOf, Scalar
from weft.spec.variables import (
    ComputedSource,
    DatabaseSource,
    DerivedSource,
    EntitySource,
    EnvironmentSource,
    ExternalSource,
    FileSource,
    ServiceAuth,
    Source,
    StaticSource,
    Variable,
)

#: The texts in a document that a workflow keeps.
_RECORD: Final = {
    "status": "Where the matter stands.",
    "summary": "What is known, in a few sentences.",
    "details": "Everything else that is worth keeping.",
}


def collection_of(variable: PlannedVariable) -> str:
    """Return the collection a variable's document lies in."""
    return pascal_case(variable.name, "Documents")


def record_fields() -> dict[str, ModelField]:
    """Return the fields of a document that a workflow keeps; none of them must be there."""
    text = parse_type("optional[str]")
    fields = {name: ModelField(type=text, description=told) for name, told in _RECORD.items()}
    numbers = parse_type("optional[list[float]]")
    return {**fields, AMOUNTS: ModelField(type=numbers, description="The numbers that count.")}


@dataclass(frozen=True, slots=True)
class SourceMaker:
    """Makes the variables of a plan; `known` are those that there are already."""

    workflow: WorkflowPlan
    shapes: Sequence[ToolShape]
    known: Mapping[str, Variable]
    wiring: Wiring

    def variables(self, planned: PlannedVariable) -> dict[str, Variable]:
        """Return a variable of the plan, and what it needs beside it."""
        name, beside = planned.name, dict[str, Variable]()
        secret = False
        match planned.type:
            case "state" | "derived":
                type_, source = self._state(planned)
            case "computed":
                type_, source = self._computed(planned)
            case "external":
                type_, source = "dict", self._external(planned)
                address = f"{name}_url"
                beside[address] = Variable(
                    type=parse_type("optional[str]"),
                    description=line(f"Where {name} is asked for."),
                    source=EnvironmentSource(env_var=address.upper()),
                )
            case "data_entity" | "entity":
                type_, source = pascal_case(f"{name} record", "Record"), _entity(planned)
            case "config" | "environment":
                type_ = type_of(planned)
                source = EnvironmentSource(env_var=name.upper(), default=DEFAULTS[type_])
                secret = names_a_key(name)
            case _:
                type_, source = type_of(planned), _read_only(planned)
        made = Variable(
            type=parse_type(type_),
            description=line(planned.purpose) or line(f"The {name} of the plan."),
            source=source,
            secret=secret,
        )
        return {**beside, name: made}

    def _external(self, planned: PlannedVariable) -> ExternalSource:
        name = planned.name
        return ExternalSource(
            service=name,
            operation="read",
            url=f"{{{name}_url}}?user={{user_id}}",
            auth=ServiceAuth(type="bearer", secret_env=f"{name.upper()}_TOKEN"),
            default={},
        )

    def _computed(self, planned: PlannedVariable) -> tuple[str, Source]:
        """Return a number from a kept document, or a condition over something that changes.

        Without either it says whether all is done.
        """
        quantity = quantity_of(planned.name)
        for name, it in self.known.items() if quantity else ():
            if isinstance(it.source, EntitySource):
                type_ = "int" if quantity == "count" else "float"
                function = computation_of(planned.name)
                return type_, ComputedSource(computation=function, inputs=(name,))
        said = f"{planned.trigger_hint or ''} {planned.purpose}"
        changing = [name for name, it in self.known.items() if isinstance(it.source, DerivedSource)]
        for name in (*(it for it in changing if mentions(said, it)), *changing):
            condition = _condition(name, self.known[name])
            return "bool", ComputedSource(computation=condition, inputs=(name,))
        return "bool", DerivedSource(default=False, triggers=(self._at_the_end(value=True),))

    def _state(self, planned: PlannedVariable) -> tuple[str, Source]:
        """Return a state and what sets it: the tools, else the agents that the plan names."""
        type_ = type_of(planned)
        default = DEFAULTS[type_]
        hint = planned.trigger_hint or ""
        triggers: list[Trigger] = []
        for shape in self.shapes:
            if planned.name in {it.name for it in shape.parameters}:
                triggers.append(ToolCallTrigger(tool=shape.name, argument=planned.name))
            elif mentions(hint, shape.name) and not triggers:
                type_, default, trigger = _by_tool(shape)
                triggers.append(trigger)
                break
        if triggers:
            unique = {it.model_dump_json(): it for it in triggers}
            return type_, DerivedSource(default=default, triggers=tuple(unique.values()))
        named = [it for it in self.workflow.agents if mentions(hint, it.agent_name)]
        values = {it.agent_name: snake_case(it.agent_name, "agent") for it in named}
        steps: list[Trigger] = [
            LifecycleTrigger(event="before_agent", agent=agent, value=value)
            for agent, value in values.items()
            if len(values) == 1 or agent not in self.wiring.members
        ]
        if not steps:
            values = {"": "done"}
            steps = [self._at_the_end(value="done")]
        listed = ", ".join(f'"{it}"' for it in dict.fromkeys((OPEN, *values.values())))
        return f"literal[{listed}]", DerivedSource(default=OPEN, triggers=tuple(steps))

    def _at_the_end(self, value: JsonValue) -> LifecycleTrigger:
        last = self.workflow.agents[-1].agent_name
        return LifecycleTrigger(event="after_agent", agent=last, value=value)


def _by_tool(shape: ToolShape) -> tuple[str, JsonValue, Trigger]:
    """Return what a tool sets a state to: type, value at the start, and the event."""
    if shape.kind == "ui":
        field = shape.result[0]
        if field.name == DECISION:
            values = f'"{OPEN}", {field.type.removeprefix("literal[")}'
            trigger = UiResponseTrigger(tool=shape.name, response_key=DECISION)
            return f"literal[{values}", OPEN, trigger
        return "str", "", UiResponseTrigger(tool=shape.name, response_key=field.name)
    if shape.kind == "decision":
        return "str", "", ToolCallTrigger(tool=shape.name, argument="summary")
    if shape.kind == "external":
        return "bool", False, ToolResponseTrigger(tool=shape.name, response_key="found")
    if shape.kind == "ask":
        return "str", "", ToolResponseTrigger(tool=shape.name, response_key="result")
    return "bool", False, ToolCallTrigger(tool=shape.name)


def _condition(name: str, variable: Variable) -> str:
    """Return when a variable is no longer what it was at the start."""
    if isinstance(variable.type, LiteralOf):
        return f"{name} != '{OPEN}'"
    return f"{name} > 0" if variable.type == Scalar("int") else name


def _entity(planned: PlannedVariable) -> EntitySource:
    return EntitySource(
        collection=collection_of(planned),
        search_by="user_id",
        schema=record_fields(),
        default={},
    )


def _read_only(planned: PlannedVariable) -> Source:
    """Return where something comes from that no run changes."""
    if planned.type in ("data_reference", "database"):
        return DatabaseSource(collection=collection_of(planned), search_by="user_id", default={})
    default = DEFAULTS[type_of(planned)]
    if planned.type == "file":
        return FileSource(path=f"data/{planned.name}.json", format="json", default=default)
    text = plain(planned.purpose)
    return StaticSource(value=text if type_of(planned) == "str" else default)
