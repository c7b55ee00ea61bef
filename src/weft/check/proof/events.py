"""Events that may set a variable, and the moments of a run at which they happen."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from weft.check.subject import Subject
from weft.engine.conditions import UNKNOWN
from weft.findings import Json

#: At `begin`, `open`, `close` and `pass` variables are set without fail: when a run begins, when a
#: turn opens or closes, and when the word passes on. At the others an event may happen or not:
#: while the run is prepared, during a turn, and while the user is waited for.
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
    """Settings that happen together; `doubt` says why it is not certain that they ever do."""

    when: When
    settings: tuple[Setting, ...]
    doubt: Doubt | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """A function of the package, where its code stands, and when it is called."""

    function: str
    folder: Literal["tools", "hooks"]
    file: str
    agent: str | None
    when: When


def callers(subject: Subject) -> Iterator[Caller]:
    """Yield every tool and hook that a run can call before its end."""
    for tool in subject.spec.tools:
        when = When("turn", tool.agent)
        yield Caller(tool.function, "tools", tool.file, tool.agent, when)
    for tool in subject.spec.lifecycle_tools:
        when = _called(tool.trigger, tool.agent)
        if when:
            yield Caller(tool.function, "tools", tool.file, tool.agent, when)
    for hook in subject.spec.hooks:
        when = _called(hook.hook_type, hook.agent)
        if when:
            yield Caller(hook.function, "hooks", hook.file, hook.agent, when)


def _called(point: str, agent: str | None) -> When | None:
    """Place a call; what is called after the run can no longer change its way."""
    if point == "after_chat":
        return None
    return When("prepare") if point == "before_chat" else When("turn", agent)
