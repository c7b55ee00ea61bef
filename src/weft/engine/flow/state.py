"""The state of a flow: its lanes, forks and waits.

A lane is a sequence of steps: the main line, or a path of a fork. A lane runs one step at a time;
a path has its own copy of the variables until its fork joins.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, TypedDict, Unpack

from weft.engine.events.kinds import BranchReason, StepInput
from weft.engine.message import Message
from weft.engine.persistent import Log
from weft.findings import Json

#: How a path of a fork ended.
PathStatus: TypeAlias = Literal["success", "failed", "recovered"]

#: path: the failure path of the step; own: the failed step itself is undone; recovery: the
#: failure path of a path of a fork; undo: completed steps are undone; workflow: its failure path.
FailureStage: TypeAlias = Literal["path", "own", "recovery", "undo", "workflow"]


class StepReply(TypedDict):
    """The reply of a model as the code of a step gets it."""

    text: str
    output: Json
    usage: dict[str, Json]


@dataclass(frozen=True, slots=True)
class StepRun:
    """The attempt of an activation: its lane, its number, and the turn it undoes."""

    lane: str = ""
    attempt: int = 1
    #: The turn whose step it undoes; 0 where it does a step.
    undoes: int = 0
    #: What was assembled for it, and the reply of its model.
    input: StepInput | None = None
    reply: StepReply | None = None
    #: The next node if it is not the next step, and why.
    branch: tuple[str, BranchReason] | None = None
    #: Of an approval: how many approvers have not answered in time.
    escalation: int = 0


@dataclass(frozen=True, slots=True)
class Done:
    """A step that was done and can be undone, and the values right after it."""

    turn: int
    step: str
    values: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Failing:
    """A failure that is being handled."""

    step: str
    turn: int
    reason: str
    failure: Mapping[str, Json]
    stage: FailureStage = "path"
    #: The steps that are still to be undone, in order.
    undo: tuple[Done, ...] = ()
    outcome: Literal["failed", "cancelled"] = "failed"


class LaneChanges(TypedDict, total=False):
    """The fields of a lane that change with every step."""

    at: str
    done: tuple[Done, ...]
    deadline: str
    threads: Mapping[str, Log[Message]]


@dataclass(frozen=True)
class Lane:
    """A sequence of steps: the main line, or a path of a fork."""

    key: str = ""
    #: The current or next node.
    at: str = ""
    #: The fork it is a path of, and which.
    fork: int = 0
    path: str = ""
    #: Of a path: the variables as it has them, and the event that set each that it has set.
    values: Mapping[str, Json] = field(default_factory=dict[str, Json])
    set_by: Mapping[str, int] = field(default_factory=dict[str, int])
    #: The iterations of each loop that contains it.
    loops: Mapping[str, int] = field(default_factory=dict[str, int])
    done: tuple[Done, ...] = ()
    #: The timer of the step under way.
    deadline: str = ""
    failing: Failing | None = None
    #: Of a path: how it ended, and why if it failed.
    result: PathStatus | None = None
    failure: Mapping[str, Json] | None = None
    #: How the paths of the last fork ended, by name.
    joined: Mapping[str, Mapping[str, Json]] = field(default_factory=dict[str, Mapping[str, Json]])
    #: The messages to and from agents in earlier steps, by agent.
    threads: Mapping[str, Log[Message]] = field(default_factory=dict[str, Log[Message]])

    def replace(self, **changes: Unpack[LaneChanges]) -> "Lane":
        """Return a changed copy. `dataclasses.replace` would set every field one by one."""
        twin: Lane = object.__new__(Lane)
        object.__setattr__(twin, "__dict__", self.__dict__ | changes)
        return twin


@dataclass(frozen=True, slots=True)
class ForkRun:
    """The parallel paths of a fork, and the lane in which they began."""

    name: str
    lane: str
    lanes: tuple[str, ...]
    #: The variables when they began.
    base: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Wait:
    """An attempt that is made when its time has come."""

    lane: str
    step: str
    attempt: int
    undoes: int = 0


@dataclass(frozen=True, slots=True)
class FlowState:
    """The lanes, forks and waits of a run."""

    lanes: Mapping[str, Lane] = field(default_factory=lambda: {"": Lane()})
    forks: Mapping[int, ForkRun] = field(default_factory=dict[int, ForkRun])
    #: What waits for a timer, by its id.
    waits: Mapping[str, Wait] = field(default_factory=dict[str, Wait])

    def with_lane(self, lane: Lane) -> "FlowState":
        """Return the state with one lane replaced."""
        return FlowState({**self.lanes, lane.key: lane}, self.forks, self.waits)
