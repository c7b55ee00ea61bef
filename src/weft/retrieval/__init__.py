"""Retrieval: collections of passages, and adapters that search them.

class ResearchLibrary(Collection): ...

async with open_collections() as collections:
    await collections.add(ResearchLibrary, ["papers"])
    found = await collections.search(ResearchLibrary, "how do bees dance?")
"""

from weft.adapters.collections.collection import Stats
from weft.adapters.collections.ingest import Ingested, Progress
from weft.adapters.collections.texts import Chunking
from weft.app.collections import Collections, open_collections
from weft.ports.retrieval import (
    Collection,
    Embedder,
    RetrievalResult,
    Retrievers,
    VectorSearchAdapter,
)
from weft.runtime.flow.retrieval import RetrieverRegistry

__all__ = [
    "Chunking",
    "Collection",
    "Collections",
    "Embedder",
    "Ingested",
    "Progress",
    "RetrievalResult",
    "RetrieverRegistry",
    "Retrievers",
    "Stats",
    "VectorSearchAdapter",
    "open_collections",
]
