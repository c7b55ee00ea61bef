"""An agent's view: everything about what it sees that does not change from call to call."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic_core import to_json

from weft.context.history import estimate
from weft.engine.state import State
from weft.findings import Json
from weft.ports.model import OutputSchema, ToolSchema
from weft.spec.agents import Agent
from weft.spec.templates import Reference, parse_template
from weft.spec.type_schema import json_schema
from weft.spec.types import Ref
from weft.spec.workflow import WorkflowSpec


@dataclass(frozen=True, slots=True)
class Section:
    """One section of the instructions, ready to be filled in."""

    id: str
    heading: str
    parts: tuple[str | Reference, ...]


@dataclass(frozen=True, slots=True)
class View:
    """What one agent sees, as far as the workflow decides it."""

    agent: str
    sections: tuple[Section, ...]
    exposed: tuple[str, ...]
    tools: tuple[ToolSchema, ...]
    output: OutputSchema | None
    #: About how many tokens the schemas take; counted once, they are sent with every call.
    tool_tokens: int = 0
    output_tokens: int = 0


def make_view(spec: WorkflowSpec, agent: Agent, tools: tuple[ToolSchema, ...]) -> View:
    """Work out an agent's view, once for all runs of a workflow."""
    name = agent.agent_name
    bound = {binding.agent: binding.model for binding in spec.registry}
    models = {it.name: {f: e.type for f, e in it.fields.items()} for it in spec.models}
    model = bound.get(name)
    output = OutputSchema(model, json_schema(Ref(model), models)) if model else None
    return View(
        agent=name,
        sections=tuple(
            Section(it.id, it.heading or "", parse_template(it.content))
            for it in agent.prompt_sections
        ),
        exposed=spec.exposure.get(name, ()),
        tools=tools,
        output=output,
        tool_tokens=estimate(to_json(tools).decode()) if tools else 0,
        output_tokens=estimate(to_json(output).decode()) if output else 0,
    )


def render(section: Section, values: Mapping[str, Json]) -> str:
    """Return the text of a section with the values of its variables filled in."""
    filled = "".join(
        part if isinstance(part, str) else shown(values.get(part.name)) for part in section.parts
    )
    return f"{section.heading}\n{filled}" if section.heading else filled


def shown(value: Json) -> str:
    """Return a value as it stands in a prompt."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def values_of(state: State) -> dict[str, Json]:
    """Return every value there is to fill in: the declared variables and the built-in ones."""
    return {
        **state.variables,
        "app_id": state.app,
        "enterprise_id": state.app,
        "user_id": state.user,
        "chat_id": state.run,
        "workflow_name": state.workflow,
    }
