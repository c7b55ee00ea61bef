"""The job with the OpenAI Agents SDK: three agents that hand off, in one run, without tracing."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    RunConfig,
    RunContextWrapper,
    Runner,
    function_tool,
)
from job import (
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
from openai import AsyncOpenAI


@dataclass(slots=True)
class Desk:
    """The variables of one conversation; the SDK hands them to tools and prompts."""

    order_status: str | None = None
    tool_runs: int = 0


@function_tool(description_override=TOOL_DESCRIPTION)
async def lookup_order(
    context: RunContextWrapper[Desk], order: Annotated[str, TOOL_PARAMETER_DESCRIPTION]
) -> str:
    """Store the status of the order and return it."""
    context.context.tool_runs += 1
    context.context.order_status = status_of(order)
    return context.context.order_status


def reviewer_prompt(context: RunContextWrapper[Desk], _: Agent[Desk]) -> str:
    """Show the reviewer the variable."""
    return REVIEWER.format(order_status=context.context.order_status)


def make_router(model: OpenAIChatCompletionsModel) -> Agent[Desk]:
    """Make the three agents; the first knows the way to the others."""
    reviewer = Agent[Desk](name="reviewer", instructions=reviewer_prompt, model=model)
    specialist = Agent[Desk](
        name="specialist",
        instructions=SPECIALIST,
        model=model,
        tools=[lookup_order],
        handoffs=[reviewer],
    )
    return Agent[Desk](name="router", instructions=ROUTER, model=model, handoffs=[specialist])


@asynccontextmanager
async def open_job(options: Options) -> AsyncIterator[Job]:
    """Make the agents once, around one client."""
    async with AsyncOpenAI(base_url=options.base_url, api_key="none") as client:
        router = make_router(OpenAIChatCompletionsModel(MODEL, client))
        settings = RunConfig(tracing_disabled=True)

        async def job(number: int) -> Outcome:
            desk = Desk()
            result = await Runner.run(router, question(number), context=desk, run_config=settings)
            return Outcome(
                calls=result.context_wrapper.usage.requests,
                tool_runs=desk.tool_runs,
                order_status=desk.order_status,
                verdict=str(result.final_output),
            )

        yield job


if __name__ == "__main__":
    main("openai_agents", open_job)
