"""Transformation 13.1: the tools of all agents, as shapes first and then as the manifest."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from weft.generator.compile.addressees import approver_of
from weft.generator.compile.services import asked_by
from weft.generator.compile.sources import record_fields
from weft.generator.compile.texts import line, mentions, words_of
from weft.generator.compile.variable_types import is_set_by_run, type_of
from weft.generator.compile.wires import APPROVE, DECISION, REJECT, Decision, Wiring
from weft.generator.names import pascal_case, snake_case, unique
from weft.generator.shapes import FieldShape, ToolShape
from weft.generator.workflow_plan import WorkflowPlan
from weft.spec.part import JsonMap, JsonValue
from weft.spec.plan import PlannedAgent, PlannedComponent, PlannedTool, PlannedVariable
from weft.spec.tools import AgentTool, LifecycleTool, Tool, Ui, UiTool
from weft.spec.type_parser import parse_type
from weft.spec.types import ListOf, LiteralOf, OptionalOf, print_type

_SUMMARY = FieldShape("summary", "str", "What was done and why, in a few sentences.")
_MESSAGE = FieldShape("agent_message", "str", "What the user is told.")
_TASKS = FieldShape("open_tasks", "list[str]", "The tasks that are open, one sentence each.")
_SHOWN = (
    FieldShape("title", "str", "What it is about, in a few words."),
    FieldShape("content", "str", "What the person must know to answer."),
)
_APPROVAL = (
    FieldShape(DECISION, f'literal["{APPROVE}", "{REJECT}"]', "Your decision"),
    FieldShape("comment", "optional[str]", "Why, or what is to be changed"),
)
_ANSWER = (FieldShape("answer", "str", "Your answer"),)
_REQUEST = (FieldShape("request", "str", "What is wanted, with all that must be known for it."),)
_RESULT = (
    FieldShape("result", "str", "What came of it."),
    FieldShape("notes", "list[str]", "What is uncertain or was left out."),
)
_QUERY = (FieldShape("query", "str", "What the service is asked for."),)
_FOUND = (
    FieldShape("found", "bool", "Whether the service has answered."),
    FieldShape("answer", "any", "What it has answered."),
)


def tool_shapes(workflow: WorkflowPlan, wiring: Wiring) -> tuple[ToolShape, ...]:
    """Return every tool of every agent, with those that were added: decisions and approvals."""
    named = _Named(wiring)
    for agent in workflow.agents:
        for shape in _shapes(agent, workflow, wiring):
            named.add(shape)
    return tuple(named.shapes)


class _Named:
    """Shapes under names that stand for one function each."""

    def __init__(self, wiring: Wiring) -> None:
        self.shapes: list[ToolShape] = []
        self._members = wiring.members

    def add(self, shape: ToolShape) -> None:
        """Take a tool in; the same tool of another agent shares its file."""
        known = {it.name: it for it in self.shapes}
        other = known.get(shape.name)
        # Members of a group would set the same variables side by side.
        shares = shape.agent not in self._members and not self._has(shape)
        if other and not (shares and replace(other, agent="") == replace(shape, agent="")):
            shape = self._renamed(shape, set(known))
        self.shapes.append(self._drawn_alone(shape))

    def _drawn_alone(self, shape: ToolShape) -> ToolShape:
        """Return a tool under a component of its own, unless all that share it answer alike."""
        drawn = {it.component: it.result for it in self.shapes if it.component}
        if shape.component is None or drawn.get(shape.component, shape.result) == shape.result:
            return shape
        return replace(shape, component=unique(shape.component, drawn))

    def _has(self, shape: ToolShape) -> bool:
        return any((it.name, it.agent) == (shape.name, shape.agent) for it in self.shapes)

    def _renamed(self, shape: ToolShape, taken: set[str]) -> ToolShape:
        name = _numbered(shape.name, taken)
        components = {it.component for it in self.shapes if it.component}
        component = unique(shape.component, components) if shape.component else None
        variables = shape.variables
        if shape.kind == "external":
            variables = asked_by(name)
        return replace(shape, name=name, component=component, variables=variables)


def _numbered(name: str, taken: set[str]) -> str:
    number = 2
    while name in taken:
        name = f"{name.rstrip('0123456789').rstrip('_')}_{number}"
        number += 1
    return name


def _shapes(agent: PlannedAgent, workflow: WorkflowPlan, wiring: Wiring) -> Iterator[ToolShape]:
    """Yield the tools of an agent; the first that fits is called by its replies, if they call any.

    What is missing is added: a tool that records decisions, or one that asks for approval.
    """
    decision = wiring.decisions.get(agent.agent_name)
    approval = wiring.approvals.get(agent.agent_name)
    asks_by_reply = bool(approval and approval.by_reply)
    records = decision is not None and not asks_by_reply
    asked = False
    for tool in agent.agent_tools:
        shape = _planned(agent, tool, workflow, wiring)
        if records and decision and shape.kind in ("ask", "access"):
            shape, records = _deciding(decision, shape), False
        if shape.kind == "ui":
            shape = _asking(shape, decision) if asks_by_reply and not asked else shape
            asked = True
        yield shape
    own = snake_case(agent.agent_name, "agent")
    if records and decision:
        name = f"record_{own}_{decision.field}"
        purpose = f"Records what {agent.agent_name} has decided."
        yield _deciding(decision, ToolShape(name, agent.agent_name, "ask", purpose))
    if agent.human_interaction == "approval" and not asked:
        shape = ToolShape(
            name=f"approve_{own}_work",
            agent=agent.agent_name,
            kind="ui",
            purpose=f"Asks a person to approve the work of {agent.agent_name}.",
            parameters=_SHOWN,
            result=_APPROVAL,
            component=pascal_case(f"{own} approval", "Approval"),
            mode="inline",
            label="Your approval is needed",
            summary=line(agent.objective, 200),
        )
        yield _asking(shape, decision) if asks_by_reply else shape


def _deciding(decision: Decision, shape: ToolShape) -> ToolShape:
    """Return a tool as what records the decisions of its agent."""
    return ToolShape(
        name=shape.name,
        agent=shape.agent,
        kind="decision",
        purpose=shape.purpose,
        parameters=_reply_fields(decision),
        result=(FieldShape("result", "str", "What was recorded."),),
        auto_invoke=True,
    )


def _asking(shape: ToolShape, decision: Decision | None) -> ToolShape:
    """Return a tool as what every reply of its agent puts to a person."""
    shown = _reply_fields(decision) if decision else shape.parameters
    return replace(shape, parameters=shown, auto_invoke=True)


def _reply_fields(decision: Decision) -> tuple[FieldShape, ...]:
    values = ", ".join(f'"{it.value}"' for it in decision.options)
    meaning = "; ".join(f"{it.value}: {it.meaning}" for it in decision.options)
    field = FieldShape(decision.field, f"literal[{values}]", meaning)
    tasks = (_TASKS,) if decision.tasks else ()
    return (field, *tasks, _SUMMARY, _MESSAGE)


def _planned(
    agent: PlannedAgent, tool: PlannedTool, workflow: WorkflowPlan, wiring: Wiring
) -> ToolShape:
    """Return a tool of the plan as what it is: a question, a service, an access, or a request."""
    name = snake_case(tool.name, "tool")
    plain = ToolShape(
        name=name,
        agent=agent.agent_name,
        kind="ask",
        purpose=line(tool.purpose) or f"Does what its name says: {' '.join(words_of(name))}.",
        parameters=_REQUEST,
        result=_RESULT,
        integration=tool.integration,
    )
    if tool.interaction_mode != "none":
        shown = _component(workflow, agent.agent_name, name)
        return replace(
            plain,
            kind="ui",
            parameters=_SHOWN,
            result=_APPROVAL if agent.human_interaction == "approval" else _ANSWER,
            component=pascal_case(shown.component if shown else name, "Question"),
            mode=shown.display if shown else tool.interaction_mode,
            label=line(shown.label) if shown else " ".join(words_of(name)).capitalize(),
            summary=line(shown.summary, 200) if shown else plain.purpose,
        )
    used = tuple(_used(tool, workflow, wiring))
    if tool.integration:
        query, answer = asked_by(name)
        answer = next((it.name for it in used if it.type == "external"), answer)
        asked = replace(plain, kind="external", parameters=_QUERY, result=_FOUND)
        return replace(asked, variables=(query, answer))
    return _access(plain, used, wiring) if used else plain


def _component(workflow: WorkflowPlan, agent: str, tool: str) -> PlannedComponent | None:
    for it in workflow.blueprint.ui_components:
        if it.agent == agent and snake_case(it.tool, "tool") == tool:
            return it
    return None


def _used(tool: PlannedTool, workflow: WorkflowPlan, wiring: Wiring) -> Iterator[PlannedVariable]:
    """Yield the variables that a tool speaks of, or that speak of it."""
    said = f"{' '.join(words_of(tool.name))}\n{tool.purpose}"
    for it in workflow.blueprint.global_context_variables:
        if it.name not in wiring.planned and (
            mentions(said, it.name) or mentions(it.trigger_hint or "", tool.name)
        ):
            yield it


def _access(shape: ToolShape, used: Sequence[PlannedVariable], wiring: Wiring) -> ToolShape:
    """Return a tool that reads variables, and sets those that a run may set."""
    settable = [it for it in used if is_set_by_run(it) and shape.agent not in wiring.members]
    given = {field.name: field for it in settable for field in _given(it)}
    return replace(
        shape,
        kind="access",
        parameters=tuple(given.values()),
        result=tuple(FieldShape(it.name, _optional(it), line(it.purpose)) for it in used),
        variables=tuple(it.name for it in used),
    )


def _given(variable: PlannedVariable) -> Iterator[FieldShape]:
    """Yield what a tool is given to set a variable: of a document, its fields."""
    if variable.type not in ("data_entity", "entity"):
        yield FieldShape(variable.name, _optional(variable), line(variable.purpose))
        return
    for name, field in record_fields().items():
        yield FieldShape(name, print_type(field.type), field.description)


def _optional(variable: PlannedVariable) -> str:
    return f"optional[{type_of(variable)}]"


def tools(workflow: WorkflowPlan, shapes: Sequence[ToolShape]) -> tuple[Tool, ...]:
    """Return the manifest: one entry for each tool of each agent."""
    approvers = {
        agent.agent_name: approver_of(agent, module)
        for module in workflow.modules
        for agent in module.agents
    }
    return tuple(
        _ui_tool(it, approvers.get(it.agent)) if it.kind == "ui" else _agent_tool(it)
        for it in shapes
    )


def _agent_tool(shape: ToolShape) -> AgentTool:
    return AgentTool(
        agent=shape.agent,
        file=shape.file,
        function=shape.name,
        description=shape.purpose,
        auto_invoke=shape.auto_invoke,
    )


def _ui_tool(shape: ToolShape, approver: str | None) -> UiTool:
    tool = UiTool(
        agent=shape.agent,
        file=shape.file,
        function=shape.name,
        description=shape.purpose,
        auto_invoke=shape.auto_invoke,
        ui=Ui(component=shape.component or "Question", mode=shape.mode or "inline"),
        payload_schema=_schema(shape.parameters),
        response_schema=_schema(shape.result),
    )
    return tool.model_copy(update={"for_": approver})


def _schema(fields: Sequence[FieldShape]) -> JsonMap:
    """Return what a form is made of: every field with its title, the optional ones left open."""
    properties: JsonMap = {it.name: _field_schema(it) for it in fields}
    required: list[JsonValue] = [it.name for it in fields if not _is_optional(it)]
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _field_schema(field: FieldShape) -> JsonMap:
    told: JsonMap = {"type": "string", "title": field.description}
    match parse_type(field.type):
        case LiteralOf(values):
            told["enum"] = list(values)
        case ListOf():
            told |= {"type": "array", "items": {"type": "string"}}
        case _:
            pass
    return told


def _is_optional(field: FieldShape) -> bool:
    return isinstance(parse_type(field.type), OptionalOf)


def lifecycle_tools(
    workflow: WorkflowPlan, shapes: Sequence[ToolShape]
) -> tuple[LifecycleTool, ...]:
    """Return what is called before and after agents, by the boundary they belong to."""
    taken = {it.name for it in shapes}
    found: list[LifecycleTool] = []
    for agent in workflow.agents:
        for it in agent.lifecycle_tools:
            name = _numbered(snake_case(it.name, "at_boundary"), taken)
            taken.add(name)
            found.append(
                LifecycleTool(
                    agent=agent.agent_name if it.trigger.endswith("_agent") else None,
                    file=f"{name}.py",
                    function=name,
                    description=line(it.purpose),
                    trigger=it.trigger,
                    integration=it.integration,
                )
            )
    order = ("before_chat", "before_agent", "after_agent", "after_chat")
    return tuple(sorted(found, key=lambda it: order.index(it.trigger)))
