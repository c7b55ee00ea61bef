"""What wiring is made of: who decides what, who waits for a person, and the ways between agents."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from weft.spec.orchestrator import ParallelGroup

#: What a variable that decides is before anybody has decided.
OPEN: Final = "open"
#: What a decision is called that puts a question to the user.
ASK_USER: Final = "ask_user"
#: The reply by which an agent says that it knows enough of the user.
READY: Final = "READY"
#: What a person answers who is asked for approval, and under which key.
APPROVE: Final = "approve"
REJECT: Final = "reject"
DECISION: Final = "decision"
#: The rounds there are of what can be sent back.
ROUNDS: Final = ("first", "second", "third")


@dataclass(frozen=True, slots=True)
class Option:
    """One thing an agent may decide, who is next then, and what it means."""

    value: str
    target: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Decision:
    """What an agent decides in its structured reply."""

    agent: str
    variable: str
    #: The field of the reply, and the argument of the tool that records it.
    field: str
    options: tuple[Option, ...]
    #: The variable with the tasks that are open, if the agent writes that list too.
    tasks: str | None = None


@dataclass(frozen=True, slots=True)
class Approval:
    """Where the answer of a person is kept, and what is to be changed, for whoever gets it back."""

    variable: str
    comment: str
    #: To whom rejected work goes back, and the variable that says which round it is; None: the
    #: run ends.
    back: str | None
    rounds: str | None
    #: Whether every reply of the agent puts the question; else its model asks when it wants to.
    by_reply: bool


@dataclass(frozen=True, slots=True)
class Rounds:
    """A variable that becomes true when an agent has had so many turns."""

    variable: str
    agent: str
    count: int


@dataclass(frozen=True, slots=True)
class Test:
    """A variable has one of these values; without values: it is true."""

    variable: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Way:
    """Who may be next after an agent; without tests: whenever nothing else applies."""

    source: str
    target: str
    tests: tuple[Test, ...] = ()
    #: Why the run ends, if it does.
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Fragment:
    """A module by itself: where it begins, who goes on to one place, and who decides."""

    entry: str
    #: By agent: who is next.
    onward: Mapping[str, str] = field(default_factory=dict[str, str])
    #: By agent that decides: what it may decide.
    options: Mapping[str, tuple[Option, ...]] = field(default_factory=dict[str, tuple[Option, ...]])
    #: By agent: to whom its work goes back if a person rejects it.
    back: Mapping[str, str] = field(default_factory=dict[str, str])
    #: What is decided, as a field of replies.
    field: str = "next"
    #: Whether those who decide write a list of tasks.
    tasks: bool = False
    #: Who ends a loop by the number of its turns.
    counted: str | None = None
    group: ParallelGroup | None = None


@dataclass(frozen=True, slots=True)
class Wiring:
    """How the agents of a workflow hang together."""

    #: An agent, or a group.
    entry: str
    ways: tuple[Way, ...]
    #: By agent.
    decisions: Mapping[str, Decision]
    #: By agent that talks with the user: the variable that says it is done.
    ready: Mapping[str, str]
    #: By agent whose work a person approves.
    approvals: Mapping[str, Approval]
    rounds: tuple[Rounds, ...]
    groups: tuple[ParallelGroup, ...]
    #: By name of a decision's variable that the plan has: its purpose.
    planned: Mapping[str, str]
    #: What was wired otherwise than the plan says, and why.
    notes: tuple[str, ...] = ()

    @property
    def members(self) -> frozenset[str]:
        """The agents that work side by side; nobody asks for their rules."""
        return frozenset(it for group in self.groups for it in group.members)
