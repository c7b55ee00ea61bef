"""The suite every live stream must pass.

`open_two` returns the streams of a publishing and of a subscribing process; in memory they are one
object.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

from weft.ports.live import Delta, LiveStream, ModelRetry, TextDelta, ToolProgress
from weft.ports.store import RunKey
from weft.testing.ports.waiting import until
from weft.testing.store.samples import expect

OpenStreams: TypeAlias = Callable[[], Awaitable[tuple[LiveStream, LiveStream]]]

RUN: Final = ("shop", "r1")


async def text_arrives(open_streams: OpenStreams) -> None:
    """The text of a model call arrives complete and in order, with any characters."""
    text = "".join(f"{number} é 漢 \x00 \ud800 🎉 \"'\\n" for number in range(2_000))
    got: list[Delta] = []
    async with _open_two(open_streams) as (worker, gateway):
        with gateway.subscribe(RUN, got.append):
            await until(lambda: worker.has_subscribers(RUN), "subscribers")
            for offset in range(0, len(text), 7):
                worker.publish(RUN, TextDelta("r1", 3, offset, text[offset : offset + 7]))
            await until(lambda: len(_text(got)) >= len(text), "the text")
        expect(_text(got), text, "the text of the deltas in their order")
        expect({(delta.run, delta.call) for delta in got}, {("r1", 3)}, "run and call")


async def text_in_one_piece_arrives(open_streams: OpenStreams) -> None:
    """A delta that is larger than a message arrives whole."""
    text = "x漢" * 300_000
    got: list[Delta] = []
    async with _open_two(open_streams) as (worker, gateway):
        with gateway.subscribe(RUN, got.append):
            await until(lambda: worker.has_subscribers(RUN), "subscribers")
            worker.publish(RUN, TextDelta("r1", 1, 0, text))
            await until(lambda: len(_text(got)) >= len(text), "the text")
        expect(_text(got) == text, wanted=True, what="a long text arrives unchanged")


async def every_kind_arrives(open_streams: OpenStreams) -> None:
    """Retries and progress arrive between the pieces of text; of progress, the last."""
    got: list[Delta] = []
    sent: list[Delta] = [
        TextDelta("r1", 1, 0, "a"),
        ModelRetry("r1", 1, "the server was busy"),
        TextDelta("r1", 1, 0, "b"),
        ToolProgress("r1", 5, "count", 1.0, "done"),
    ]
    async with _open_two(open_streams) as (worker, gateway):
        with gateway.subscribe(RUN, got.append):
            await until(lambda: worker.has_subscribers(RUN), "subscribers")
            for delta in sent[:-1]:
                worker.publish(RUN, delta)
            worker.publish(RUN, ToolProgress("r1", 5, "count", 0.5, "half"))
            worker.publish(RUN, sent[-1])
            await until(lambda: sent[-1] in got, "the last progress")
        half = [delta for delta in got if isinstance(delta, ToolProgress) and delta.share < 1]
        expect([delta for delta in got if delta not in half], sent, "the deltas")


async def runs_are_apart(open_streams: OpenStreams) -> None:
    """A subscriber gets the deltas of its run only; tenants may name their runs alike."""
    got: dict[RunKey, list[Delta]] = {run: [] for run in (RUN, ("other", "r1"), ("shop", "r2"))}
    async with _open_two(open_streams) as (worker, gateway):
        with (
            gateway.subscribe(RUN, got[RUN].append),
            gateway.subscribe(RUN, got[RUN].append),
            gateway.subscribe(("other", "r1"), got["other", "r1"].append),
        ):
            await until(lambda: worker.has_subscribers(("other", "r1")), "subscribers")
            for app, run in got:
                worker.publish((app, run), TextDelta(run, 1, 0, app))
            await until(lambda: bool(got[RUN] and got["other", "r1"]), "deltas")
        expect([len(deltas) for deltas in got.values()], [2, 1, 0], "deltas by subscriber")


async def subscribing_ends(open_streams: OpenStreams) -> None:
    """A run is not streamed after its last subscriber has left, in any order."""
    async with _open_two(open_streams) as (worker, gateway):
        got: list[Delta] = []
        expect(worker.has_subscribers(RUN), wanted=False, what="subscribers at first")
        with gateway.subscribe(RUN, got.append):
            with gateway.subscribe(RUN, lambda _: None):
                await until(lambda: worker.has_subscribers(RUN), "subscribers")
            worker.publish(RUN, TextDelta("r1", 1, 0, "a"))
            await until(lambda: bool(got), "a delta for the subscriber that is left")
        await until(lambda: not worker.has_subscribers(RUN), "the end of the subscription")
        worker.publish(RUN, TextDelta("r1", 1, 1, "b"))
        expect(_text(got), "a", "deltas after the end of the subscription")


def _text(deltas: list[Delta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))


@asynccontextmanager
async def _open_two(open_streams: OpenStreams) -> AsyncGenerator[tuple[LiveStream, LiveStream]]:
    worker, gateway = await open_streams()
    try:
        yield worker, gateway
    finally:
        await worker.close()
        if gateway is not worker:
            await gateway.close()


LIVE_CHECKS: Final = (
    text_arrives,
    text_in_one_piece_arrives,
    every_kind_arrives,
    runs_are_apart,
    subscribing_ends,
)
