"""Flows that must type-check: the state is known through the whole chain."""

from datetime import timedelta
from enum import Enum
from typing import Annotated, Any, Literal, assert_type

from pydantic import BaseModel

import weft
from weft.flow import (
    Append,
    FlowResult,
    Path,
    StepOptions,
    Workflow,
    agent,
    is_in,
    not_,
    run_flow,
)


class Document(BaseModel):
    summary: str = ""
    score: int = 0


class Mood(Enum):
    GOOD = "good"
    BAD = "bad"


class Draft(BaseModel):
    topic: str = ""
    kind: Literal["bill", "offer"] = "bill"
    mood: Mood = Mood.GOOD
    document: Document = Document()
    notes: Annotated[list[str], Append] = []
    decision: str = ""


def write(state: Draft) -> dict[str, Any]:
    return {"topic": state.topic}


async def check(state: Draft, context: Any) -> Draft | None:
    return state


def any_state(state: BaseModel) -> None:
    """A step for more states than this one."""


class Publish:
    def run(self, state: Draft) -> None: ...


class Writer:
    def system_prompt(self) -> str:
        return "You write."

    def user_prompt(self, state: Draft) -> str:
        return state.topic


class Counter:
    def __init__(self, by: int) -> None:
        self.by = by

    def __call__(self, state: Draft) -> dict[str, int]:
        return {"score": self.by}


def careful(options: StepOptions[Draft]) -> object:
    return options.with_retry(3, delay=timedelta(seconds=1)).with_timeout(20)


def aside(path: Path[Draft]) -> object:
    return path.then(write, name="again").complete()


flow = Workflow.create("Review", Draft, description="Reviews drafts.")
assert_type(flow, Workflow[Draft])
flow = flow.start_with(write, careful).then(check).then(any_state)
assert_type(flow, Workflow[Draft])
flow = (
    flow.then(Publish)
    .then(Publish())
    .then(Writer, lambda o: o.with_context(lambda c: c.from_state(lambda s: s.document.summary)))
    .then(Writer())
    .then(Counter(3))
    .then(agent("Editor", prompt="Shorten {topic}.", output=lambda s: s.decision))
    .then(lambda state: {"topic": state.topic.upper()}, name="shout")
    .branch(lambda s: s.kind, {"bill": lambda p: p.then(write, name="w2"), "offer": aside})
    .branch(lambda s: s.mood, {Mood.GOOD: lambda p: p}, otherwise=lambda p: p.then(check))
    .branch(
        lambda s: (s.document.score > 3) & not_(is_in(s.kind, ["bill"])),
        {True: lambda p: p, False: lambda p: p.then(check).complete()},
    )
    .fork(
        lambda p: p.then(write, name="left").on_failure(lambda q: q.then(check, name="mend")),
        lambda p: p.then(write, name="right"),
        name="both",
    )
    .join(check)
    .repeat_until(lambda s: s.document.score > 3, "improve", lambda p: p.then(write, name="w3"))
    .await_approval("manager", lambda a: a.text("Go?").into(lambda s: s.decision))
    .on_failure(lambda p: p.then(write, name="tell"))
    .finally_(Publish, name="end")
)
flow.then(
    write,
    lambda o: (
        o.with_context(
            lambda c: c.from_retrieval(
                "Library",
                lambda r: r.query(lambda s: s.topic).top_k(5).filter("kind", lambda s: s.kind),
            )
        )
        .require_confidence(0.7)
        .on_low_confidence(lambda p: p.then(check, name="look").rejoin_main_flow())
        .compensate(check)
        .validate_state(lambda s: s.topic != "", "a topic is needed")
    ),
)
assert_type(flow, Workflow[Draft])
assert_type(weft.run(flow, Draft()), FlowResult[Draft])
assert_type(weft.run(flow, {"topic": "bees"}).output, Draft)
assert_type(weft.run(flow.build(), Draft()), FlowResult[Any])


async def run() -> None:
    assert_type(await run_flow(flow, Draft()), FlowResult[Draft])
    assert_type((await run_flow(flow, {"topic": "bees"})).output, Draft)
