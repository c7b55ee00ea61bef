"""A process that puts files into a collection until it is killed. Says when each batch is written.

Usage: python collection_adder.py WORKSPACE [STORE]
"""

import asyncio
import sys
from pathlib import Path

from weft.adapters.collections import ingest
from weft.retrieval import open_collections
from weft.testing import WordEmbedder


class Slow(WordEmbedder):
    """Takes a while, so that there is time to be killed in."""

    async def embed(self, texts):
        """Embed, and say so."""
        await asyncio.sleep(0.002)
        found = await super().embed(texts)
        sys.stdout.write(f"{len(self.texts)}\n")
        sys.stdout.flush()
        return found


async def add(workspace: Path, store: str) -> None:
    """Add the files, and search so that the mapped file grows as well."""
    environment = {"WEFT_STORE": store}
    async with open_collections(workspace, environment=environment, embedder=Slow()) as collections:
        await collections.add("Notes", [workspace / "notes"])
        await collections.search("Notes", "bees", min_relevance=0)


if __name__ == "__main__":
    ingest.WRITTEN_AT_ONCE = 3
    asyncio.run(add(Path(sys.argv[1]), "".join(sys.argv[2:])))
