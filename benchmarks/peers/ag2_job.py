"""The job with AG2 classic: a group chat with handoffs and context variables.

Its agents carry the conversation they are in, so every conversation needs agents of its own. They
share one HTTP client, which spares each of them a pool of connections, and print nothing.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import httpx
from autogen import ConversableAgent, LLMConfig, UpdateSystemMessage
from autogen.agentchat import a_initiate_group_chat
from autogen.agentchat.group import (
    AgentTarget,
    ContextVariables,
    OnCondition,
    ReplyResult,
    StringLLMCondition,
    TerminateTarget,
)
from autogen.agentchat.group.patterns import DefaultPattern
from autogen.io import IOStream
from job import (
    MODEL,
    REVIEWER,
    ROUTER,
    SPECIALIST,
    TOOL,
    TOOL_DESCRIPTION,
    TOOL_PARAMETER_DESCRIPTION,
    Outcome,
    question,
    status_of,
)
from measure import Job, Options, main


class Silence:
    """A stream for events that drops them: printing is not what is measured."""

    def print(self, *_: object, **__: object) -> None:
        """Drop a line."""

    def send(self, _: object) -> None:
        """Drop an event."""

    def input(self, prompt: str = "", **_: object) -> str:
        """Refuse to ask, because there is no person."""
        raise RuntimeError(f"the job asked a person: {prompt}")


def lookup_order(
    order: Annotated[str, TOOL_PARAMETER_DESCRIPTION], context_variables: ContextVariables
) -> ReplyResult:
    """Store the status of the order and return it."""
    status = status_of(order)
    context_variables.set("order_status", status)
    context_variables.set("tool_runs", context_variables.get("tool_runs", 0) + 1)
    return ReplyResult(message=status, context_variables=context_variables)


def make_agents(config: LLMConfig) -> list[ConversableAgent]:
    """Make the router, the specialist and the reviewer of one conversation."""

    def agent(
        name: str, prompt: str, update: UpdateSystemMessage | None = None
    ) -> ConversableAgent:
        return ConversableAgent(
            name,
            prompt,
            llm_config=config,
            human_input_mode="NEVER",
            silent=True,
            update_agent_state_before_reply=update,
        )

    reviewer = agent("reviewer", REVIEWER, UpdateSystemMessage(REVIEWER))
    specialist = agent("specialist", SPECIALIST)
    specialist.register_for_llm(name=TOOL, description=TOOL_DESCRIPTION)(lookup_order)
    router = agent("router", ROUTER)
    asks_about_order = StringLLMCondition(prompt="The question is about an order.")
    router.handoffs.add_llm_condition(
        OnCondition(target=AgentTarget(specialist), condition=asks_about_order)
    )
    specialist.handoffs.set_after_work(AgentTarget(reviewer))
    reviewer.handoffs.set_after_work(TerminateTarget())
    return [router, specialist, reviewer]


async def converse(config: LLMConfig, number: int) -> Outcome:
    """Do one job from the question to the verdict."""
    agents = make_agents(config)
    pattern = DefaultPattern(
        initial_agent=agents[0],
        agents=agents,
        context_variables=ContextVariables(),
        group_manager_args={"silent": True},
    )
    result, variables, _ = await a_initiate_group_chat(pattern, question(number), max_rounds=10)
    names = {agent.name for agent in agents}
    return Outcome(
        calls=sum(message.get("name") in names for message in result.chat_history),
        tool_runs=variables.get("tool_runs", 0),
        order_status=variables.get("order_status"),
        verdict=result.chat_history[-1]["content"],
    )


@asynccontextmanager
async def open_job(options: Options) -> AsyncIterator[Job]:
    """Open the one client that all agents share."""
    IOStream.set_global_default(Silence())
    with httpx.Client(timeout=60) as client:
        config = LLMConfig(
            {
                "api_type": "openai",
                "model": MODEL,
                "base_url": options.base_url,
                "api_key": "none",
                "price": [0.0, 0.0],
                "http_client": client,
            }
        )

        async def job(number: int) -> Outcome:
            return await converse(config, number)

        yield job


if __name__ == "__main__":
    main("ag2", open_job)
