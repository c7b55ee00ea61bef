"""What the paper has printed before."""

from typing import Final

_PRINTED: Final = (
    "Harbour bridge closed for repairs",
    "Library opens on Sundays",
    "New bus line to the harbour",
)


def search_archive(text: str) -> list[str]:
    """Return the headlines that have a word of more than three letters in common with a text."""
    words = {word for word in text.lower().split() if len(word) > 3}
    return [article for article in _PRINTED if words.intersection(article.lower().split())]
