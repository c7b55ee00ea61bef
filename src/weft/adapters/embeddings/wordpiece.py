"""WordPiece as BERT models of lower-case English have it: words, and pieces of rarer ones."""

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

#: A word longer than this is one unknown token.
MOST_LETTERS: Final = 100

#: How many words are remembered with their pieces before all are dropped.
MOST_WORDS: Final = 50_000

#: Ranges of characters that are words of their own: those of Chinese and Japanese.
_IDEOGRAPHS: Final = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f"

#: What counts as punctuation beside what Unicode says: all signs of ASCII.
_SIGNS: Final = frozenset(
    map(chr, [*range(33, 48), *range(58, 65), *range(91, 97), *range(123, 127)])
)

#: Characters that are none: control, format, private, and halves of pairs.
_UNSEEN: Final = frozenset({"Cc", "Cf", "Co", "Cs"})

_PLAIN: Final = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~]")


class WordPiece:
    """Turns text into the numbers of a vocabulary."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._ids = {piece: number for number, piece in enumerate(vocabulary)}
        self._unknown = self._ids["[UNK]"]
        self._begin, self._end = self._ids["[CLS]"], self._ids["[SEP]"]
        self._known: dict[str, list[int]] = {}

    def windows(self, text: str, size: int) -> list[list[int]]:
        """Return the tokens of a text in windows of at most `size`, each with begin and end."""
        tokens = self.tokens(text)
        room = size - 2
        starts = range(0, max(len(tokens), 1), room)
        return [[self._begin, *tokens[at : at + room], self._end] for at in starts]

    def tokens(self, text: str) -> list[int]:
        """Return the tokens of a text."""
        found: list[int] = []
        for word in words(text):
            pieces = self._known.get(word)
            if pieces is None:
                if len(self._known) >= MOST_WORDS:
                    self._known.clear()
                pieces = self._known[word] = self._pieces(word)
            found += pieces
        return found

    def _pieces(self, word: str) -> list[int]:
        """Take the longest piece that is known, again and again."""
        if len(word) > MOST_LETTERS:
            return [self._unknown]
        found: list[int] = []
        start = 0
        while start < len(word):
            mark = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((it for it in ends if mark + word[start:it] in self._ids), None)
            if end is None:
                return [self._unknown]
            found.append(self._ids[mark + word[start:end]])
            start = end
        return found


def words(text: str) -> list[str]:
    """Split a text into lower-case words without accents; each punctuation sign is a word.

    >>> words("Café-au-lait, s'il")
    ['cafe', '-', 'au', '-', 'lait', ',', 's', "'", 'il']
    """
    if text.isascii():
        return _PLAIN.findall(text.lower())
    spaced = re.sub(f"([{_IDEOGRAPHS}])", r" \1 ", _cleaned(text))
    bare = "".join(
        it
        for it in unicodedata.normalize("NFD", spaced.lower())
        if unicodedata.category(it) != "Mn"
    )
    return [part for word in bare.split() for part in _split_at_signs(word)]


def _cleaned(text: str) -> str:
    """Drop what is no letter at all: control and format characters, and what could not be read."""
    return "".join(
        " " if it.isspace() else it
        for it in text
        if it.isspace() or (it not in "\0\ufffd" and unicodedata.category(it) not in _UNSEEN)
    )


def _split_at_signs(word: str) -> list[str]:
    parts: list[str] = []
    begun = False
    for letter in word:
        if letter in _SIGNS or unicodedata.category(letter).startswith("P"):
            parts.append(letter)
            begun = False
        elif begun:
            parts[-1] += letter
        else:
            parts.append(letter)
            begun = True
    return parts
