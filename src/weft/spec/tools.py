"""Tools and hooks: the functions of a package that agents, people and the run itself call."""

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag

from weft.spec import keys
from weft.spec.part import Addressee, JsonMap, Name, Part, Text, Words
from weft.spec.triggers import LifecyclePoint
from weft.spec.variables import ServiceAuth

Surface: TypeAlias = Literal["inline", "artifact"]


#: Lifecycle points of a run besides those that triggers use.
RunPoint: TypeAlias = Literal["on_start", "on_complete", "on_fail"]
HookType: TypeAlias = Literal[
    "before_chat",
    "after_chat",
    "before_agent",
    "after_agent",
    "on_start",
    "on_complete",
    "on_fail",
    "update_agent_state",
    "process_message_before_send",
    "process_last_received_message",
    "process_all_messages_before_reply",
]


#: The `file` of an Agent_Tool that is part of Weft, and the names of these tools.
BUILT_IN_FILE: Final = "weft"
BUILT_IN_TOOLS: Final = ("context_summary",)

#: Prefixes of the `file` of a tool in an installed module, and of one that exists only in the
#: program that defines the workflow.
INSTALLED: Final = "python:"
LOCAL: Final = "local:"

ToolPolicy: TypeAlias = Literal["tell", "fail"]
HookPolicy: TypeAlias = Literal["log", "stop"]

_ON_TOOL_ERROR = (
    "When it fails. tell: the agent gets the error and continues; fail: its turn fails."
)
_ON_HOOK_ERROR = (
    "When it fails. log: the error is recorded and the run continues; stop: the turn fails."
)


class Ui(Part):
    """What a UI tool shows, and where."""

    component: Name = Field(description="PascalCase; `tools/<component>.jsx` may draw it.")
    mode: Surface


class AgentTool(Part):
    """A function an agent's model may call."""

    tool_type: Literal["Agent_Tool"] = "Agent_Tool"
    agent: Name
    file: Name = Field(
        description="Python file under `tools/`; `weft` for a tool that comes with Weft, "
        "`python:MODULE` for one of a module that is installed."
    )
    function: Name
    description: str = ""
    auto_invoke: bool = Field(
        default=False, description="Called with the fields of the agent's structured output."
    )
    on_error: ToolPolicy = Field(default="tell", description=_ON_TOOL_ERROR)


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
    on_error: ToolPolicy = Field(default="tell", description=_ON_TOOL_ERROR)
    for_: Addressee | None = Field(
        default=None,
        alias="for",
        description="Who is asked: `user:NAME`, `role:NAME` or `group:NAME`; `{name}` inserts a "
        "variable. null: the user whose run it is.",
    )
    tell: Words | None = Field(
        default=None,
        description="What the user of the run reads when the tool has returned; `{name}` inserts "
        "a field of the last answer.",
    )
    tell_asked: Words | None = Field(
        default=None, description="What the user of the run reads when the person is asked."
    )


class SecretRef(Part):
    """A secret by the name of the environment variable that holds it."""

    secret_env: Name


def _text_or_secret(value: object) -> str:
    return "secret" if isinstance(value, dict | SecretRef) else "text"


#: The form selects the member, so that an invalid value gives one error.
TextOrSecret: TypeAlias = Annotated[
    Annotated[Text, Tag("text")] | Annotated[SecretRef, Tag("secret")],
    Discriminator(_text_or_secret),
]


class McpServer(Part):
    """A server of the Model Context Protocol, and which agents may use its tools."""

    name: Name
    command: tuple[Text, ...] = Field(
        default=(), description="The program that is started, with its arguments."
    )
    url: Text | None = Field(
        default=None,
        description="The address of a server that runs already; `{name}` at its beginning inserts "
        "an environment variable.",
    )
    env: dict[Name, TextOrSecret] = Field(default={}, description="The environment of the program.")
    auth: ServiceAuth | None = Field(default=None, description="How the server at `url` knows us.")
    agents: tuple[Name, ...] = Field(default=(), description="Who may use it; empty means all.")
    allow: tuple[Name, ...] | None = Field(
        default=None, description="The tools that are offered; null means all it has."
    )
    approval: Literal["never", "write", "always"] = Field(
        default="write",
        description="Which calls a person must approve. write: those of tools that do not say "
        "they only read.",
    )
    for_: Addressee | None = Field(
        default=None,
        alias="for",
        description="Who approves, as with UI tools. null: the user whose run it is.",
    )
    timeout_seconds: float = Field(default=30.0, gt=0, le=3600)

    _one_way = keys.require_one(
        "command", "url", why="the server is started as a program, or runs already"
    )
    _signs_in = keys.allow_only_with("auth", "url", why='give a program its secret in "env"')
    _is_started = keys.allow_only_with("env", "command", why="a server at a url has its own")


class LifecycleTool(Part):
    """A function called at the start or end of the run or of a turn."""

    tool_type: Literal["Lifecycle_Tool"] = "Lifecycle_Tool"
    agent: Name | None = Field(default=None, description="Only at this agent's turns.")
    file: Name = Field(description="Python file under `tools/`.")
    function: Name
    description: str = ""
    # One literal instead of a union of two, so that an invalid value gives one error.
    trigger: Literal[LifecyclePoint, RunPoint]
    integration: Name | None = Field(default=None, description="The service it talks to.")
    on_error: HookPolicy = Field(default="log", description=_ON_HOOK_ERROR)


Tool: TypeAlias = Annotated[AgentTool | UiTool, Field(discriminator="tool_type")]


def is_outside_package(tool: Part) -> bool:
    """Return whether the code of a tool is outside the package."""
    outside = isinstance(tool, AgentTool) and tool.file.startswith((INSTALLED, LOCAL))
    return outside or is_built_in(tool)


def is_built_in(tool: Part) -> bool:
    """Return whether a tool is part of Weft."""
    return isinstance(tool, AgentTool) and tool.file == BUILT_IN_FILE


class Hook(Part):
    """One function and the moment it is called at."""

    hook_type: HookType
    agent: Name | None = Field(default=None, description="Only for this agent; null means all.")
    file: Name = Field(description="Python file under `hooks/`.")
    function: Name
    description: str = ""
    integration: Name | None = Field(default=None, description="The service it talks to.")
    on_error: HookPolicy = Field(default="log", description=_ON_HOOK_ERROR)
