"""Visibility and redaction: who may see which notes of a hospital, and from when on.

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
    """Provides a guideline as context if the question is about a dose."""

    def pre_consume(self, ctx: EvalContext, inputs: EvalInputs):
        if any("dose" in question.text for question in inputs.all_as(Question)):
            guideline = {"type": "Guideline", "payload": {"text": "at most 40 mg a day"}}
            ctx.state["context_snapshot"] = [guideline]


def initial(name: str):
    return f"{name[0]}."


async def answer(_inputs: EvalInputs, ctx: EvalContext):
    shown = await ctx.context()  # only what the agent's provider returned
    for item in shown:
        print(f"    {ctx.agent.name:11}{item['type']:10}{item['payload']}")
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
        .with_context(CompositeProvider(notes, answers))  # in this order, without duplicates
        .with_engines(FunctionEngine(answer))
    )
    (
        board.agent("pharmacist")
        .consumes(Question)
        .publishes(Answer, visibility=PrivateVisibility(agents=("nurse",)))
        # The snapshot of the component; without one, the notes.
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
    clock = ManualClock()  # moves only when told to
    async with hospital(clock) as board:
        for text, visibility in VISIBILITIES.items():
            await board.publish(Note(text=text), visibility=visibility)

        await ask(board, "How is she?")

        print("Why the nurse does not see some of the notes:")
        notes, _ = await board.query_artifacts(FilterConfig(types={"Note"}, order="created_at"))
        for note in notes:
            print(f"    {note.payload['text']:18}{await board.why(note.id, 'nurse') or 'she does'}")

        await clock.advance(3600)
        await ask(board, "An hour later: which dose?")

        questions, _ = await board.query_artifacts(
            FilterConfig(types={"Question"}, limit=1), embed_meta=True
        )
        print("The last question has woken", ", ".join(questions[0].consumed_by))


if __name__ == "__main__":
    asyncio.run(main())
