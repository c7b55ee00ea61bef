"""What tests of collections share: the model in `.models`, and collections to search."""

from pathlib import Path

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


def by_words(folder: Path, **options) -> Collections:
    """Open collections that are embedded by words, without a model."""
    return open_collections(folder, environment={}, embedder=WordEmbedder(**options))


def by_keywords(folder: Path) -> Collections:
    """Open collections without embeddings."""
    return open_collections(folder, environment={"WEFT_EMBEDDINGS": "none"})
