"""The job with LangGraph: a state graph of three model nodes and one tool node.

In memory no checkpointer is used at all, which is the cheapest that LangGraph offers. With
`--journal sqlite` its own SQLite checkpointer writes before the next step (`durability="sync"`).
"""

import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

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
from langchain_core.messages import AIMessage, AnyMessage, SystemMessage, ToolMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, ToolRuntime
from langgraph.types import Command
from measure import Job, Options, main
from typing_extensions import TypedDict


class State(TypedDict):
    """What the nodes share: the conversation and the one variable."""

    messages: Annotated[list[AnyMessage], add_messages]
    order_status: str


def make_tool(runs: Counter[str]) -> BaseTool:
    """Make the tool that looks an order up and stores its status in the state."""

    @tool(description=TOOL_DESCRIPTION)
    async def lookup_order(
        order: Annotated[str, TOOL_PARAMETER_DESCRIPTION], runtime: ToolRuntime
    ) -> Command[Any]:
        runs[order] += 1
        status = status_of(order)
        result = ToolMessage(status, tool_call_id=runtime.tool_call_id)
        return Command(update={"messages": [result], "order_status": status})

    return lookup_order


def after_router(state: State) -> str:
    """Go to the specialist when the router said so."""
    return "specialist" if state["messages"][-1].content == HANDOFF_TEXT else END


def after_specialist(state: State) -> str:
    """Do the tools the specialist asked for, or go on to the reviewer."""
    last = state["messages"][-1]
    return "tools" if isinstance(last, AIMessage) and last.tool_calls else "reviewer"


def make_graph(base_url: str, lookup_order: BaseTool) -> StateGraph[State]:
    """Put the three agents and the tool together."""
    model = ChatOpenAI(model=MODEL, base_url=base_url, api_key="none")
    with_tool = model.bind_tools([lookup_order])

    async def say(runnable: Runnable[Any, Any], prompt: str, state: State) -> dict[str, Any]:
        return {"messages": [await runnable.ainvoke([SystemMessage(prompt), *state["messages"]])]}

    async def router(state: State) -> dict[str, Any]:
        return await say(model, ROUTER, state)

    async def specialist(state: State) -> dict[str, Any]:
        return await say(with_tool, SPECIALIST, state)

    async def reviewer(state: State) -> dict[str, Any]:
        return await say(model, REVIEWER.format(order_status=state["order_status"]), state)

    graph = StateGraph(State)
    graph.add_node("router", router)
    graph.add_node("specialist", specialist)
    graph.add_node("tools", ToolNode([lookup_order]))
    graph.add_node("reviewer", reviewer)
    graph.add_edge(START, "router")
    graph.add_conditional_edges("router", after_router, ["specialist", END])
    graph.add_conditional_edges("specialist", after_specialist, ["tools", "reviewer"])
    graph.add_edge("tools", "specialist")
    graph.add_edge("reviewer", END)
    return graph


@asynccontextmanager
async def open_job(options: Options) -> AsyncIterator[Job]:
    """Compile the graph once and, where asked for, open its checkpoints."""
    runs: Counter[str] = Counter()
    graph = make_graph(options.base_url, make_tool(runs))
    async with AsyncExitStack() as stack:
        saver, durability = None, None
        if options.journal == "sqlite":
            path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "checkpoints.db"
            saver = await stack.enter_async_context(AsyncSqliteSaver.from_conn_string(str(path)))
            durability = "sync"
        compiled = graph.compile(checkpointer=saver)

        async def job(number: int) -> Outcome:
            start = {"messages": [("user", question(number))], "order_status": ""}
            config = {"configurable": {"thread_id": str(number)}}
            end = await compiled.ainvoke(start, config, durability=durability)
            messages = end["messages"]
            status = end["order_status"]
            return Outcome(
                calls=sum(isinstance(message, AIMessage) for message in messages),
                tool_runs=runs.pop(status.removeprefix(status_of("")), 0),
                order_status=status,
                verdict=messages[-1].content,
            )

        yield job


if __name__ == "__main__":
    main("langgraph", open_job, journals=("memory", "sqlite"))
