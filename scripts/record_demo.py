"""Records the run that everybody can play: src/weft/app/recordings/customer-support.jsonl.

    python scripts/record_demo.py

The engine, the rules, the tools and the prompts are real; a script replies for the models. The
file depends on nothing else: a test records it again and compares.
"""
# ruff: noqa: INP001 - a program, not a package

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from weft.app import recordings
from weft.app.recordings import Recording, written
from weft.engine.events import (
    ConditionJudged,
    Event,
    HandedOff,
    ModelReplied,
    RequestAnswered,
    ToolReturned,
    TurnStarted,
)
from weft.packages.workspace import shipped_folder
from weft.ports.scope import Scope
from weft.runtime.signals import Answer, UserMessage
from weft.testing.clock import ManualClock
from weft.testing.hosts import host_for, read_package
from weft.testing.models import ScriptedModel, call

RECORDING: Final = Recording(
    "customer-support", "CustomerSupportRouter", "A double charge, and notes that do not sync"
)
FILE: Final = Path(recordings.__file__).with_name("recordings") / f"{RECORDING.name}.jsonl"

FIRST: Final = (
    "Hello, I was charged twice for Harbour Notes this month. And since this morning my notes do "
    "not sync any more. Can you help me?"
)
ANSWER: Final = {"answer": "The double charge", "wants_person": False}
LATER: Final = (
    "It was 24 euros each time, three days ago.",
    (
        "That was quick, thank you! Now the other thing: on my laptop the notes stopped syncing "
        "this morning. On my phone they still do."
    ),
    "It is online. I have signed out and in again, and now everything is there. Great!",
)

SCRIPT: Final = {
    "RouterAgent": [
        call("look_up_customer"),
        call(
            "request_clarification",
            question="Both can be solved. Which of the two shall we look at first?",
            options=["The double charge", "The notes that do not sync"],
        ),
        {
            "domain": "finance",
            "urgency": "normal",
            "summary": "Ada was charged twice for Harbour Notes this month and wants the second "
            "payment back; her notes also do not sync since this morning.",
            "agent_message": "Thank you, Ada. My colleague for payments looks at the double charge "
            "first; after that we take care of your notes.",
        },
        {
            "domain": "tech",
            "urgency": "normal",
            "summary": "Since this morning the notes on Ada's laptop do not sync; on her phone "
            "they do. The double charge is settled.",
            "agent_message": "Now to your notes: my colleague for technical problems is here.",
        },
    ],
    "FinanceSpecialist": [
        (
            "I am sorry about that, Ada. To check what can be refunded, I need two things:\n\n"
            "- the **amount** of the second charge\n"
            "- the **day** of the payment\n\n"
            "Please do not send a card number: I do not need it."
        ),
        call("check_refund", amount=24.0, days_since_payment=3),
        (
            "The second charge is refunded **in full**, because it was paid less than a week "
            "ago.\n\n"
            "| charge | amount | result |\n"
            "| --- | ---: | --- |\n"
            "| Harbour Notes, monthly | €24.00 | kept |\n"
            "| Harbour Notes, monthly | €24.00 | **refund of €24.00** |\n\n"
            "Is there anything else about this payment?"
        ),
        call("return_to_router", reason="The refund is settled; now the notes do not sync."),
        "You are welcome. A colleague takes over for your notes.",
    ],
    "TechSpecialist": [
        call("diagnose", symptom="Notes do not sync on the laptop since this morning"),
        (
            "Since your phone still syncs, the notes themselves are safe. Let us go step by "
            "step:\n\n"
            "1. Check that the laptop is online.\n"
            "2. Sign out of Harbour Notes, and in again.\n\n"
            "What happens then?"
        ),
        call("mark_resolved", summary="After signing in again, the laptop syncs."),
        (
            "Wonderful! Your notes sync again, and the refund is on its way. Thank you for your "
            "patience, Ada."
        ),
    ],
}


async def recorded() -> list[Event]:
    """Perform the run, and return its events with the times of a real one."""
    package = read_package(shipped_folder() / RECORDING.workflow)
    model = ScriptedModel(SCRIPT)
    scope = Scope("local", recordings.USER)
    host = host_for(package.spec, model, code=package.code, clock=ManualClock())
    async with host:
        run = await host.start(RECORDING.workflow, scope=scope, message=FIRST, run=recordings.RUN)
        await host.settled(run, scope=scope)
        (asked,) = await host.requests(scope=scope, run=run)
        await host.deliver(run, Answer(asked.id, ANSWER), scope=scope)
        for number, text in enumerate(LATER, start=1):
            await host.settled(run, scope=scope)
            await host.deliver(run, UserMessage(text, id=f"message-{number}"), scope=scope)
        row = await host.settled(run, scope=scope)
        if row.outcome != "completed" or model.left:
            raise SystemExit(f"the run ended as {row.outcome}: {row.reason}; lines: {model.left}")
        events = host.events(run, scope=scope)
        return _timed([event async for event in events if isinstance(event, Event)])


def _timed(events: Sequence[Event]) -> list[Event]:
    """Give events the times that models, tools and a person would have needed."""
    at, timed = events[0].at, list[Event]()
    for event in events:
        at += _milliseconds(event)
        timed.append(event._replace(at=at))
    return timed


def _milliseconds(event: Event) -> int:
    match event.data:
        case ModelReplied(text=text):
            return 700 + 9 * len(text)
        case RequestAnswered(value=value) if event.seq > 4:
            return 2_500 + 60 * len(str(value))
        case ToolReturned():
            return 240
        case TurnStarted() | HandedOff() | ConditionJudged():
            return 3
        case _:
            return 1


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(written(RECORDING, asyncio.run(recorded())), encoding="utf-8")
