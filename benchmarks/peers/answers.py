"""What the mock model answers: a pure function of the request, so that every peer takes one path.

    cd benchmarks && PYTHONPATH=peers python mock_server.py --answers peers/answers.py

The agent is known by its system prompt. Where a peer offers a tool for handing off, the model calls
it; where it does not, the model says so in words. The reviewer approves only when its prompt shows
the value that the tool stored, so a peer that loses the variable cannot pass.

A request for the model `TALLY` is answered with the number of all other requests so far: the runner
compares it with what a peer claims to have done.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from job import APPROVAL, HANDOFF_TEXT, TALLY, TOOL, status_of

from mock_server import Answer, Call

ORDER: Final = re.compile(r"A-\d+")

Message = dict[str, Any]

#: One entry per model asked; the server knows nothing of this file but the function below.
asked: Counter[str] = Counter()


def decide(body: dict[str, Any]) -> Answer:
    """Decide the answer to one request; the mock server calls this."""
    model = body["model"]
    if model == TALLY:
        return Answer(text=str(asked.total()))
    asked[model] += 1
    return answer(body["messages"], [tool["function"]["name"] for tool in body.get("tools") or ()])


def answer(messages: list[Message], offered: list[str]) -> Answer:
    """Answer as the agent would whose prompt comes with the messages."""
    prompt = "\n".join(_text(one) for one in messages if one["role"] in ("system", "developer"))
    if "You are the router" in prompt:
        tool = _towards("specialist", offered)
        return _calling(tool) if tool else Answer(text=HANDOFF_TEXT)
    if "You are the specialist" in prompt:
        return _specialist(messages, offered)
    if "You are the reviewer" in prompt:
        shown = status_of(_order_in(messages)) in prompt
        return Answer(text=APPROVAL if shown else "The status of the order is missing.")
    raise ValueError(f"this is the prompt of no agent of the job: {prompt[:40]!r}")


def _specialist(messages: list[Message], offered: list[str]) -> Answer:
    number = _order_in(messages)
    if TOOL not in _called(messages):
        return _calling(TOOL, json.dumps({"order": number}))
    text = f"Good news: your order {number} has left our house. It is on its way to you."
    tool = _towards("reviewer", offered)
    return _calling(tool, text=text) if tool else Answer(text=text)


def _calling(tool: str, arguments: str = "{}", *, text: str = "") -> Answer:
    return Answer(text=text, calls=(Call(tool, arguments),))


def _towards(agent: str, offered: Iterable[str]) -> str | None:
    return next((name for name in offered if agent in name), None)


def _called(messages: list[Message]) -> set[str]:
    return {call["function"]["name"] for one in messages for call in one.get("tool_calls") or ()}


def _order_in(messages: list[Message]) -> str:
    for message in messages:
        if message["role"] == "user" and (found := ORDER.search(_text(message))):
            return found.group()
    raise ValueError("no message of the customer names an order")


def _text(message: Message) -> str:
    content = message["content"]
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content)
