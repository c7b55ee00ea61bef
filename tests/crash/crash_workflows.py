"""Workflows that are killed at every step: what they declare, say, do and are answered.

Every reply is decided by agent, turn and call, and every answer by what is asked, so that a run
goes the same way however often it is taken up again. Tools write down what they did, with the key
of their call, in the file named by the environment variable WEFT_EFFECTS.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from weft.findings import Json
from weft.ports.model import ModelRequest
from weft.spec.workflow import WorkflowSpec
from weft.testing.models import Line, call

LOG = b"""
import asyncio
import os

from weft import Ask, use_ui_tool


def note(context, what):
    with open(os.environ["WEFT_EFFECTS"], "a") as file:
        file.write(f"{context.key} {what}\\n")
"""


@dataclass(frozen=True)
class Play:
    """A workflow, and everything that comes from outside."""

    spec: WorkflowSpec
    code: Mapping[str, bytes]
    #: By agent, turn and call.
    lines: Mapping[tuple[str, int, int], Line]
    #: What a person says, by what is shown; nobody answers what is not here.
    answers: Mapping[str, Json] = field(default_factory=dict)

    def say(self, request: ModelRequest) -> Line:
        """Answer for the model."""
        return self.lines[request.agent, request.turn, request.call]


def _spec(
    name: str, agents: list[Any], handoffs: list[Any], tools: list[Any], **rest: Any
) -> WorkflowSpec:
    first = agents[0]["agent_name"]
    orchestrator = {"workflow_name": name, "initial_agent": first, **rest.pop("settings", {})}
    return WorkflowSpec.model_validate(
        {
            "orchestrator": orchestrator,
            "agents": agents,
            "handoffs": handoffs,
            "tools": [
                {"tool_type": "Agent_Tool", "file": "work.py", "description": "d", **tool}
                for tool in tools
            ],
            **rest,
        }
    )


def _derived(type_: str, default: Json = None, **trigger: Any) -> dict[str, Any]:
    triggers = [trigger] if trigger else []
    return {"type": type_, "source": {"type": "derived", "default": default, "triggers": triggers}}


def handover() -> Play:
    """A router hands to a specialist, whose tool writes and sets a variable; a reviewer ends it."""
    code = (
        LOG
        + b'''
def refund(order: str, context_variables) -> dict:
    """Give money back."""
    note(context_variables, f"refund {order}")
    context_variables.set("refunded", context_variables.get("refunded", 0) + 1)
    return {"order": order, "key": context_variables.key}
'''
    )
    spec = _spec(
        "Handover",
        [{"agent_name": "Router"}, {"agent_name": "Billing"}, {"agent_name": "Reviewer"}],
        [
            {"source_agent": "Router", "target_agent": "Billing", "condition": 'topic == "money"'},
            {"source_agent": "Router", "target_agent": "user"},
            {"source_agent": "Billing", "target_agent": "Reviewer", "condition": "refunded == 2"},
            {"source_agent": "Billing", "target_agent": "user"},
            {"source_agent": "Reviewer", "target_agent": "terminate", "reason": "all is paid"},
        ],
        [{"agent": "Billing", "function": "refund"}],
        variables={
            "refunded": _derived("int", 0),
            "topic": _derived(
                "str",
                type="agent_text",
                agent="Router",
                match={"contains": "money"},
                value="money",
            ),
        },
    )
    lines: dict[tuple[str, int, int], Line] = {
        ("Router", 1, 1): "This is about money.",
        ("Billing", 2, 1): call("refund", order="A1"),
        ("Billing", 2, 2): call("refund", order="A2"),
        ("Billing", 2, 3): "Both are refunded.",
        ("Reviewer", 3, 1): "Approved.",
    }
    return Play(spec, {"tools/work.py": code}, lines)


def questions() -> Play:
    """People are asked by a tool that waits, by one that is called again, and not in time."""
    code = (
        LOG
        + b'''
async def choose(what: str, context_variables) -> str:
    """Ask, and ask again."""
    first = await use_ui_tool("choose", {"ask": f"{what}?"})
    second = await use_ui_tool("choose", {"ask": f"{what}, really?"})
    note(context_variables, f"choose {first} {second}")
    context_variables.set("choices", [first["pick"], second["pick"]])
    return f"{first['pick']}, then {second['pick']}"


async def approve(amount: int, context_variables) -> str:
    """Ask before anything is done."""
    if not context_variables.answers:
        raise Ask({"ask": f"pay {amount}?"})
    note(context_variables, f"approve {amount}")
    return str(context_variables.answers[0]["pick"])


async def fetch(context_variables) -> str:
    """Work while somebody else is asked."""
    await asyncio.sleep(0.03)
    note(context_variables, "fetch")
    return "fetched"


async def hurry(context_variables, otherwise: bool) -> str:
    """Ask somebody who does not answer."""
    answer = await use_ui_tool(
        "hurry", {"ask": "now?"}, timeout=0.05, otherwise={"pick": "none"} if otherwise else None
    )
    note(context_variables, f"hurry {answer}")
    return str(answer["pick"])
'''
    )
    shown = {"component": "Pick", "mode": "inline"}
    spec = _spec(
        "Questions",
        [{"agent_name": "Clerk"}],
        [
            {"source_agent": "Clerk", "target_agent": "terminate", "condition": 'picked == "blue"'},
            {"source_agent": "Clerk", "target_agent": "user"},
        ],
        [
            {"agent": "Clerk", "function": "fetch"},
            *(
                {"tool_type": "UI_Tool", "agent": "Clerk", "function": name, "ui": shown}
                for name in ("choose", "approve", "hurry")
            ),
        ],
        variables={
            "choices": _derived("list[str]"),
            "picked": _derived("str", type="ui_response", tool="approve", response_key="pick"),
        },
    )
    lines: dict[tuple[str, int, int], Line] = {
        ("Clerk", 1, 1): call("choose", what="tea"),
        ("Clerk", 1, 2): call("hurry", otherwise=True),
        ("Clerk", 1, 3): "What else?",
        ("Clerk", 2, 1): call("hurry", otherwise=False),
        ("Clerk", 2, 2): [call("approve", amount=7), call("fetch")],
        ("Clerk", 2, 3): "Paid.",
    }
    answers: dict[str, Json] = {
        "tea?": {"pick": "green"},
        "tea, really?": {"pick": "black"},
        "pay 7?": {"pick": "blue"},
        "": "the bill, please",
    }
    return Play(spec, {"tools/work.py": code}, lines, answers)


def plans() -> Play:
    """Replies that do not fit, an automatic tool, tools side by side, until turns are used up."""
    code = (
        LOG
        + b'''
async def keep(title: str, steps: int, context_variables) -> str:
    """Keep a plan."""
    note(context_variables, f"keep {title}")
    context_variables.set("steps", steps)
    return "kept"


async def quick(context_variables) -> str:
    """Be done at once."""
    note(context_variables, "quick")
    return "quick"


async def steady(context_variables) -> str:
    """Take a moment."""
    await asyncio.sleep(0.1)
    note(context_variables, "steady")
    context_variables.set("done", context_variables.get("done", 0) + 1)
    return "steady"
'''
    )
    spec = _spec(
        "Plans",
        [{"agent_name": "Planner", "auto_tool_mode": True}, {"agent_name": "Worker"}],
        [
            {"source_agent": "Planner", "target_agent": "Worker"},
            {"source_agent": "Worker", "target_agent": "Planner"},
        ],
        [
            {"agent": "Planner", "function": "keep", "auto_invoke": True},
            {"agent": "Worker", "function": "quick"},
            {"agent": "Worker", "function": "steady"},
        ],
        settings={"max_turns": 3, "initial_message_to_user": "Welcome."},
        variables={"steps": _derived("int"), "done": _derived("int", 0)},
        models=[{"name": "Plan", "fields": {"title": {"type": "str"}, "steps": {"type": "int"}}}],
        registry=[{"agent": "Planner", "model": "Plan"}],
    )
    both = [call("quick"), call("steady"), call("nothing")]
    lines: dict[tuple[str, int, int], Line] = {
        ("Planner", 1, 1): "I would rather talk.",
        ("Planner", 1, 2): {"title": "one", "steps": "many"},
        ("Planner", 1, 3): {"title": "one", "steps": 2},
        ("Worker", 2, 1): both,
        ("Worker", 2, 2): "Half way.",
        ("Planner", 3, 1): {"title": "two", "steps": 3},
    }
    return Play(spec, {"tools/work.py": code}, lines)


def panel() -> Play:
    """Three agents side by side: one speaks, one uses a tool, one asks a person; a judge ends it.

    Their first calls are allowed by one batch, so that only these have the same keys every time.
    """
    code = (
        LOG
        + b'''
async def check(what: str, context_variables) -> str:
    """Check something."""
    await asyncio.sleep(0.02)
    note(context_variables, f"check {what}")
    context_variables.set("checked", what)
    return f"{what} is fine"


async def consult(what: str, context_variables) -> str:
    """Ask a person."""
    answer = await use_ui_tool("consult", {"ask": f"{what}?"})
    note(context_variables, f"consult {answer['pick']}")
    return str(answer["pick"])
'''
    )
    members = ["Quick", "Careful", "Asking"]
    spec = _spec(
        "Panel",
        [{"agent_name": item} for item in ("Chair", *members, "Judge")],
        [
            {"source_agent": "Chair", "target_agent": "Experts"},
            {"source_agent": "Judge", "target_agent": "terminate", "reason": "all were heard"},
        ],
        [
            {"agent": "Careful", "function": "check"},
            {
                "tool_type": "UI_Tool",
                "agent": "Asking",
                "function": "consult",
                "ui": {"component": "Pick", "mode": "inline"},
            },
        ],
        settings={"parallel": [{"name": "Experts", "members": members, "next": "Judge"}]},
        variables={
            "checked": _derived("str"),
            "picked": _derived("str", type="ui_response", tool="consult", response_key="pick"),
            "sure": _derived("bool", type="agent_text", agent="Quick", match={"contains": "sure"}),
        },
    )
    lines: dict[tuple[str, int, int], Line] = {
        ("Chair", 1, 1): "What do you think?",
        ("Quick", 2, 1): "I am sure.",
        ("Careful", 3, 1): call("check", what="the bill"),
        ("Careful", 3, 2): "The bill is fine.",
        ("Asking", 4, 1): call("consult", what="pay"),
        ("Asking", 4, 2): "They want to pay.",
        ("Judge", 5, 1): "So be it.",
    }
    answers: dict[str, Json] = {"pay?": {"pick": "yes"}}
    return Play(spec, {"tools/work.py": code}, lines, answers)


PLAYS: dict[str, Callable[[], Play]] = {
    "handover": handover,
    "questions": questions,
    "plans": plans,
    "panel": panel,
}
