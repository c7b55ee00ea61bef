"""What tests of collections share: the model in `.models`, and collections to search."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from support.postgres_server import empty_postgres_database, execute
from weft.adapters.sql.postgres.schema import migrate
from weft.app.embeddings import model_folder
from weft.retrieval import Collections, open_collections
from weft.testing import WordEmbedder

ROOT = Path(__file__).parents[2]
MODELS = ROOT / ".models"

INSECTS = {
    "bees": "Bees dance to tell each other the way to flowers.",
    "ants": "Ants follow a trail of scent to their food.",
    "moths": "Moths fly towards the light of lamps at night.",
}


def local_model() -> dict[str, str]:
    """Return settings with which the local model is found."""
    settings = {"WEFT_CACHE": str(MODELS)}
    if not model_folder(settings).exists():
        raise AssertionError(f"{MODELS} has no embedding model: `make test` installs it")
    return settings


def by_words(folder: Path, store: str = "", **options) -> Collections:
    """Open collections that are embedded by words, without a model."""
    return open_collections(
        folder, environment={"WEFT_STORE": store}, embedder=WordEmbedder(**options)
    )


def by_keywords(folder: Path, store: str = "") -> Collections:
    """Open collections without embeddings."""
    return open_collections(folder, environment={"WEFT_EMBEDDINGS": "none", "WEFT_STORE": store})


@contextmanager
def collection_database(server: str, *, pgvector: bool = True) -> Generator[str]:
    """Yield the address of a new database with the tables of collections."""
    with empty_postgres_database(server) as url:
        asyncio.run(migrate(url))
        if not pgvector:  # As where the extension is not installed.
            asyncio.run(execute(url, "DROP TABLE weft.embeddings"))
        yield url


def clear_collections(url: str) -> None:
    """Delete all collections of all tenants."""
    names = ("collections", "sources", "passages", "source_labels")
    tables = ", ".join(f"weft.{name}" for name in names)
    asyncio.run(execute(url, f"TRUNCATE {tables} CASCADE"))
