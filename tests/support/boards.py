"""Boards for tests: a few types, agents that note what they get, and a clock that stands still."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic import BaseModel

from weft.board import Board, EvalContext, EvalInputs, FunctionEngine, artifact
from weft.testing.clock import ManualClock


@artifact
class Order(BaseModel):
    number: int
    customer: str = "ada"
    total: float = 1.0


@artifact
class Payment(BaseModel):
    number: int
    amount: float = 1.0
    ref: int | None = None


@artifact
class Receipt(BaseModel):
    text: str


@artifact
class Note(BaseModel):
    text: str
    secret: str = "hush"


class Seen:
    """Notes what its engine was given, each time, and what it saw around it."""

    def __init__(self, *results: Any) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.contexts: list[list[dict[str, Any]]] = []
        self._results = list(results)

    @property
    def engine(self) -> FunctionEngine:
        return FunctionEngine(self._work)

    async def _work(self, inputs: EvalInputs, ctx: EvalContext) -> Any:
        self.calls.append(
            tuple(next(iter(artifact.payload.values())) for artifact in inputs.artifacts)
        )
        self.contexts.append(await ctx.context())
        result = self._results.pop(0) if len(self._results) > 1 else (self._results or [None])[0]
        return result(inputs, ctx) if callable(result) else result

    @property
    def texts(self) -> list[list[Any]]:
        """The first field of every payload in each context."""
        return [[next(iter(item["payload"].values())) for item in items] for items in self.contexts]


def play(test: Callable[..., Awaitable[Any]], board: Board | None = None, **options: Any) -> Any:
    """Run a test with a board that is closed afterwards, on a clock that stands still."""

    async def played() -> Any:
        clock = ManualClock()
        async with board or Board(clock=clock, **options) as opened:
            return await asyncio.wait_for(test(opened, clock), 30)

    return asyncio.run(played())
