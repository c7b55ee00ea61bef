"""Hooks: functions under `hooks/` that watch or change messages and state."""

from typing import Literal, TypeAlias

from pydantic import Field

from weft.spec.part import Name, Part

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


class Hook(Part):
    """One function and the moment it is called at."""

    hook_type: HookType
    agent: Name | None = Field(default=None, description="Only for this agent; null means all.")
    file: Name = Field(description="Python file under `hooks/`.")
    function: Name
    description: str = ""
    integration: Name | None = Field(default=None, description="The service it talks to.")
