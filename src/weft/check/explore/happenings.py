"""What may happen in a run and set a variable, and at which moments."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from weft.check.bindings import automatic_tools, bound_model
from weft.check.subject import Subject
from weft.engine.conditions import UNKNOWN
from weft.findings import Json

#: At `begin`, `open`, `close` and `pass` all happens without fail: when a run begins, when a turn
#: opens or closes, and when one agent hands off to another. So do the call of an automatic tool
#: (`auto`) and the count of the turns (`count`). At `say` and `hear` one thing happens, once: the
#: agent's words, and those of the user. At the others all may happen or not, and more than once:
#: while the run is prepared, during a turn, and while the user is waited for.
Moment: TypeAlias = Literal[
    "begin", "open", "close", "pass", "auto", "count", "say", "hear", "prepare", "turn", "wait"
]

#: The stages of the call of a tool: it is called, answered, runs, returns.
CALLED: Final = 0
ANSWERED: Final = 1
RUNS: Final = 2
RETURNED: Final = 3


@dataclass(frozen=True, slots=True)
class When:
    """A moment of a run; None stands for any agent, and any target of a handoff."""

    moment: Moment
    agent: str | None = None
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Setting:
    """One variable is set; UNKNOWN as value means any value, and as origin: whatever it was.

    `keeps` means that the variable may as well stay as it is, and `part` names the place of a call
    or an answer that the value is taken from: null is none then. `rank` is the place of a trigger
    among those of its variable: of all that fire at once, the last one counts. Settings with one
    rank exclude each other, and so do all without.
    """

    variable: str
    value: Json
    origin: Json = UNKNOWN
    keeps: bool = False
    part: str | None = None
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Happening:
    """Settings that happen together.

    `why` says why it is not certain that they do, and is empty for what triggers declare. `tick`
    is a count and the step of it at which alone the happening happens. `stage` orders what one call
    of a tool does. `call` names the tool if an agent chooses to call it.
    """

    when: When
    settings: tuple[Setting, ...]
    why: str = ""
    tick: tuple[str, int] | None = None
    stage: int = 0
    call: str = ""


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

    @property
    def call(self) -> str:
        """The function if it is a tool that an agent chooses to call, else nothing."""
        return self.function if self.when.moment == "turn" and self.at is None else ""


def callers(subject: Subject) -> Iterator[Caller]:
    """Yield every tool and hook that a run can call before its end."""
    automatic = set(automatic_calls(subject))
    for tool in subject.spec.tools:
        by_itself = (tool.agent, tool.function) in automatic
        when = When("auto" if by_itself else "turn", tool.agent)
        yield Caller(tool.function, "tools", tool.file, tool.agent, when)
    for tool in subject.spec.lifecycle_tools:
        for when, at in _called(tool.trigger, tool.agent):
            yield Caller(tool.function, "tools", tool.file, tool.agent, when, at)
    for hook in subject.spec.hooks:
        for when, at in _called(hook.hook_type, hook.agent):
            yield Caller(hook.function, "hooks", hook.file, hook.agent, when, at)


def automatic_calls(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield the agents whose every reply calls a tool, with that tool."""
    for name, agent in subject.agents.items():
        tools = automatic_tools(subject, name)
        if agent.auto_tool_mode and tools and bound_model(subject, name):
            yield name, tools[0][1].function


def _called(point: str, agent: str | None) -> Iterator[tuple[When, When]]:
    """Place a call; what is called after the run can no longer change its way."""
    if point == "before_chat":
        yield When("prepare"), When("begin")
    elif point != "after_chat":
        yield When("turn", agent), When("close", agent)
