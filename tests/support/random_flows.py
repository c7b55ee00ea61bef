"""Random flows: every kind of node and option, with steps that fail by a script of chance."""

from collections.abc import Mapping
from random import Random
from typing import Any

from support.flow_play import flow_spec, variable, work
from weft.spec.flow import (
    Approval,
    Branch,
    Case,
    Confidence,
    Escalation,
    Flow,
    Fork,
    ForkPath,
    Guard,
    Path,
    Repeat,
    Retry,
    Step,
)
from weft.spec.workflow import WorkflowSpec

VARIABLES = {
    "n": variable("int", 0),
    "kind": variable("str", "a"),
    "notes": variable("list[str]", [], "append"),
    "seen": variable("dict[int]", {}, "merge"),
}


class FlowMaker:
    """Makes flows of one seed; names are numbers, so each is there once."""

    def __init__(self, random: Random, *, timed: bool = True) -> None:
        self.random = random
        self.number = 0
        #: Whether steps have deadlines and wait long; where real time passes, neither is the same
        #: twice.
        self.timed = timed

    def name(self, kind: str) -> str:
        self.number += 1
        return f"{kind}{self.number}"

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def step(self, *, plain: bool = False) -> Step:
        name = self.name("s")
        options: dict[str, Any] = {}
        if self.chance(0.3):
            delay = 0.5 if self.timed else 0.002
            options["retry"] = Retry(attempts=self.random.randint(1, 3), delay_seconds=delay)
        if self.timed and self.chance(0.2):
            options["timeout_seconds"] = self.random.choice([0.4, 1.0, 5.0])
        if not plain:
            if self.chance(0.5):
                options["compensate"] = work(f"undo_{name}")
            if self.chance(0.2):
                options["on_failure"] = self.path(plain=True)
            if self.chance(0.2):
                way = self.path() if self.chance(0.7) else None
                options["confidence"] = Confidence(minimum=0.5, path=way)
            if self.chance(0.1):
                options["validate"] = (Guard(condition="n < 5"),)
        return Step(name=name, work=work(name), **options)

    def path(self, *, plain: bool = False) -> Path:
        return Path(steps=self.line(self.random.randint(0, 2), 0, plain=plain))

    def line(self, length: int, depth: int, *, plain: bool = False) -> tuple[Any, ...]:
        return tuple(self.node(depth, plain=plain) for _ in range(length))

    def node(self, depth: int, *, plain: bool = False) -> Any:
        kinds = ["step"] * 4 + (["branch", "fork", "repeat", "approval"] if depth else [])
        match self.random.choice(kinds):
            case "branch":
                cases = tuple(Case(value=name, path=self.path(plain=plain)) for name in ("a", "b"))
                way = self.path(plain=plain) if self.chance(0.8) else None
                return Branch(name=self.name("b"), on="kind", cases=cases, otherwise=way)
            case "fork":
                return self.fork(depth)
            case "repeat":
                body = self.line(self.random.randint(1, 2), depth - 1, plain=plain)
                most = self.random.randint(1, 3)
                return Repeat(name=self.name("r"), until="n > 2", steps=body, max_iterations=most)
            case "approval":
                return self.approval()
            case _:
                return self.step(plain=plain)

    def fork(self, depth: int) -> Fork:
        paths = tuple(
            ForkPath(
                name=f"p{at}",
                steps=self.line(self.random.randint(1, 2), depth - 1),
                # What a path does to recover is undone like everything else.
                on_failure=self.recovery() if self.chance(0.4) else None,
            )
            for at in range(self.random.randint(2, 3))
        )
        return Fork(name=self.name("f"), paths=paths, join=self.step())

    def recovery(self) -> Path:
        steps = [self.step(plain=True) for _ in range(self.random.randint(0, 2))]
        done = (step.model_copy(update={"compensate": work(f"undo_{step.name}")}) for step in steps)
        return Path(steps=tuple(done))

    def approval(self) -> Approval:
        seconds = 5 if self.timed else 600
        chain = (Escalation(approver="role:next", timeout_seconds=seconds),)
        return Approval(
            name=self.name("a"),
            approver="role:boss",
            timeout_seconds=seconds,
            escalate=chain if self.chance(0.4) else (),
            default=self.random.choice([None, "approve", "reject"]),
            on_timeout=self.path() if self.chance(0.4) else None,
            on_rejection=self.path() if self.chance(0.5) else None,
        )

    def spec(self) -> WorkflowSpec:
        flow = Flow(
            steps=self.line(self.random.randint(1, 4), 2),
            finally_=self.step() if self.chance(0.5) else None,
            on_failure=self.path(plain=True) if self.chance(0.5) else None,
            compensate_on_cancel=self.chance(0.5),
        )
        return flow_spec(flow, **VARIABLES)


def outcome_of(random: Random, values: Mapping[str, Any]) -> Any:
    """Return what a step does: sets something, is unsure, or fails."""
    share = random.random()
    if share < 0.2:
        return ValueError("by chance")
    if share < 0.25:
        return {"n": "no number"}
    changes: dict[str, Any] = {"notes": ["x"], "seen": {str(random.randint(0, 3)): 1}}
    if random.random() < 0.3:
        changes["n"] = values["n"] + 1
    if random.random() < 0.3:
        changes["kind"] = random.choice("abc")
    return changes, random.random()
