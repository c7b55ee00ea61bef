"""A newsroom without a coordinator: the artifacts on the board decide who works.

One tip becomes three leads, the checked ones become stories, two stories become a page, and a page
with an advert is printed.

Run it with: python examples/board/newsroom.py
"""

import asyncio

from pydantic import BaseModel

from weft.board import Board, EvalInputs, FilterConfig, FunctionEngine, Output, artifact


@artifact
class Tip(BaseModel):
    place: str
    words: int


@artifact
class Advert(BaseModel):
    text: str


class Lead(BaseModel):
    about: str
    strength: int


class Story(BaseModel):
    title: str


class Page(BaseModel):
    titles: list[str]


class Issue(BaseModel):
    front: str


def research(inputs: EvalInputs):
    """Return three leads, each with its own tag."""
    for tip in inputs.all_as(Tip):
        leads = [Lead(about=f"{tip.place}, part {part}", strength=part) for part in (1, 2, 3)]
        return [Output(lead, tags=["rumour" if lead.strength < 2 else "checked"]) for lead in leads]
    return None


def write(inputs: EvalInputs):
    return [Story(title=f"News of {lead.about}") for lead in inputs.all_as(Lead)]


def lay_out(inputs: EvalInputs):
    return Page(titles=[story.title for story in inputs.all_as(Story)])


def print_issue(inputs: EvalInputs):
    page, advert = inputs.first_as(Page), inputs.first_as(Advert)
    return Issue(front=" / ".join([*(page.titles if page else ()), advert.text if advert else ""]))


def read(_inputs: EvalInputs):
    """Publish nothing."""


def newsroom() -> Board:
    # One activation at a time, so that priorities decide the order.
    board = Board(name="newsroom", max_concurrency=1)
    (
        board.agent("researcher")
        .consumes(Tip, where="words >= 10")  # a condition on the payload
        .publishes(Lead, fan_out=3)  # at most three per activation
        .with_engines(FunctionEngine(research))
    )
    (
        board.agent("writer")
        .consumes(Lead, tags=["checked"])  # needs one of these tags
        .publishes(Story)
        .with_engines(FunctionEngine(write))
    )
    (
        board.agent("lawyer")
        .consumes(Lead, priority=10)  # before the writer, whichever artifact came first
        .with_engines(FunctionEngine(read))
    )
    (
        board.agent("editor")
        .consumes(Story, Story)  # two of them
        .publishes(Page)
        .with_engines(FunctionEngine(lay_out))
    )
    (
        board.agent("printer")
        .consumes(Page, Advert)  # one of each
        .publishes(Issue)
        .with_engines(FunctionEngine(print_issue))
    )
    (
        board.agent("archive")
        .consumes(Story)  # either of them
        .consumes(Page)
        .with_engines(FunctionEngine(read))
    )
    return board


async def main():
    async with newsroom() as board:
        async with board.traced_run() as trace:  # everything published here is one correlation
            await board.publish(Advert(text="Buy looms!"))
            await board.publish(Tip(place="the mill", words=3))  # too short for the researcher
            await board.publish(Tip(place="the harbour", words=40))
            await board.run_until_idle()

        print("On the board:")
        found, total = await board.query_artifacts(FilterConfig(order="created_at"))
        for envelope in found:
            tags = ",".join(envelope.tags)
            print(f"  {envelope.type:8}{envelope.produced_by:12}{tags:9}{envelope.payload}")
        print(f"  {total} artifacts")

        print("Who worked, in this order:")
        print(" ", ", ".join(span.name for span in await trace.spans() if span.kind == "turn"))


if __name__ == "__main__":
    asyncio.run(main())
