"""Two turns side by side: what the second agent saw that the first did not, line by line."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import unified_diff
from typing import Final, Literal

from weft.context.segment import LeftOut, Segment
from weft.inspect.turn import Prompt, TurnInspection

#: Stands for all that was sent where hooks have changed it.
_EDITED: Final = ("sent", "after hooks")


@dataclass(frozen=True, slots=True)
class SliceChange:
    """A part of the prompt that differs, with the lines that do."""

    kind: str
    origin: str
    change: Literal["added", "removed", "changed"]
    diff: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ValueChange:
    """A variable that had another value when the turn began; None if there was none."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class TurnComparison:
    """What changed from one turn to another."""

    before: str
    after: str
    slices: tuple[SliceChange, ...]
    values: tuple[ValueChange, ...]
    #: Left out of the second and not of the first, and the other way round.
    newly_left_out: tuple[LeftOut, ...]
    no_longer_left_out: tuple[LeftOut, ...]


def compare_turns(
    before: TurnInspection, after: TurnInspection, *, call: int = 1
) -> TurnComparison:
    """Say what differs in what two turns began with; `call` takes a later call of both."""
    old, new = _prompt(before, call), _prompt(after, call)
    old_left, new_left = _left_out(old), _left_out(new)
    return TurnComparison(
        before=_name(before),
        after=_name(after),
        slices=_slices(_texts(old), _texts(new), _name(before), _name(after)),
        values=_values(before, after),
        newly_left_out=tuple(it for it in new_left if it not in old_left),
        no_longer_left_out=tuple(it for it in old_left if it not in new_left),
    )


def _prompt(turn: TurnInspection, call: int) -> Prompt | None:
    return next((it for it in turn.prompts if it.call == call), None)


def _left_out(prompt: Prompt | None) -> tuple[LeftOut, ...]:
    return prompt.left_out if prompt else ()


def _name(turn: TurnInspection) -> str:
    return f"{turn.run}@{turn.record.number}"


def _texts(prompt: Prompt | None) -> dict[tuple[str, str], list[str]]:
    """Return the lines of a prompt by where they are from; a conversation is one text."""
    texts: dict[tuple[str, str], list[str]] = {}
    for part in prompt.slices if prompt else ():
        texts.setdefault(_place(part), []).extend(_lines(part))
    for message in prompt.messages if prompt and prompt.edited else ():
        lines = (f"{message['role']}: {it}" for it in (message["content"] or "").splitlines())
        texts.setdefault(_EDITED, []).extend(lines)
    return texts


def _place(part: Segment) -> tuple[str, str]:
    return (part.kind, "") if _is_spoken(part) else (part.kind, part.origin)


def _lines(part: Segment) -> Iterable[str]:
    lines = part.text.splitlines()
    return (f"{part.role}: {line}" for line in lines) if _is_spoken(part) else lines


def _is_spoken(part: Segment) -> bool:
    return part.kind in ("history", "turn")


def _slices(
    old: dict[tuple[str, str], list[str]],
    new: dict[tuple[str, str], list[str]],
    before: str,
    after: str,
) -> tuple[SliceChange, ...]:
    found: list[SliceChange] = []
    for place in dict.fromkeys((*old, *new)):
        mine, other = old.get(place), new.get(place)
        if mine == other:
            continue
        change = "added" if mine is None else "removed" if other is None else "changed"
        diff = unified_diff(mine or [], other or [], before, after, lineterm="")
        found.append(SliceChange(*place, change, tuple(diff)))
    return tuple(found)


def _values(before: TurnInspection, after: TurnInspection) -> tuple[ValueChange, ...]:
    names = dict.fromkeys((*before.values, *after.values))
    pairs = ((name, before.values.get(name), after.values.get(name)) for name in names)
    return tuple(ValueChange(name, old, new) for name, old, new in pairs if old != new)
