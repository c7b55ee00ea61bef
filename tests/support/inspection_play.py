"""Three workflows to look at: a shop with tools and questions, a form, one that always fails."""

from support.run_play import ADA, Played, play
from weft.runtime.signals import Answer, UserMessage
from weft.spec.workflow import WorkflowSpec
from weft.testing.models import ScriptedModel, call

SHOP_CODE = {
    "tools/shop.py": b'''
from weft import Refuse, use_ui_tool


def look(order: str, context_variables) -> dict:
    """Look an order up."""
    if order == "X":
        raise Refuse("no such order")
    context_variables.set("found", True)
    context_variables.set("order", order)
    return {"order": order, "state": "sent"}


async def confirm(question: str) -> str:
    """Ask the user."""
    answer = await use_ui_tool("confirm", {"question": question})
    return f"the user says {answer['choice']}"
'''
}


def derived(type_, default=None, *triggers, **more):
    source = {"type": "derived", "default": default, "triggers": list(triggers)}
    return {"type": type_, "source": source, **more}


def shop(**changes):
    """Router hands to Helper, who looks orders up and asks the user."""
    tool = {"agent": "Helper", "file": "shop.py", "description": "d"}
    answered = {"type": "ui_response", "tool": "confirm", "response_key": "choice"}
    said = {"type": "agent_text", "agent": "Router", "match": {"contains": "helper"}}
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "Shop", "initial_agent": "Router"},
            "agents": [
                {
                    "agent_name": "Router",
                    "prompt_sections": [{"id": "role", "content": "Route {chat_id}."}],
                },
                {
                    "agent_name": "Helper",
                    "prompt_sections": [
                        {"id": "role", "heading": "[ROLE]", "content": "Help {user_id}."},
                        {"id": "order", "content": "The order is {order}."},
                    ],
                },
            ],
            "variables": {
                "found": derived("bool", False),
                "order": derived("optional[str]"),
                "choice": derived("str", None, answered),
                "routed": derived("bool", False, {**said, "value": True}),
                "shop": {"type": "str", "source": {"type": "static", "value": "Corner"}},
                "key": {
                    "type": "str",
                    "secret": True,
                    "source": {"type": "environment", "env_var": "SHOP_KEY"},
                },
            },
            "exposure": {"Helper": ["found", "order", "choice"]},
            "tools": [
                {"tool_type": "Agent_Tool", "function": "look", **tool},
                {
                    "tool_type": "UI_Tool",
                    "function": "confirm",
                    "ui": {"component": "Confirm", "mode": "inline"},
                    **tool,
                },
            ],
            "handoffs": [
                {"source_agent": "Router", "target_agent": "Helper"},
                {"source_agent": "Helper", "target_agent": "terminate", "condition": "choice"},
                {"source_agent": "Helper", "target_agent": "user"},
            ],
            **changes,
        }
    )


async def answer(host, run):
    """Answer every open question with yes, or with a word."""
    for request in await host.requests(scope=ADA, run=run):
        signal = (
            UserMessage("and?") if request.kind == "chat" else Answer(request.id, {"choice": "yes"})
        )
        await host.deliver(run, signal, scope=ADA)


async def chat(host, run):
    """Say something, then answer the question that follows."""
    await answer(host, run)
    await host.settled(run, scope=ADA)
    await answer(host, run)


def shop_script():
    return ScriptedModel(
        {
            "Router": ["to the helper"],
            "Helper": [
                (call("look", order="A1"), call("look", order="X"), call("nothing", a=1)),
                "It was sent.",
                call("confirm", question="really?"),
                "Done.",
            ],
        },
        strict=False,
    )


def shop_run() -> Played:
    """A run with parallel tools, one refused, one unknown, a chat turn and a question."""
    return play(
        shop(),
        shop_script(),
        code=SHOP_CODE,
        message="where is A1?",
        environment={"SHOP_KEY": "s3cret"},
        after=chat,
    )


FORM_CODE = {
    "tools/save.py": b'''
def save(name: str, age: int, context_variables) -> str:
    """Save a person."""
    context_variables.set("saved", True)
    return name
'''
}


def form():
    """One agent that fills a form; its fields go to a tool by themselves."""
    asked = {"type": "tool_call", "tool": "save", "argument": "age"}
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {
                "workflow_name": "Form",
                "initial_agent": "Gate",
                "initial_message_to_user": "Welcome.",
                "initial_message": "Fill the form.",
                "default_target": "terminate",
            },
            "agents": [
                {"agent_name": "Gate"},
                {
                    "agent_name": "Clerk",
                    "auto_tool_mode": True,
                    "context": [{"kind": "literal", "text": "Only JSON."}, {"kind": "variables"}],
                },
            ],
            "variables": {
                "saved": derived("bool", False),
                "age": derived("literal[30]", None, asked),
                "open": derived("bool", True),
            },
            "exposure": {"Clerk": ["saved"]},
            "models": [
                {"name": "Person", "fields": {"name": {"type": "str"}, "age": {"type": "int"}}}
            ],
            "registry": [{"agent": "Clerk", "model": "Person"}],
            "tools": [
                {
                    "tool_type": "Agent_Tool",
                    "agent": "Clerk",
                    "file": "save.py",
                    "function": "save",
                    "description": "d",
                    "auto_invoke": True,
                }
            ],
            "handoffs": [
                {
                    "source_agent": "Gate",
                    "target_agent": "Clerk",
                    "condition": "open",
                    "condition_scope": "pre",
                },
                {"source_agent": "Clerk", "target_agent": "terminate", "condition": "saved"},
            ],
        }
    )


def form_run(age: int = 31) -> Played:
    """A run whose first replies are refused, and whose trigger is refused."""
    script = ["no JSON", {"name": "Ada"}, {"name": "Ada", "age": age}]
    return play(form(), ScriptedModel({"Clerk": script}), code=FORM_CODE)


def failing_run() -> Played:
    """A run whose model fails."""
    spec = WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "Sad", "initial_agent": "Lone"},
            "agents": [{"agent_name": "Lone"}],
        }
    )
    return play(spec, ScriptedModel([]))
