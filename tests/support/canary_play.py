"""A run with a canary in everything that is not for end users."""

from support.inspection_play import derived
from support.outside_play import PlayDocuments, PlayServers, PlayServices
from support.run_play import ADA
from weft.adapters.sql import SqliteStore
from weft.errors import ModelError, PortError, StoreError
from weft.ports.external import ExternalPorts, OfferedTool
from weft.ports.model import ModelReply, ToolSchema
from weft.ports.scope import Scope
from weft.runtime.signals import Answer
from weft.spec.workflow import WorkflowSpec
from weft.testing.hosts import host_for
from weft.testing.models import ScriptedModel, call

CODE = {
    "tools/desk.py": b'''
from weft import Ask, Refuse, use_ui_tool
from weft.runtime.tools.tool_api import show_ui_tool


def look(order: str, context_variables) -> dict:
    """Look an order up."""
    if order == "canary-second-argument":
        raise Refuse("canary-refusal")
    if order == "canary-third-argument":
        raise ValueError("canary-exception")
    context_variables.set("noted", "canary-written")
    return {"state": "canary-result"}


def agree(context_variables) -> str:
    """Ask a person."""
    if not context_variables.answers:
        raise Ask({"question": "Agreed?"}, timeout=60, otherwise={"text": "canary-otherwise"})
    return "canary-agreed"


async def show(context_variables) -> str:
    """Ask the model, show a person something, ask another."""
    await context_variables.ask("canary-question-of-a-tool")
    await show_ui_tool("board", {"note": "On show."})
    context_variables.progress(1, "canary-progress")
    answer = await use_ui_tool("sign", {"note": "canary-for-the-manager"})
    context_variables.set("order", {"state": "canary-document"})
    return "shown"


async def board() -> None:
    """Show a board."""


async def sign() -> None:
    """Sign."""


def note(context_variables) -> None:
    raise ValueError("canary-function-at-a-boundary")
''',
    "hooks/desk.py": b"""
def brief(agent):
    agent.update_system_message("canary-instructions")


def last(message):
    return {**message, "content": "canary-last-message"}


def polite(message):
    return message.replace("canary-before-hooks", "canary-after-hooks")


def weigh(plan):
    return f"canary-computed-{plan}"
""",
}

#: What only operators may read, by where it stands.
FOR_OPERATORS = {
    "start value": "canary-start",
    "model of the run": "canary-model",
    "tool argument": "canary-argument",
    "argument of a failed call": "canary-second-argument",
    "tool result": "canary-result",
    "result after an answer": "canary-agreed",
    "refusal of a tool": "canary-refusal",
    "exception of a tool": "canary-exception",
    "variable": "canary-written",
    "otherwise of a request": "canary-otherwise",
    "reply of a hidden agent": "canary-hidden-reply",
    "reply of a hidden member": "canary-member",
    "rejected reply": "canary-rejected",
    "other field of a structured reply": "canary-field",
    "sign to a trigger": "canary-sign",
    "earlier attempt": "canary-attempt",
    "model that was to answer": "canary-instead",
    "error of a member's model": "canary-member-error",
    "error of the last model, reason of the end": "canary-last-error",
    "value that was fetched": "canary-fetched",
    "query it was fetched with": "canary-query",
    "why something could not be fetched": "canary-fault",
    "default in its place": "canary-default",
    "tool that a server offers": "canary-offered",
    "computed value": "canary-computed",
    "instructions after a hook": "canary-instructions",
    "last message after a hook": "canary-last-message",
    "reply before its hooks": "canary-before-hooks",
    "other field of a reply after its hooks": "canary-after-hooks",
    "reply to the question of a tool": "canary-consulted",
    "progress that is kept": "canary-progress",
    "function that failed at a boundary": "canary-function-at-a-boundary",
    "what another person is asked": "canary-for-the-manager",
    "what another person answers": "canary-of-the-manager",
    "value of a document": "canary-document",
    "why a document was not written": "canary-full",
    "reason of a judgement": "canary-reason",
}

#: What is in no event at all.
FOR_NOBODY = {
    "prompt": "canary-prompt",
    "condition of a handoff": "canary-condition",
    "condition that a model judges": "canary-judged-condition",
    "question of a tool to the model": "canary-question-of-a-tool",
    "secret of a server": "canary-server-key",
    "secret": "canary-secret",
    "fixed value": "canary-static",
}

#: What users read.
FOR_USERS = [
    "Welcome.", "my private text", "Agreed?", "I do", "One moment.", "All is well.", "On show.",
    "Your turn.",
]  # fmt: skip


def spec() -> WorkflowSpec:
    tool = {"tool_type": "Agent_Tool", "agent": "Front", "file": "desk.py", "description": "d"}
    sign = {"type": "agent_text", "agent": "Front", "match": {"contains": "canary-sign"}}
    agents = ["Front", "Back", "Clerk", "Usher", "Left", "Right", "Last"]
    hook = {"file": "desk.py", "agent": "Usher"}
    usher = {**tool, "tool_type": "UI_Tool", "agent": "Usher"}
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {
                "workflow_name": "Desk",
                "initial_agent": "Front",
                "initial_message_to_user": "Welcome.",
                "visual_agents": ["Front", "Clerk", "Usher", "Last"],
                "llm_conditions": True,
                "parallel": [
                    {
                        "name": "Both",
                        "members": ["Left", "Right"],
                        "on_failure": "continue",
                        "next": "Last",
                    }
                ],
            },
            "agents": [
                {
                    "agent_name": name,
                    "prompt_sections": [{"id": "role", "content": "canary-prompt {noted}"}],
                }
                for name in agents
            ],
            "variables": {
                "given": derived("str", ""),
                "noted": derived("str", "", {**sign, "ui_hidden": True, "value": "signed"}),
                "count": derived(
                    "int", 0, {"type": "tool_call", "tool": "look", "argument": "order"}
                ),
                "plan": {
                    "type": "str",
                    "source": {
                        "type": "database",
                        "collection": "plans",
                        "query_template": {"name": "canary-query"},
                        "field": "name",
                    },
                },
                "rate": {
                    "type": "str",
                    "source": {
                        "type": "external",
                        "service": "rates",
                        "operation": "get",
                        "url": "https://rates.example/",
                        "default": "canary-default",
                    },
                },
                "order": {
                    "type": "dict[str, str]",
                    "source": {
                        "type": "entity",
                        "collection": "orders",
                        "search_by": "user_id",
                        "write_strategy": "on_workflow_end",
                    },
                },
                "weight": {
                    "type": "str",
                    "source": {
                        "type": "computed",
                        "computation": "hooks.desk:weigh",
                        "inputs": ["plan"],
                    },
                },
                "fixed": {"type": "str", "source": {"type": "static", "value": "canary-static"}},
                "key": {
                    "type": "str",
                    "secret": True,
                    "source": {"type": "environment", "env_var": "DESK_KEY"},
                },
            },
            "models": [
                {
                    "name": "Verdict",
                    "fields": {"agent_message": {"type": "str"}, "internal": {"type": "str"}},
                }
            ],
            "registry": [{"agent": name, "model": "Verdict"} for name in ("Clerk", "Usher")],
            "tools": [
                *({"function": name, **tool} for name in ("look", "agree")),
                {"function": "show", **tool, "agent": "Usher"},
                {"function": "board", **usher, "ui": {"component": "Board", "mode": "inline"}},
                {
                    "function": "sign",
                    **usher,
                    "ui": {"component": "Sign", "mode": "artifact"},
                    "for": "role:manager",
                },
            ],
            "lifecycle_tools": [
                {
                    "tool_type": "Lifecycle_Tool",
                    "trigger": "before_chat",
                    "file": "desk.py",
                    "function": "note",
                }
            ],
            "hooks": [
                {**hook, "hook_type": "update_agent_state", "function": "brief"},
                {**hook, "hook_type": "process_last_received_message", "function": "last"},
                {**hook, "hook_type": "process_message_before_send", "function": "polite"},
            ],
            "mcp_servers": [
                {
                    "name": "shop",
                    "command": ["shop"],
                    "env": {"KEY": {"secret_env": "SHOP_KEY"}},
                }
            ],
            "handoffs": [
                {
                    "source_agent": "Front",
                    "target_agent": "Back",
                    "condition": 'given != "canary-condition" and noted == "signed"',
                },
                {"source_agent": "Front", "target_agent": "Front"},
                {"source_agent": "Back", "target_agent": "Clerk"},
                {"source_agent": "Clerk", "target_agent": "Usher"},
                {
                    "source_agent": "Usher",
                    "target_agent": "Both",
                    "condition": "canary-judged-condition",
                    "condition_type": "llm",
                },
                {"source_agent": "Last", "target_agent": "terminate"},
            ],
        }
    )


def script() -> ScriptedModel:
    verdict = {"agent_message": "All is well.", "internal": "canary-field"}
    first = ModelReply(
        "One moment.",
        retries=("attempt 1 of 2: canary-attempt",),
        instead_of="canary-instead, which is busy",
    )
    return ScriptedModel(
        {
            "Front": [
                (
                    call("look", order="canary-argument"),
                    call("look", order="canary-second-argument"),
                    call("look", order="canary-third-argument"),
                ),
                call("agree"),
                first,
                "canary-sign",
            ],
            "Back": ["canary-hidden-reply"],
            "Clerk": ["canary-rejected", verdict],
            "Usher": [
                call("show"),
                "canary-consulted",
                {"agent_message": "Your turn.", "internal": "canary-before-hooks"},
                {"holds": True, "reason": "canary-reason"},
            ],
            "Left": ["canary-member"],
            "Right": [ModelError("canary-member-error")],
            "Last": [ModelError("canary-last-error")],
        }
    )


async def agree(host, run):
    """Answer what the user is asked; then the manager is asked."""
    (request,) = await host.requests(scope=ADA, run=run)
    await host.deliver(run, Answer(request.id, "I do"), scope=ADA)
    await host.settled(run, scope=ADA)


async def agree_and_sign(host, run):
    """Answer both questions; then the run goes on to its end."""
    await agree(host, run)
    manager = Scope(ADA.app, "bob", roles=("manager",))
    (request,) = await host.requests(scope=manager, run=run)
    await host.deliver(run, Answer(request.id, "canary-of-the-manager"), scope=manager)


class Plans(PlayDocuments):
    """One plan, and a disk that is full."""

    async def find(self, _scope, collection, _query, *, fields=()):
        return {"name": "canary-fetched"} if collection.name == "plans" and fields else None

    async def put(self, *_):
        raise StoreError("canary-full")


class Down(PlayServices):
    """A service that is down."""

    async def ask(self, *_):
        raise PortError("canary-fault")


class Shop(PlayServers):
    """A server with one tool."""

    async def tools(self, server):
        assert server.env == {"KEY": "canary-server-key"}
        return [OfferedTool(ToolSchema("stock", "canary-offered", {"type": "object"}))]


#: What a run starts with.
MESSAGE, VALUES, MODEL = "my private text", {"given": "canary-start"}, "canary-model"


def ports():
    """Return the options of a host that has the secrets, and what fails and what works outside."""
    environment = {"SHOP_KEY": "canary-server-key", "DESK_KEY": "canary-secret"}
    outside = ExternalPorts(
        documents=Plans(), services=Down(), servers=Shop(), environment=environment
    )
    return {"code": CODE, "environment": environment, "outside": outside}


async def record(workspace, *steps):
    """Record a run in the store of a workspace; return its id."""
    store = await SqliteStore.open(workspace / ".weft" / "journal.db")
    async with host_for(spec(), script(), store=store, **ports()) as host:
        run = await host.start("W", scope=ADA, message=MESSAGE, values=VALUES, model=MODEL)
        await host.settled(run, scope=ADA)
        for step in steps:
            await step(host, run)
            await host.settled(run, scope=ADA)
    return run
