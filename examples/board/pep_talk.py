"""A custom context provider: an agent sees recent wins of others, without private notes.

Run it with: python examples/board/pep_talk.py
"""

import asyncio
from typing import Any

from pydantic import BaseModel

from weft.board import (
    Board,
    ContextRequest,
    ContextSlice,
    DefaultCorrelationProvider,
    FilterConfig,
    ModelEngine,
    TagFilter,
    artifact,
)


class RecentWinsProvider:
    """Provide recent wins plus the active run, redacting private notes."""

    def __init__(self, max_wins: int = 3) -> None:
        self.max_wins = max_wins

    async def __call__(self, request: ContextRequest) -> ContextSlice:
        items: list[dict[str, Any]] = []

        # 1) Include the default correlation view (current cascade)
        correlation = await DefaultCorrelationProvider()(request)
        items.extend(correlation.items)

        # 2) Add last N wins from the whole board
        wins_filter = FilterConfig(
            types={"PitchResult"},
            tags=TagFilter(include={"deal_won"}),
            limit=self.max_wins,
            order="-created_at",
        )
        wins, _total = await request.board.query_artifacts(wins_filter, embed_meta=True)
        for envelope in wins:
            payload = dict(envelope.payload)
            payload.pop("private_notes", None)  # Redact internal notes
            items.append(
                {
                    "type": envelope.type,
                    "payload": payload,
                    "produced_by": envelope.produced_by,
                }
            )

        return ContextSlice(items=items)


@artifact
class Pitch(BaseModel):
    product: str
    audience: str
    highlight: str


@artifact
class PitchResult(BaseModel):
    tagline: str
    closer: str
    private_notes: str | None = None


async def main():
    flock = Board(model="sample")

    (
        flock.agent("pep_talk_lead")
        .description("Adds a hype meter to every pitch.")
        .consumes(Pitch)
        .publishes(PitchResult)
        .with_context(RecentWinsProvider(max_wins=5))  # 👈 inject custom context
        .with_engines(ModelEngine())
    )

    await flock.publish(Pitch(product="Loom", audience="weavers", highlight="twice as fast"))
    await flock.run_until_idle()

    results, _total = await flock.query_artifacts(FilterConfig(types={"PitchResult"}))
    for result in results:
        print(f"{result.produced_by}: {result.payload['tagline']}, {result.payload['closer']}")
        for span in await flock.spans(result.correlation_id):
            print(f"  {span.kind} {span.name}")
    await flock.close()


if __name__ == "__main__":
    asyncio.run(main())
