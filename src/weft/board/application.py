"""A board as a function: publish one artifact, return the wanted ones."""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel

from weft.context.slices import (
    Envelope,
)
from weft.errors import RunError, UsageError
from weft.ports.scope import Scope
from weft.runtime.board.publish import Publication
from weft.runtime.signals import Stop
from weft.spec.providers import FilterConfig


@dataclass(frozen=True, slots=True)
class Missed:
    """Artifacts that were collected and never delivered."""

    run: str
    subscription: str
    artifacts: tuple[str, ...]
    why: str
    detail: str


@dataclass(frozen=True, slots=True)
class ApplicationResult:
    """How a request ended, and the artifacts that were wanted."""

    status: Literal["succeeded", "failed", "cancelled", "timed_out"]
    outputs: list[Envelope]
    correlation_id: str
    reason: str = ""


if TYPE_CHECKING:
    from weft.board.board import Board


@dataclass(frozen=True, slots=True)
class Application:
    """A board as a function: one correlation for each request."""

    board: "Board"
    input: type[BaseModel]
    outputs: tuple[type[BaseModel], ...]
    deadline: float | None

    async def run(self, obj: BaseModel) -> ApplicationResult:
        """Publish an artifact and wait for the wanted ones, or until the board is idle.

        A request whose task is cancelled is cancelled on the board as well.
        """
        if not isinstance(obj, self.input):
            raise UsageError(f"the application takes {self.input.__name__}, not {obj!r:.60}")
        host = await self.board.host()
        made = await self.board.publish(obj, correlation_id=host.new_id())
        try:
            async with asyncio.timeout(self.deadline):
                row = await host.settled(made.run, scope=self._scope)
        except TimeoutError:
            return await self._stopped(made, "timed_out", f"not done within {self.deadline:g} s")
        except asyncio.CancelledError:
            await self._stopped(made, "cancelled", "the request was cancelled")
            raise
        except RunError as error:
            return ApplicationResult("failed", [], made.correlation_id, str(error))
        found = await self._found(made)
        if row.outcome == "cancelled":
            return ApplicationResult("cancelled", found, made.correlation_id, row.reason)
        types = {artifact.type for artifact in found}
        lacking = [name for name in self._names() if name not in types]
        if not lacking:
            return ApplicationResult("succeeded", found, made.correlation_id)
        details = [missed.detail for missed in await self.board.missed(made.correlation_id)]
        reason = "; ".join([f"no {', '.join(lacking)} was published", *details])
        return ApplicationResult("failed", found, made.correlation_id, reason)

    @property
    def _scope(self) -> Scope:
        return Scope.operator(self.board.scope.app)

    def _names(self) -> tuple[str, ...]:
        return tuple(self.board.type_name(output) for output in self.outputs)

    async def _found(self, made: Publication) -> list[Envelope]:
        wanted = FilterConfig(
            types=self._names(), correlation_id=made.correlation_id, order="created_at"
        )
        return (await self.board.query_artifacts(wanted))[0]

    async def _stopped(
        self, made: Publication, status: Literal["cancelled", "timed_out"], reason: str
    ) -> ApplicationResult:
        host = await self.board.host()
        await host.deliver(made.run, Stop("now"), scope=self._scope)
        return ApplicationResult(status, await self._found(made), made.correlation_id, reason)
