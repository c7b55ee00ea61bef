"""A hospital: who may see what, from when on, and what agents are shown of it.

Run it with: python examples/board/confidential.py
"""

import asyncio

from pydantic import BaseModel

from weft.board import (
    AfterVisibility,
    Board,
    Component,
    CompositeProvider,
    EvalContext,
    EvalInputs,
    FilterConfig,
    FilteredContextProvider,
    FunctionEngine,
    LabelledVisibility,
    PrivateVisibility,
    RedactingProvider,
    StateDelegatingProvider,
    TenantVisibility,
    artifact,
)
from weft.testing import ManualClock


@artifact
class Note(BaseModel):
    text: str
    patient: str = "Ada"
    diagnosis: str = "arthritis"


@artifact
class Question(BaseModel):
    text: str


class Answer(BaseModel):
    text: str


class Guidelines(Component):
    """Prepares what the agent is shown, where there is something to prepare."""

    def pre_consume(self, ctx: EvalContext, inputs: EvalInputs):
        if any("dose" in it.text for it in inputs.all_as(Question)):
            guideline = {"type": "Guideline", "payload": {"text": "at most 40 mg a day"}}
            ctx.state["context_snapshot"] = [guideline]


def initial(name: str):
    return f"{name[0]}."


async def answer(_inputs: EvalInputs, ctx: EvalContext):
    shown = await ctx.context()  # what the agent's provider gave, and nothing else
    for it in shown:
        print(f"    {ctx.agent.name:11}{it['type']:10}{it['payload']}")
    return Answer(text=f"{ctx.agent.name} knows of {len(shown)}")


def hospital(clock: ManualClock) -> Board:
    board = Board(name="hospital", clock=clock, max_concurrency=1)
    notes = FilteredContextProvider(FilterConfig(types={"Note"}, order="created_at"))
    answers = FilteredContextProvider(FilterConfig(types={"Answer"}), limit=1)
    (
        board.agent("nurse")
        .labels("ward-3")
        .consumes(Question)
        .publishes(Answer)
        .with_context(RedactingProvider(notes, drop={"diagnosis"}, transform={"patient": initial}))
        .with_engines(FunctionEngine(answer))
    )
    (
        board.agent("surgeon")
        .labels("ward-3", "theatre")
        .consumes(Question)
        .publishes(Answer)
        .with_context(CompositeProvider(notes, answers))  # one after the other, nothing twice
        .with_engines(FunctionEngine(answer))
    )
    (
        board.agent("pharmacist")
        .consumes(Question)
        .publishes(Answer, visibility=PrivateVisibility(agents=("nurse",)))
        # What the component has prepared; where it has prepared nothing, the notes.
        .with_context(StateDelegatingProvider(), fallback=notes)
        .with_utilities(Guidelines())
        .with_engines(FunctionEngine(answer))
    )
    return board


VISIBILITIES = {
    "Arrived.": None,  # public
    "Is afraid.": PrivateVisibility(agents=("surgeon",)),
    "Left knee.": LabelledVisibility(labels=("ward-3", "theatre")),
    "Blood test: fine.": AfterVisibility(seconds=3600),
    "Moved here.": TenantVisibility(tenant="another-hospital"),
}


async def ask(board: Board, text: str):
    print(f"{text} This is what they are shown:")
    await board.publish(Question(text=text))
    await board.run_until_idle()


async def main():
    clock = ManualClock()  # a clock that only we move
    async with hospital(clock) as board:
        for text, visibility in VISIBILITIES.items():
            await board.publish(Note(text=text), visibility=visibility)

        await ask(board, "How is she?")

        print("Why the nurse does not see some of the notes:")
        notes, _ = await board.query_artifacts(FilterConfig(types={"Note"}, order="created_at"))
        for it in notes:
            print(f"    {it.payload['text']:18}{await board.why(it.id, 'nurse') or 'she does'}")

        await clock.advance(3600)
        await ask(board, "An hour later: which dose?")

        questions, _ = await board.query_artifacts(
            FilterConfig(types={"Question"}, limit=1), embed_meta=True
        )
        print("The last question has woken", ", ".join(questions[0].consumed_by))


if __name__ == "__main__":
    asyncio.run(main())
