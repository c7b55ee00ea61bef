"""Tools and hooks: the functions of a package that agents, people and the run itself call."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from weft.spec.part import JsonMap, Name, Part
from weft.spec.triggers import LifecyclePoint

Surface: TypeAlias = Literal["inline", "artifact"]
HookType: TypeAlias = Literal[
    "before_chat",
    "after_chat",
    "before_agent",
    "after_agent",
    "update_agent_state",
    "process_message_before_send",
    "process_last_received_message",
    "process_all_messages_before_reply",
]


class Ui(Part):
    """What a UI tool shows, and where."""

    component: Name = Field(description="PascalCase; `tools/<component>.jsx` may draw it.")
    mode: Surface


class AgentTool(Part):
    """A function an agent's model may call."""

    tool_type: Literal["Agent_Tool"] = "Agent_Tool"
    agent: Name
    file: Name = Field(description="Python file under `tools/`.")
    function: Name
    description: str = ""
    auto_invoke: bool = Field(
        default=False, description="Called with the fields of the agent's structured output."
    )


class UiTool(Part):
    """A function that asks a person something and waits for the answer."""

    tool_type: Literal["UI_Tool"] = "UI_Tool"
    agent: Name
    file: Name = Field(description="Python file under `tools/`.")
    function: Name
    description: str = ""
    auto_invoke: bool = Field(
        default=False, description="Called with the fields of the agent's structured output."
    )
    ui: Ui
    payload_schema: JsonMap | None = Field(
        default=None, description="JSON Schema of what is shown."
    )
    response_schema: JsonMap | None = Field(
        default=None, description="JSON Schema of the answer; the form is made from it."
    )


class LifecycleTool(Part):
    """A function called at a boundary of the run or of a turn."""

    tool_type: Literal["Lifecycle_Tool"] = "Lifecycle_Tool"
    agent: Name | None = Field(default=None, description="Only at this agent's turns.")
    file: Name = Field(description="Python file under `tools/`.")
    function: Name
    description: str = ""
    trigger: LifecyclePoint
    integration: Name | None = Field(default=None, description="The service it talks to.")


Tool: TypeAlias = Annotated[AgentTool | UiTool, Field(discriminator="tool_type")]


class Hook(Part):
    """One function and the moment it is called at."""

    hook_type: HookType
    agent: Name | None = Field(default=None, description="Only for this agent; null means all.")
    file: Name = Field(description="Python file under `hooks/`.")
    function: Name
    description: str = ""
    integration: Name | None = Field(default=None, description="The service it talks to.")
