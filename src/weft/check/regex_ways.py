"""How many ways a regular expression has to match one text.

Python tries the ways one after the other, so a pattern with many of them can take for ever on a
text that does not match. What may follow each character of a pattern is worked out as it is read:
where two things may follow that begin with the same character, there is a choice.

Inside a repetition no choice is allowed, for the choices of all rounds multiply. Outside, few are.
Cases are taken as equal, and only whole characters are compared, so some patterns are refused that
would be fast. What is let through takes a time that grows with a small power of the text, never
doubling with each of its characters.
"""

import re
from dataclasses import dataclass, field
from typing import Final, NoReturn

#: Ends of repetitions that may be tried anew, and combinations of all other choices.
MOST_GROWING: Final = 2
MOST_WAYS: Final = 1000
#: A repetition whose length varies by more than this counts as one without bound.
_FEW: Final = 8

_PIECE: Final = re.compile(
    r"""
      (?P<aside>  \(\?\#[^)]*\) | \(\?[aiLmsux]+\) )
    | (?P<again>  \(\?P=\w+\) | \\[1-9]\d?(?!\d) )
    | (?P<open>   \( (?: \?(?: P<\w+> | [=!] | <[=!] | > | \(\w+\) | [aiLmsux]*(?:-[imsx]+)?: ))? )
    | (?P<edge>   [\^$] | \\[bBAZ] )
    | (?P<atom>   \[\^?\]?(?:\\.|[^\]\\])*\]
                | \\(?:x..|u.{4}|U.{8}|N\{[^}]*\}|[0-7]{3}|0[0-7]?|.) | [^|)] )
    """,
    re.VERBOSE | re.DOTALL,
)
_TIMES: Final = re.compile(r"(?:([*+?])|\{(?=[\d,])(\d*)(,?)(\d*)\})([?+]?)")
_LOOKING: Final = ("(?=", "(?!", "(?<=", "(?<!")
#: Letters, digits and signs of many kinds; those of the pattern itself are added.
_SAMPLES: Final = frozenset(map(chr, range(256))) | frozenset(
    "\u0131\u017f\u0663\u2028\u4e2d\u212a"
)


class Slow(Exception):
    """Says that a pattern may take too long, and why."""

    def __init__(self, fact: str, hint: str, offset: int) -> None:
        super().__init__(fact)
        self.fact = fact
        self.hint = hint
        self.offset = offset


def look_for_slow_parts(pattern: str) -> None:
    """Raise Slow if a pattern that compiles has too many ways to match a text."""
    _Reading(pattern).either()


@dataclass(eq=False, slots=True)
class _Step:
    """One character of the pattern: what it may be, and the steps that may follow it.

    A step that may follow in two ways stands in the list twice.
    """

    chars: frozenset[str]
    following: list["_Step"] = field(default_factory=list["_Step"])


@dataclass(frozen=True, slots=True)
class _End:
    """Where a repetition goes on or ends: with what it goes on, and in how many lengths."""

    chars: frozenset[str]
    lengths: int | None
    offset: int


@dataclass(slots=True)
class _Part:
    """A part of the pattern: its steps, those it may begin and stop with, its ends still open."""

    empty: bool = True
    steps: list[_Step] = field(default_factory=list[_Step])
    first: list[_Step] = field(default_factory=list[_Step])
    last: list[_Step] = field(default_factory=list[_Step])
    ends: list[_End] = field(default_factory=list[_End])


@dataclass
class _Reading:
    """Reads a pattern from left to right."""

    pattern: str
    at: int = 0
    growing: int = 0
    ways: int = 1

    def either(self) -> _Part:
        """Read what stands between `|`, up to the end of the group."""
        start, rows = self.at, [self.row()]
        while self.pattern.startswith("|", self.at):
            self.at += 1
            rows.append(self.row())
        if len(rows) == 1:
            return rows[0]
        whole = _Part(empty=any(row.empty for row in rows))
        begin, alike = frozenset[str](), 1
        for row in rows:
            own = _chars(row.first)
            alike += not begin.isdisjoint(own)
            begin |= own
            whole.steps += row.steps
            whole.first += row.first
            whole.last += row.last
            whole.ends += row.ends
        whole.ends += [_End(begin, 2, start)] if whole.empty else []
        self.count_ways(alike, start)
        return whole

    def row(self) -> _Part:
        """Read parts that stand one after the other."""
        row = _Part()
        while piece := _PIECE.match(self.pattern, self.at):
            start, self.at = self.at, piece.end()
            part = self.part(piece)
            if part:
                self.append(row, self.repeated(part, start))
        return row

    def part(self, piece: re.Match[str]) -> _Part | None:
        text = piece[0]
        match piece.lastgroup:
            case "open":
                return self.group(text)
            case "atom":
                return _one(self.chars(text), empty=False)
            case "again":
                # What a group has matched may be anything, or nothing.
                return _one(_SAMPLES | frozenset(self.pattern), empty=True)
            case "aside" if "x" in text and not text.startswith("(?#"):
                return self.refuse_blanks(piece.start())
            case _:
                return None

    def group(self, opening: str) -> _Part:
        if opening.endswith(":") and "x" in opening.partition("-")[0]:
            self.refuse_blanks(self.at - len(opening))
        inner = self.either()
        self.at += 1
        if opening in _LOOKING:
            return _Part()
        return _settled(inner) if opening == "(?>" else inner

    def refuse_blanks(self, offset: int) -> NoReturn:
        hint = "write the pattern without the flag x, in one line"
        raise Slow("blanks and comments inside it hide what it repeats", hint, offset)

    def chars(self, atom: str) -> frozenset[str]:
        found = re.compile(atom, re.IGNORECASE | re.DOTALL)
        return frozenset(c for c in _SAMPLES | frozenset(self.pattern) if found.fullmatch(c))

    def repeated(self, part: _Part, start: int) -> _Part:
        """Read how often a part may stand, and refuse a repetition that leaves a choice."""
        found = _TIMES.match(self.pattern, self.at)
        if found is None:
            return part
        self.at = found.end()
        sign, low, comma, high, manner = found.groups()
        least = int(low or 0) if low is not None else int(sign == "+")
        most = 1 if sign == "?" else int(high) if high else None if sign or comma else least
        if most not in (0, 1):
            _refuse_choice(part, start)
        if manner == "+":
            part = _settled(part)
        elif most != least:
            if most != 1:
                _follow(part.last, part.first)
            lengths = None if most is None else most - least + 1
            part.ends.append(_End(_chars(part.first), lengths, start))
        part.empty |= least == 0
        return part

    def append(self, row: _Part, part: _Part) -> None:
        begin = _chars(part.first)
        apart = [end for end in row.ends if end.chars.isdisjoint(begin)]
        for end in row.ends:
            if end not in apart:
                self.count_end(end)
        _follow(row.last, part.first)
        row.steps += part.steps
        row.first += part.first if row.empty else []
        row.last = [*row.last, *part.last] if part.empty else part.last
        row.ends = [*(apart if part.empty else ()), *part.ends]
        row.empty &= part.empty

    def count_end(self, end: _End) -> None:
        """Count a repetition whose end may be tried anew, because the next part looks alike."""
        if end.lengths is None or end.lengths > _FEW:
            self.growing += 1
        self.count_ways(min(end.lengths or 1, _FEW), end.offset)

    def count_ways(self, ways: int, offset: int) -> None:
        """Count a choice; all that stand in a row multiply."""
        self.ways *= ways
        if self.growing > MOST_GROWING or self.ways > MOST_WAYS:
            hint = "use several triggers, or say more closely what is repeated, as in [^,]*,"
            raise Slow("it has too many ways to match one text", hint, offset)


def _refuse_choice(part: _Part, start: int) -> None:
    if part.empty:
        hint = "repeat something that is never empty: (a?)* says the same as a*"
        raise Slow("a repetition of what may be empty can take almost for ever", hint, start)
    last = set(map(id, part.last))
    rounds = [[*step.following, *(part.first if id(step) in last else ())] for step in part.steps]
    if any(_alike(steps) for steps in (part.first, *rounds)):
        hint = "let the parts of a round begin with different characters: (a+)+ is just a+"
        fact = "a repetition whose rounds can be cut in several ways can take almost for ever"
        raise Slow(fact, hint, start)


def _one(chars: frozenset[str], *, empty: bool) -> _Part:
    step = _Step(chars)
    return _Part(empty, [step], [step], [step])


def _settled(part: _Part) -> _Part:
    """Return a part of which nothing is tried anew once it has matched."""
    for step in part.steps:
        step.following = []
    part.ends = []
    return part


def _follow(steps: list[_Step], following: list[_Step]) -> None:
    for step in steps:
        step.following = [*step.following, *following]


def _chars(steps: list[_Step]) -> frozenset[str]:
    return frozenset[str]().union(*(step.chars for step in steps))


def _alike(steps: list[_Step]) -> bool:
    """Tell whether two of the steps may be the same character."""
    return sum(len(step.chars) for step in steps) > len(_chars(steps))
