"""An article: a loop with a critic, parallel checks, and an approval with escalation.

Run it with: python examples/flows/content.py
"""

import asyncio
import logging
from typing import Annotated

from pydantic import BaseModel

from weft import Answer, Host, Scope
from weft.engine.events import TurnStarted
from weft.flow import Append, Merge, StepContext, Workflow, agent, open_flow
from weft.testing import ManualClock, ScriptedModel


class Article(BaseModel):
    topic: str
    text: str = ""
    accepted: bool = False
    remarks: Annotated[list[str], Append] = []
    checks: Annotated[dict[str, str], Merge] = {}
    decision: str = ""
    place: str = ""


class Verdict(BaseModel):
    """The critic's reply. Its fields are written to the fields of the state with the same names."""

    accepted: bool
    remarks: list[str]


def check_length(article: Article):
    return {"checks": {"length": f"{len(article.text.split())} words"}}


def check_links(article: Article):
    raise ConnectionError("no network here")


def skip_links(article: Article, context: StepContext):
    why = context.failure.type if context.failure else "?"
    return {"checks": {"links": f"not checked: {why}"}}


def sum_up(article: Article, context: StepContext):
    ended = [f"{name} {path.status}" for name, path in context.paths.items()]
    return {"checks": {"all": ", ".join(ended)}}


def archive(article: Article):
    return {"place": "archive"}


def publish(article: Article):
    return {"place": "front page"}


HOUR = 3600

FLOW = (
    Workflow.create("Content", Article)
    .agent("Writer", prompt="You write for a newspaper.")
    .agent("Critic", prompt="You judge drafts.", output_type=Verdict)
    .start_with(
        agent("Writer", prompt="Write about {topic}.", output=lambda article: article.text),
        name="draft",
    )
    .repeat_until(
        lambda article: article.accepted,
        "Refine",
        lambda loop: loop.then(agent("Critic", prompt="Judge: {text}"), name="critique").branch(
            lambda article: article.accepted,
            {
                True: lambda path: path,  # nothing to do
                False: lambda path: path.then(
                    agent(
                        "Writer",
                        prompt="Improve it: {remarks}",
                        output=lambda article: article.text,
                    ),
                    # The writer sees its earlier messages.
                    lambda step: step.with_context(
                        lambda context: context.from_history(max_messages=4)
                    ),
                    name="improve",
                ),
            },
        ),
        max_iterations=3,
    )
    .fork(
        lambda path: path.then(check_length),
        lambda path: path.then(check_links).on_failure(lambda way: way.then(skip_links)),
    )
    .join(sum_up)
    .await_approval(
        "editor",
        lambda ask: (
            ask.text("Publish this? {text} {checks}")
            .option("publish")
            .option("drop", rejects=True)
            .timeout(HOUR)
            .escalate_to("chief", timeout=HOUR)
            .on_timeout(lambda path: path.then(archive, name="archive_late").complete())
            .on_rejection(lambda path: path.then(archive).complete())
            .into(lambda article: article.decision)
        ),
        name="ask",
    )
    .finally_(publish)
)

SCRIPT = {
    "Writer": ["Looms are old.", "Looms are older than wheels."],
    "Critic": [
        {"accepted": False, "remarks": ["Older than what?"]},
        {"accepted": True, "remarks": []},
    ],
}

ADA = Scope("paper", "ada")
EDITOR = Scope("paper", "edith", roles=("editor",))
CHIEF = Scope("paper", "carl", roles=("chief",))


async def begin(host: Host) -> str:
    run = await host.start("Content", scope=ADA, values={"topic": "looms"})
    await host.settled(run, scope=ADA)
    return run


async def answer(host: Host, who: Scope, decision: str) -> None:
    for request in await host.requests(scope=who):
        print(f"  {who.user} answers {decision}: {request.payload['text']}")
        await host.deliver(request.run, Answer(request.id, {"decision": decision}), scope=who)


async def show(host: Host, run: str) -> None:
    await host.settled(run, scope=ADA)
    state = await host.state(run, scope=ADA)
    values = state.variables
    events = [event async for event in host.events(run, scope=ADA)]
    print(
        f"  {' '.join(event.data.step for event in events if isinstance(event.data, TurnStarted))}"
    )
    print(f"  {state.outcome}: {values['place']}, {values['decision'] or 'no decision'}")


async def main() -> None:
    logging.getLogger("weft.tools").setLevel(logging.ERROR)  # a check fails here on purpose
    print("The editor publishes:")
    async with open_flow(FLOW, model=ScriptedModel(SCRIPT)) as host:
        run = await begin(host)
        await answer(host, EDITOR, "publish")
        await show(host, run)

    print("The editor does not answer for an hour; the chief is asked, and drops it:")
    clock = ManualClock()  # moves only when told to
    async with open_flow(FLOW, model=ScriptedModel(SCRIPT), clock=clock) as host:
        run = await begin(host)
        await clock.advance(HOUR)
        await answer(host, EDITOR, "publish")  # too late: the editor is no longer asked
        await answer(host, CHIEF, "drop")
        await show(host, run)

    print("There is no answer:")
    async with open_flow(FLOW, model=ScriptedModel(SCRIPT), clock=clock) as host:
        run = await begin(host)
        await clock.advance(2 * HOUR)
        await show(host, run)


if __name__ == "__main__":
    asyncio.run(main())
