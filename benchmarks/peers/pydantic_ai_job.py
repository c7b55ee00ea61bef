"""The job with PydanticAI: three agents, handed from one to the next by the program.

That is the way its documentation gives for agents that follow one another, and the cheapest.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

from job import (
    HANDOFF_TEXT,
    MODEL,
    REVIEWER,
    ROUTER,
    SPECIALIST,
    TOOL_DESCRIPTION,
    TOOL_PARAMETER_DESCRIPTION,
    Outcome,
    question,
    status_of,
)
from measure import Job, Options, main
from pydantic import Field
from pydantic_ai import Agent, RunContext, RunUsage
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


@dataclass(slots=True)
class Desk:
    """The variables of one conversation; the framework hands them to tools and prompts."""

    order_status: str | None = None
    tool_runs: int = 0


async def lookup_order(
    context: RunContext[Desk], order: Annotated[str, Field(description=TOOL_PARAMETER_DESCRIPTION)]
) -> str:
    """Store the status of the order and return it."""
    context.deps.tool_runs += 1
    context.deps.order_status = status_of(order)
    return context.deps.order_status


def make_agents(model: OpenAIChatModel) -> tuple[Agent[Desk], Agent[Desk], Agent[Desk]]:
    """Make the router, the specialist and the reviewer."""
    router = Agent(model, deps_type=Desk, instructions=ROUTER)
    specialist = Agent(model, deps_type=Desk, instructions=SPECIALIST)
    specialist.tool(description=TOOL_DESCRIPTION)(lookup_order)
    reviewer = Agent(model, deps_type=Desk)

    @reviewer.instructions
    def prompt(context: RunContext[Desk]) -> str:
        return REVIEWER.format(order_status=context.deps.order_status)

    return router, specialist, reviewer


@asynccontextmanager
async def open_job(options: Options) -> AsyncIterator[Job]:
    """Make the agents once, around one provider."""
    provider = OpenAIProvider(base_url=options.base_url, api_key="none")
    router, specialist, reviewer = make_agents(OpenAIChatModel(MODEL, provider=provider))

    async def job(number: int) -> Outcome:
        desk, usage = Desk(), RunUsage()
        result = await router.run(question(number), deps=desk, usage=usage)
        if result.output == HANDOFF_TEXT:
            history = result.all_messages()
            result = await specialist.run(message_history=history, deps=desk, usage=usage)
        history = result.all_messages()
        result = await reviewer.run(message_history=history, deps=desk, usage=usage)
        return Outcome(usage.requests, desk.tool_runs, desk.order_status, result.output)

    async with provider:
        yield job


if __name__ == "__main__":
    main("pydantic_ai", open_job)
