"""Text that people wrote: words are looked for in it, and it is shown. It is nothing else."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final
from unicodedata import combining, normalize

#: How much of a brief is read; what comes after it is left out.
LONGEST_TEXT: Final = 20_000

_WORD: Final = re.compile(r"[^\W_]+|[.!?;:。]|\n\s*\n")
#: Signs that mean something to prompts and diagrams, and what is shown instead.
_PLAIN: Final = str.maketrans("{}`<>", "()'()")


def plain_line(text: str, limit: int = 160) -> str:
    """Return a text as one printable line of limited length, without braces and backticks.

    >>> plain_line("Ask {name}\\nfor `help`")
    "Ask (name) for 'help'"
    """
    shown = "".join(it if it.isprintable() else " " for it in text[: 20 * limit])
    line = " ".join(shown.translate(_PLAIN).split())
    if len(line) <= limit:
        return line
    kept = line[: limit - 3]
    return f"{kept.rsplit(' ', 1)[0]}..."


def sentence(text: str) -> str:
    """Return a phrase with a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def article(phrase: str) -> str:
    """Return a phrase after "a" or "an"."""
    return f"{'an' if phrase[:1].lower() in 'aeiou' else 'a'} {phrase}"


def fold(text: str) -> str:
    """Return a text without accents and capital letters, as words are compared."""
    if text.isascii():
        return text.lower()
    return "".join(it for it in normalize("NFKD", text) if not combining(it)).casefold()


@dataclass(frozen=True)
class Wording:
    """A text, ready to be asked which words and phrases it holds."""

    text: str

    @cached_property
    def _spans(self) -> tuple[tuple[int, int], ...]:
        return tuple(it.span() for it in _WORD.finditer(self.text))

    @cached_property
    def _folded(self) -> str:
        """The words with one blank between them; the end of a sentence is a word, too."""
        return f" {' '.join(self.words())} "

    def words(self) -> Iterator[str]:
        """Yield the words as they are compared; "." for the end of a sentence."""
        for start, end in self._spans:
            word = fold(self.text[start:end])
            yield word if word[:1].isalnum() else "."

    def find(self, terms: str) -> str | None:
        """Return how the text says the first of the terms it holds, or None.

        Terms are parted by "|". One that ends with "*" is the beginning of a word. One in a
        script without blanks is found anywhere.
        """
        return next((it for term in terms.split("|") if (it := self._quote(term))), None)

    def has(self, terms: str) -> bool:
        """Tell whether the text holds one of the terms."""
        return self.find(terms) is not None

    def _quote(self, term: str) -> str | None:
        if not term.isascii() and fold(term) in self._folded:
            return term
        sought = f" {term[:-1]}" if term.endswith("*") else f" {term} "
        at = self._folded.find(sought)
        if at < 0:
            return None
        first = self._folded.count(" ", 0, at)
        last = first + term.count(" ")
        return plain_line(self.text[self._spans[first][0] : self._spans[last][1]], 60)
