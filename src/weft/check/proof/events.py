"""Events that may set a variable, and the moments of a run at which they happen."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from weft.check.subject import Subject
from weft.engine.conditions import UNKNOWN
from weft.findings import Json

#: At `begin`, `open`, `close` and `pass` an event takes place without fail: when a run begins, when
#: a turn opens or closes, and when the word passes on. At the others it may happen or not, and more
#: than once: while the run is prepared, during a turn, and while the user is waited for.
Moment: TypeAlias = Literal["begin", "open", "close", "pass", "prepare", "turn", "wait"]


@dataclass(frozen=True, slots=True)
class When:
    """A moment of a run; None stands for any agent, and any target of a handoff."""

    moment: Moment
    agent: str | None = None
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Setting:
    """One variable is set; UNKNOWN as value means any value, and as origin: whatever it was."""

    variable: str
    value: Json
    origin: Json = UNKNOWN


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why something is not certain, and what to do about it.

    `variable` is the one to look at, if there is one; `reported` means that another rule speaks
    of the cause.
    """

    why: str
    remedy: str
    variable: str | None = None
    reported: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """Settings that happen together.

    `doubt` says why it is not certain that they ever do, or, where they should happen without
    fail, that they always do.
    """

    when: When
    settings: tuple[Setting, ...]
    doubt: Doubt | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """A function of the package, where its code stands, and when it is called.

    `at` is the moment by which it has certainly been called; None if an agent may leave it.
    """

    function: str
    folder: Literal["tools", "hooks"]
    file: str
    agent: str | None
    when: When
    at: When | None = None


def callers(subject: Subject) -> Iterator[Caller]:
    """Yield every tool and hook that a run can call before its end."""
    for tool in subject.spec.tools:
        when = When("turn", tool.agent)
        yield Caller(tool.function, "tools", tool.file, tool.agent, when)
    for tool in subject.spec.lifecycle_tools:
        for when, at in _called(tool.trigger, tool.agent):
            yield Caller(tool.function, "tools", tool.file, tool.agent, when, at)
    for hook in subject.spec.hooks:
        for when, at in _called(hook.hook_type, hook.agent):
            yield Caller(hook.function, "hooks", hook.file, hook.agent, when, at)


def _called(point: str, agent: str | None) -> Iterator[tuple[When, When]]:
    """Place a call; what is called after the run can no longer change its way."""
    if point == "before_chat":
        yield When("prepare"), When("begin")
    elif point != "after_chat":
        yield When("turn", agent), When("close", agent)
