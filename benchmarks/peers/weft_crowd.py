"""Weft's side of crowd.py: how long the turns of a run took, by its journal."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from job import is_right, question
from measure import OpenChat, Options, Talk, Turns
from weft_job import NAME, SCOPE, open_desk, outcome

from weft.engine.events import Event, TurnEnded, TurnStarted
from weft.runtime.signals import UserMessage


@asynccontextmanager
async def weft_chats(options: Options) -> AsyncIterator[OpenChat]:
    """Run the job with Weft."""
    async with open_desk(options) as (host, journal):

        async def open_chat(number: int) -> Talk:
            run = await host.start(NAME, scope=SCOPE)

            async def talk() -> Turns:
                await host.deliver(run, UserMessage(question(number)), scope=SCOPE)
                await host.settled(run, scope=SCOPE)
                return turns

            async def turns() -> list[float]:
                right = is_right(number, outcome(await host.state(run, scope=SCOPE)))
                return turns_of(await journal.read(SCOPE, run)) if right else []

            return talk

        yield open_chat


def turns_of(events: list[Event]) -> list[float]:
    """Return how many milliseconds each turn took."""
    begun = [event.at for event in events if isinstance(event.data, TurnStarted)]
    ended = [event.at for event in events if isinstance(event.data, TurnEnded)]
    return [float(end - begin) for begin, end in zip(begun, ended, strict=True)]
