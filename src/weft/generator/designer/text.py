"""Text that people wrote: words are looked for in it, and it is shown. It is nothing else."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final
from unicodedata import normalize

#: How much of a brief is read; what comes after it is left out.
LONGEST_TEXT: Final = 10_000

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
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?', '。')) else '.'}"


def article(phrase: str) -> str:
    """Return a phrase after "a" or "an"."""
    return f"{'an' if phrase[:1].lower() in 'aeiou' else 'a'} {phrase}"


def fold(text: str) -> str:
    """Return a text without accents and capital letters, as words are compared."""
    if text.isascii():
        return text.lower()
    # Marks of other scripts tell letters apart: only those of Latin ones are left out.
    kept = (it for it in normalize("NFKD", text) if not "\u0300" <= it <= "\u036f")
    return "".join(kept).casefold()


@dataclass(frozen=True)
class Wording:
    """A text, ready to be asked which words and phrases it holds."""

    text: str

    @cached_property
    def _spans(self) -> tuple[tuple[int, int], ...]:
        return tuple(it.span() for it in _WORD.finditer(self.text))

    @cached_property
    def folded(self) -> str:
        """The words with one blank between them; the end of a sentence is a word, too."""
        words = (fold(self.text[start:end]) for start, end in self._spans)
        return f" {' '.join(it if it[:1].isalnum() else '.' for it in words)} "

    @property
    def words(self) -> list[str]:
        """The words as they are compared; "." for the end of a sentence."""
        return self.folded.split()

    def repeats(self, other: str) -> bool:
        """Tell whether all words of another text stand in this one, in their order."""
        return f" {Wording(other).folded.strip(' .')} " in self.folded

    def find(self, terms: str) -> str | None:
        """Return how the text says the first of the terms it holds, or None.

        Terms are parted by "|". One that ends with "*" is the beginning of a word. One in a
        script without blanks is found anywhere.
        """
        return next((it for term in terms.split("|") if (it := self._quote(term))), None)

    def has(self, terms: str) -> bool:
        """Tell whether the text holds one of the terms."""
        return any(self.count(term) for term in terms.split("|"))

    def count(self, term: str) -> int:
        """Return how often the text holds a term."""
        return self.folded.count(_sought(term))

    def _quote(self, term: str) -> str | None:
        at = self.folded.find(_sought(term))
        if at < 0 or not term.isascii():
            return None if at < 0 else term
        first = self.folded.count(" ", 0, at)
        last = first + term.count(" ")
        return plain_line(self.text[self._spans[first][0] : self._spans[last][1]], 60)


def _sought(term: str) -> str:
    if not term.isascii():
        return fold(term)
    return f" {term[:-1]}" if term.endswith("*") else f" {term} "


#: Words that belong to no name.
_SMALL: Final = (
    " a all an and another any approve approves are as at be best both but by can do each either"
    " every few first for from good has have her his human i in into is it its least make many more"
    " most multi my need needs new next no nobody of on one or other our own real right same second"
    " separate several should simple single small some such than that the their then these they"
    " third this those three to two until us use using want we whole where which who whose will"
    " with you your der die das ein eine und oder von el la los las y o un una de le les et ou ask"
    " asks consult consults whichever appropriate suitable matching different various specialised"
    " specialized independent independently complete entire following last after before once when"
    " if niemand nadie personne "
)


def is_small(word: str) -> bool:
    """Tell whether a word belongs to no name: "the", "every", "right"."""
    return f" {fold(word)} " in _SMALL
