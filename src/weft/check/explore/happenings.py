"""What may happen in a run and set a variable, and at which moments."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from weft.check.bindings import automatic_tools, bound_model
from weft.check.subject import Subject
from weft.engine.conditions import UNKNOWN
from weft.findings import Json

#: At `pass` and `close` all happens without fail: when one agent hands off to another, and when a
#: turn closes. So does the call of an automatic tool (`auto`). At `say` and `hear` one thing
#: happens, once: the agent's words, and those of the user. At the others all may happen or not, and
#: more than once: during a turn, or at `any` time.
Moment: TypeAlias = Literal["pass", "close", "auto", "say", "hear", "turn", "any"]

#: The stages of the call of a tool.
CALLED, ANSWERED, RUNS, RETURNED = range(4)
#: The rank of what code sets: after all triggers, and it may as well set nothing.
LAST: Final = 1_000_000


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
    rank exclude each other.
    """

    variable: str
    value: Json
    origin: Json = UNKNOWN
    keeps: bool = False
    part: str | None = None
    rank: int = LAST


@dataclass(frozen=True, slots=True)
class Happening:
    """Settings that happen together.

    `why` says why it is not certain that they do, and is empty for what triggers declare. `stage`
    orders what one call of a tool does, and `call` names the tool if an agent chooses to call it.
    """

    when: When
    settings: tuple[Setting, ...] = ()
    why: str = ""
    stage: int = 0
    call: str = ""


@dataclass(frozen=True, slots=True)
class Caller:
    """A function of the package, where its code stands, and when it is called."""

    function: str
    folder: str
    file: str
    agent: str | None
    when: When

    @property
    def call(self) -> str:
        """The function if it is a tool that an agent chooses to call, else nothing."""
        return self.function if self.when.moment == "turn" else ""


def callers(subject: Subject) -> Iterator[Caller]:
    """Yield every tool and hook that a run can call."""
    automatic = set(automatic_calls(subject))
    for tool in subject.spec.tools:
        by_itself = (tool.agent, tool.function) in automatic
        when = When("auto" if by_itself else "turn", tool.agent)
        yield Caller(tool.function, "tools", tool.file, tool.agent, when)
    for it in subject.spec.lifecycle_tools:
        yield Caller(it.function, "tools", it.file, it.agent, When("any"))
    for it in subject.spec.hooks:
        yield Caller(it.function, "hooks", it.file, it.agent, When("any"))


def automatic_calls(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield the agents whose every reply calls a tool, with that tool."""
    for name, agent in subject.agents.items():
        tools = automatic_tools(subject, name)
        if agent.auto_tool_mode and tools and bound_model(subject, name):
            yield name, tools[0][1].function
