"""Events about what goes on side by side, where flows go on, and what is due; see `events`."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

#: case, otherwise: a branch; again, done, limit: a loop; unsure: a result below the confidence;
#: failure, recovery: a failure path; rejected, late: an approval.
BranchReason: TypeAlias = Literal[
    "case", "otherwise", "again", "done", "limit", "unsure", "failure", "recovery", "rejected",
    "late",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Forked:
    """The members of a group take their turns side by side from here on."""

    name: str
    members: tuple[str, ...]
    #: Of a flow: the line of steps in which its paths begin.
    lane: str = ""


@dataclass(frozen=True, slots=True)
class Joined:
    """A group is done: what these of its turns said and set counts from here on."""

    name: str
    fork: int
    turns: tuple[int, ...]
    #: What the group says as one, in place of what its members said.
    text: str | None = None
    #: Of a flow: how each path ended.
    results: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Branched:
    """A flow goes on elsewhere than with the next step, and why."""

    source: str
    target: str
    why: BranchReason
    #: The line of steps; empty for the main one.
    lane: str = ""


@dataclass(frozen=True, slots=True)
class TimerSet:
    """Something is due at a time."""

    id: str
    at: int
    why: Literal["deadline", "trigger", "board", "flow"]


@dataclass(frozen=True, slots=True)
class TimerFired:
    """The time of a timer has come."""

    id: str
