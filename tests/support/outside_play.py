"""A workflow that reaches outside and is reached at every boundary, and what it finds there."""

from typing import Any

from weft.errors import PortError, StoreError
from weft.ports.external import ExternalPorts, OfferedTool, ServiceAnswer
from weft.ports.model import ModelReply, ToolSchema
from weft.ports.scope import Scope
from weft.runtime.host import Host
from weft.runtime.signals import Answer, UserMessage
from weft.spec.workflow import WorkflowSpec
from weft.testing.models import FunctionModel, call

TOOLS = b'''
from weft import use_ui_tool
from weft.runtime.tools.tool_api import show_ui_tool


async def assess(amount: int, context_variables) -> dict:
    """Assess a claim."""
    context_variables.progress(0.25, "reading")
    rating = await context_variables.ask(f"How risky is {amount}?")
    await show_ui_tool("board", {"rating": rating})
    context_variables.set("amount", amount)
    context_variables.set("claim", {"state": "assessed", "amount": amount})
    await context_variables.refresh("rate")
    context_variables.progress(1, "done")
    return {"rating": rating}


async def sign(context_variables) -> str:
    """Have it signed."""
    answer = await use_ui_tool("sign", {"amount": context_variables.get("amount")})
    return "signed" if answer["approved"] else "not signed"


async def board() -> None:
    """Show the board."""


def open_file(context_variables) -> None:
    context_variables.set("opened", True)


def close_file(messages) -> None:
    raise ValueError("the cabinet is locked")


def notes(context_variables) -> str:
    return "nobody reads this"
'''

HOOKS = b"""
def brief(agent, messages):
    agent.update_system_message(f"{agent.system_message} Be brief.")


def shout(message):
    return {**message, "content": message["content"].upper()}


def forget(messages):
    return messages[-3:]


def polite(message):
    return f"Dear user, {message}"


def broken(agent):
    raise ValueError("no ink")


def share(amount, limit):
    return round(amount / limit, 2)


def mood(values, message):
    return "calm" if "calm" in message else None
"""

CODE = {"tools/desk.py": TOOLS, "hooks/desk.py": HOOKS}


def _derived(type_: str, default: Any, *triggers: Any, **more: Any) -> dict[str, Any]:
    source = {"type": "derived", "default": default, "triggers": list(triggers), **more}
    return {"type": type_, "source": source}


def _database(**more: Any) -> dict[str, Any]:
    found = {"type": "database", "collection": "plans", "search_by": "user_id", **more}
    return {"type": "str", "source": found}


def _external(operation: str, **more: Any) -> dict[str, Any]:
    url = f"https://rates.example/{operation}"
    return {"type": "external", "service": "rates", "operation": operation, "url": url, **more}


def _hook(hook_type: str, function: str, **more: Any) -> dict[str, Any]:
    return {"hook_type": hook_type, "file": "desk.py", "function": function, **more}


def _lifecycle(trigger: str, function: str, **more: Any) -> dict[str, Any]:
    tool = {"tool_type": "Lifecycle_Tool", "trigger": trigger, "file": "desk.py"}
    return {**tool, "function": function, **more}


def _ui(function: str, component: str, mode: str, **more: Any) -> dict[str, Any]:
    tool = {"tool_type": "UI_Tool", "agent": "Desk", "file": "desk.py", "function": function}
    return {**tool, "ui": {"component": component, "mode": mode}, **more}


def outside_spec(**orchestrator: Any) -> WorkflowSpec:
    """Every source, every boundary, a judged rule, and a model that may choose who is next."""
    approved = {"type": "object", "properties": {"approved": {"type": "boolean"}}}
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {
                "workflow_name": "Claims",
                "initial_agent": "Desk",
                "llm_conditions": True,
                **orchestrator,
            },
            "agents": [
                {
                    "agent_name": "Desk",
                    "prompt_sections": [{"id": "role", "content": "Plan {plan}, rate {rate}."}],
                },
                {"agent_name": "Clerk", "handoff_tools": True},
                {"agent_name": "Closer"},
            ],
            "variables": {
                "plan": _database(field="name"),
                "tier": _database(field="tier", default="basic"),
                "rate": {
                    "type": "float",
                    "source": _external("rate", refresh_strategy="on_demand"),
                },
                "risk": {
                    "type": "str",
                    "source": _external("risk", refresh_strategy="per_phase", default="unknown"),
                },
                "terms": {"type": "str", "source": {"type": "file", "path": "terms.txt"}},
                "claim": {
                    "type": "dict[str, any]",
                    "source": {"type": "entity", "collection": "claims", "search_by": "user_id"},
                },
                "amount": _derived("int", 0),
                "limit": {"type": "int", "source": {"type": "static", "value": 200}},
                "opened": _derived("bool", False),
                "big": {
                    "type": "bool",
                    "source": {
                        "type": "computed",
                        "computation": "amount > limit",
                        "inputs": ["amount", "limit"],
                    },
                },
                "share": {
                    "type": "float",
                    "source": {
                        "type": "computed",
                        "computation": "hooks.desk:share",
                        "inputs": ["amount", "limit"],
                    },
                },
                "mood": _derived("str", "", {"type": "function", "function": "hooks.desk:mood"}),
                "last": _derived("str", "", persist=True),
            },
            "exposure": {"Desk": ["plan", "rate", "amount"]},
            "tools": [
                {
                    "tool_type": "Agent_Tool",
                    "agent": "Desk",
                    "file": "desk.py",
                    "function": "assess",
                },
                _ui("sign", "Sign", "inline", response_schema=approved, **{"for": "role:manager"}),
                _ui("board", "Board", "artifact"),
            ],
            "lifecycle_tools": [
                _lifecycle("before_chat", "open_file"),
                _lifecycle("after_chat", "close_file"),
                _lifecycle("before_agent", "notes", agent="Desk"),
            ],
            "hooks": [
                _hook("update_agent_state", "brief", agent="Desk"),
                _hook("process_all_messages_before_reply", "forget", agent="Closer"),
                _hook("process_last_received_message", "shout", agent="Closer"),
                _hook("process_message_before_send", "polite", agent="Clerk"),
                _hook("process_message_before_send", "broken", agent="Clerk"),
                _hook("on_complete", "broken"),
            ],
            "mcp_servers": [{"name": "shop", "command": ["shop-server"], "agents": ["Desk"]}],
            "handoffs": [
                {
                    "source_agent": "Desk",
                    "target_agent": "Clerk",
                    "condition": "the user is content",
                    "condition_type": "llm",
                },
                {"source_agent": "Desk", "target_agent": "user"},
                {"source_agent": "Clerk", "target_agent": "Closer"},
                {"source_agent": "Closer", "target_agent": "terminate"},
            ],
        }
    )


class PlayDocuments:
    """Documents in memory: one plan, and whatever is written."""

    full = False

    def __init__(self) -> None:
        self.written: list[dict[str, Any]] = []

    async def find(self, scope: Any, collection: Any, query: Any, *, fields: Any = ()) -> Any:
        if collection.name == "plans":
            return {"_id": "p1", "name": "gold", **query}
        return None

    async def put(self, scope: Any, collection: Any, query: Any, values: Any) -> str:
        if self.full:
            raise StoreError("the disk is full")
        self.written.append({**query, **values})
        return "k1"

    async def close(self) -> None:
        """Nothing is open."""


class PlayServices:
    """Services: one knows the rate, the other is down."""

    async def ask(self, scope: Any, request: Any) -> ServiceAnswer:
        if request.operation == "risk":
            raise PortError("rates.example answered 503")
        return ServiceAnswer(1.5, cached=True, attempts=2)

    async def close(self) -> None:
        """Nothing is open."""


class PlayFiles:
    """Files: the terms."""

    async def read(self, app: str, workflow: str, path: str) -> str:
        return f"terms of {workflow}"


class PlayServers:
    """A server with one tool, which only reads."""

    async def tools(self, server: Any) -> list[OfferedTool]:
        return [OfferedTool(ToolSchema("stock", "What is there.", {"type": "object"}), reads=True)]

    async def call(self, server: Any, tool: str, arguments: Any, *, on_progress: Any = None) -> Any:
        on_progress(0.5, "counting")
        return {"left": 3}

    async def close(self) -> None:
        """Nothing is open."""


def outside(documents: PlayDocuments | None = None) -> ExternalPorts:
    """Return what there is outside."""
    return ExternalPorts(
        documents=documents or PlayDocuments(),  # pyright: ignore[reportArgumentType]
        services=PlayServices(),
        files=PlayFiles(),
        servers=PlayServers(),
    )


def say(request: Any) -> Any:
    """Answer for every agent, for tools and for judged rules."""
    if request.question:
        asked = request.messages[-1]["content"]
        if "Condition" in asked:
            content = "calm" in asked
            return {"holds": content, "reason": "The user says so." if content else "Not yet."}
        return ModelReply("low", model="m")
    lines = {
        ("Desk", 1): [call("assess", amount=300), call("shop_stock")],
        ("Desk", 2): call("sign"),
        ("Clerk", 1): "I hand you over.",
    }
    if request.agent == "Desk" and request.turn > 1:
        return "All is calm."
    return lines.get((request.agent, request.call), f"{request.agent} is done.")


def model() -> FunctionModel:
    """Return the model of all."""
    return FunctionModel(say)


async def talk(host: Host, scope: Scope, run: str) -> str:
    """Play the whole run: the user says something, the manager signs, the user is calm."""
    await host.start("Claims", scope=scope, message="I have a claim", run=run)
    await host.settled(run, scope=scope)
    manager = Scope(scope.app, "bob", roles=("manager",))
    for request in await host.requests(scope=manager, run=run):
        await host.deliver(run, Answer(request.id, {"approved": True}), scope=manager)
    if (await host.settled(run, scope=scope)).status == "waiting":
        await host.deliver(run, UserMessage("I am calm now", id="m-2"), scope=scope)
        await host.settled(run, scope=scope)
    return run
