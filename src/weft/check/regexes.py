"""Regular expressions: whether one can be used at all, and in bounded time."""

import re
import warnings
from dataclasses import dataclass, field
from typing import Final

#: A pattern beyond this is no text to look for, and the time to prepare it grows without use.
MAX_LENGTH: Final = 1000


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a pattern, where, and what to do."""

    fact: str
    hint: str
    offset: int = 0


def regex_fault(pattern: str) -> Fault | None:
    """Say why a pattern must not be used, or None if it may."""
    if len(pattern) > MAX_LENGTH:
        hint = "look for a shorter text, or use several triggers"
        return Fault(f"it is longer than {MAX_LENGTH} characters", hint, MAX_LENGTH)
    try:
        with warnings.catch_warnings():
            # What Python warns of today it will read differently tomorrow.
            warnings.simplefilter("error")
            re.compile(pattern)
    except re.error as error:
        hint = "correct the pattern; write a backslash before a sign that is meant literally"
        return Fault(f"it does not compile: {error.msg}", hint, error.pos or 0)
    except RecursionError:
        return Fault("it is nested too deeply", "write the pattern more simply")
    except (Warning, OverflowError) as error:
        return Fault(f"it cannot be used: {error}", "write the pattern more simply")
    start = _nested_repetition(pattern)
    if start is None:
        return None
    hint = "repeat the inner part or the group, not both: (a+)+ says the same as a+"
    return Fault("a repetition inside a repetition can take almost for ever", hint, start)


_PIECE: Final = re.compile(
    r"""
      (?P<aside>  \(\?\#[^)]*\) | \(\?[aiLmsux]+\) )
    | (?P<open>   \( (?: \?(?: P<\w+> | [=!] | <[=!] | > | \(\w+\) | [aiLmsux]*(?:-[imsx]+)?: ))? )
    | (?P<close>  \) )
    | (?P<either> \| )
    | (?P<edge>   [\^$] | \\[bBAZ] )
    | (?P<atom>   \(\?P=\w+\) | \[\^?\]?(?:\\.|[^\]\\])*\] | \\. | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_TIMES: Final = re.compile(r"(?:([*+?])|\{(?=[\d,])(\d*)(,?)(\d*)\})([?+]?)")

#: Groups that look around and take no characters, and those that never give any back.
_LOOKING: Final = ("(?=", "(?!", "(?<=", "(?<!")
_FIXED: Final = (*_LOOKING, "(?>")


@dataclass
class _Group:
    """A group while it is read. A branch is what stands between two `|`."""

    start: int = 0
    opening: str = ""
    #: In the current branch: parts that take at least one character, and parts without an upper
    #: bound, apart by whether they take at least one.
    needed: int = 0
    growing_needed: bool = False
    growing_optional: bool = False
    branches: list[tuple[bool, bool]] = field(default_factory=list[tuple[bool, bool]])

    def end_branch(self) -> None:
        """Note whether the branch may be empty, and whether it is one growing part alone.

        A branch in which all else may be left out can be cut in many ways when it is repeated.
        """
        grows = (self.growing_needed and self.needed == 1) or (
            self.growing_optional and self.needed == 0
        )
        self.branches.append((self.needed == 0, grows))
        self.needed, self.growing_needed, self.growing_optional = 0, False, False

    def gives_back(self) -> bool:
        """Tell whether the group is one growing part that can be cut anew when a match fails."""
        return not self.opening.startswith(_FIXED) and any(grows for _, grows in self.branches)

    def add(self, *, optional: bool, growing: bool) -> None:
        """Add one part to the current branch."""
        self.needed += not optional
        self.growing_needed |= growing and not optional
        self.growing_optional |= growing and optional


@dataclass(frozen=True, slots=True)
class _Times:
    """How often a part may stand: whether not at all, and whether without bound."""

    optional: bool
    unbounded: bool
    end: int


def _times(pattern: str, at: int) -> _Times:
    found = _TIMES.match(pattern, at)
    if found is None:
        return _Times(optional=False, unbounded=False, end=at)
    sign, least, comma, most, manner = found.groups()
    optional = sign in ("*", "?") or (sign is None and int(least or 0) == 0)
    # With a second plus, what was taken is never given back, so nothing is tried twice.
    unbounded = manner != "+" and (sign in ("*", "+") or (comma == "," and not most))
    return _Times(optional, unbounded, found.end())


def _nested_repetition(pattern: str) -> int | None:
    """Return where a group starts that repeats what already repeats without bound."""
    stack = [_Group()]
    at = 0
    while piece := _PIECE.match(pattern, at):
        at = piece.end()
        match piece.lastgroup:
            case "open":
                stack.append(_Group(piece.start(), piece[0]))
            case "either":
                stack[-1].end_branch()
            case "close" if len(stack) > 1:
                times = _times(pattern, at)
                at = times.end
                group = stack.pop()
                group.end_branch()
                if times.unbounded and group.gives_back():
                    return group.start
                _add_group(stack[-1], group, times)
            case "atom":
                times = _times(pattern, at)
                at = times.end
                stack[-1].add(optional=times.optional, growing=times.unbounded)
            case _:
                continue
    return None


def _add_group(outer: _Group, group: _Group, times: _Times) -> None:
    if group.opening.startswith(_LOOKING):
        return
    empty = any(may_be_empty for may_be_empty, _ in group.branches)
    outer.add(optional=times.optional or empty, growing=times.unbounded or group.gives_back())
