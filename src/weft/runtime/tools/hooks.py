"""Hooks at the boundaries of runs and turns: their arguments, and the changes they return.

They take by name any of `agent, message, messages, content, sender, recipient, silent,
context_variables`, so that functions written for other frameworks work unchanged.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, cast

from weft.context.history import conversation
from weft.context.prompt import assemble
from weft.engine.commands import CallTool
from weft.engine.state import State
from weft.engine.turn.hook_points import SEND_HOOK
from weft.errors import ToolError
from weft.findings import Json
from weft.ports.model import ChatMessage
from weft.runtime.tools.context_variables import Context
from weft.runtime.variables.json_values import own_copy
from weft.runtime.workflow import Workflow
from weft.spec.variables import ComputedSource

_ROLES: Final = ("system", "user", "assistant", "tool", "developer")


@dataclass
class HookAgent:
    """The agent of the turn in which a hook is called."""

    name: str
    system_message: str
    description: str = ""
    context_variables: Context | None = field(default=None, repr=False)
    changed: bool = field(default=False, repr=False)

    def update_system_message(self, system_message: str) -> None:
        """Replace the instructions for the next reply."""
        if not isinstance(system_message, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ToolError(f"a system message is text, not {type(system_message).__name__}")
        self.system_message = system_message
        self.changed = True


class HookInput:
    """The arguments of a hook, and the changes that its result makes."""

    def __init__(
        self, workflow: Workflow, state: State, command: CallTool, context: Context
    ) -> None:
        self._hook = command.hook
        self._messages: list[ChatMessage] = []
        self._agent: HookAgent | None = None
        self.arguments = self._arguments(workflow, state, command, context)

    def _arguments(
        self, workflow: Workflow, state: State, command: CallTool, context: Context
    ) -> dict[str, object]:
        if self._hook == "computed":
            source = workflow.spec.variables[command.variable].source
            inputs = source.inputs if isinstance(source, ComputedSource) else ()
            values = state.values_of(command.turn)
            return {name: own_copy(values.get(name)) for name in inputs}
        if not command.agent:
            messages = conversation(state.messages)
            no_agent = {"agent": None, "sender": None, "recipient": None, "silent": False}
            given = {"messages": messages, "context_variables": context}
            return {**no_agent, **given, **_last(messages)}
        return self._at_turn(workflow, state, command, context)

    def _at_turn(
        self, workflow: Workflow, state: State, command: CallTool, context: Context
    ) -> dict[str, object]:
        sent = assemble(workflow.views[command.agent], state, command.turn).messages
        system, self._messages = apart(sent)
        declared = next(
            agent for agent in workflow.spec.agents if agent.agent_name == command.agent
        )
        self._agent = HookAgent(command.agent, system, declared.description, context)
        messages = cast("list[ChatMessage]", own_copy(self._messages))
        given: dict[str, object] = {
            "agent": self._agent,
            "sender": self._agent,
            "recipient": None,
            "silent": False,
            "messages": messages,
            "context_variables": context,
            **_last(messages),
        }
        if self._hook == SEND_HOOK:
            said = about_to_say(state, command.turn)
            given |= {"message": said, "content": said}
        if self._hook == "trigger":
            values = {name: own_copy(v) for name, v in state.values_of(command.turn).items()}
            said = _last_message(state, command)
            given = {**values, "values": values, "agent": self._agent, "messages": messages}
            return {**given, "message": said, "content": said}
        return given

    def changes(self, returned: Json) -> Json:
        """Return the changes of the hook, or None; for a computing function, its result.

        Raises ToolError for an invalid result.
        """
        if self._hook in ("computed", "trigger"):
            return returned
        changes: dict[str, Json] = {}
        match self._hook:
            case "update_agent_state":
                if isinstance(returned, str):  # a function may return the new text itself
                    changes["system"] = returned
            case "process_all_messages_before_reply":
                if returned is not None and returned != self._messages:
                    changes["messages"] = _checked(returned)
            case "process_last_received_message":
                if returned is not None:
                    changes |= self._of_last(returned)
            case _ if self._hook == SEND_HOOK:
                if returned is not None and returned != self.arguments["message"]:
                    changes["message"] = _text(returned)
            case _:
                pass
        if self._agent is not None and self._agent.changed:
            changes["system"] = self._agent.system_message
        return changes or None

    def _of_last(self, returned: Json) -> dict[str, Json]:
        """Return the change of the last message, which a hook returns alone or in the list."""
        if isinstance(returned, list):
            messages = _checked(cast("Json", returned))
            return {} if messages == self._messages else {"messages": messages}
        text = _text(returned)
        held = self._messages[-1]["content"] if self._messages else None
        return {} if text == held else {"last": text}


def apart(sent: list[ChatMessage]) -> tuple[str, list[ChatMessage]]:
    """Split messages into the instructions at the beginning and the rest."""
    if sent and sent[0]["role"] == "system":
        return sent[0]["content"] or "", sent[1:]
    return "", sent


def _last(messages: list[ChatMessage]) -> dict[str, object]:
    last = messages[-1] if messages else None
    return {"message": last, "content": (last or {}).get("content") or ""}


def about_to_say(state: State, turn: int) -> str:
    """Return the pending reply after the hooks before this one."""
    active = state.active[turn]
    edits = [edit["message"] for edit in active.edits if "message" in edit]
    found = edits[-1] if edits else active.reply
    return found if isinstance(found, str) else ""


def _last_message(state: State, command: CallTool) -> str:
    """Return the last message of the agent."""
    thread = reversed(state.thread_of(command.turn))
    own = (
        message.text
        for message in thread
        if message.role == "agent" and message.agent == command.agent
    )
    return next(own, "")


def _text(returned: Json) -> str:
    """Return the text of a message that may be given as one."""
    if isinstance(returned, dict):
        returned = cast("Mapping[str, Json]", returned).get("content")
    if not isinstance(returned, str):
        raise ToolError(f"it returned {type(returned).__name__} instead of the text of a message")
    return returned


def _checked(returned: Json) -> Json:
    """Return valid messages; raises ToolError for others."""
    if not isinstance(returned, list):
        raise ToolError(f"it returned {type(returned).__name__} instead of a list of messages")
    for at, message in enumerate(cast("list[Json]", returned)):
        fields = cast("dict[str, Json]", message) if isinstance(message, dict) else {}
        content = fields.get("content")
        if fields.get("role") not in _ROLES or not (content is None or isinstance(content, str)):
            raise ToolError(
                f"message {at} of its result is invalid: a message has a role "
                f"({', '.join(_ROLES)}) and content that is text"
            )
    return cast("Json", returned)
