"""Tenants wait in turn: one with many calls does not keep another waiting."""

import asyncio
import threading

import pytest

from weft.adapters.fair_queue import FairQueue, FairSlots
from weft.adapters.models.limits import Limited
from weft.adapters.python_tools.threads import Threads
from weft.ports.model import ModelReply, ModelRequest


def test_tenants_are_served_in_turn_and_each_in_order():
    queue = FairQueue[str]()
    for app, item in (("a", "a1"), ("a", "a2"), ("a", "a3"), ("b", "b1"), ("c", "c1"), ("b", "b2")):
        queue.append(app, item)
    assert len(queue) == 6
    assert [queue.popleft() for _ in range(6)] == ["a1", "b1", "c1", "a2", "b2", "a3"]
    assert len(queue) == 0


def test_cancelled_call_takes_no_slot():
    async def scenario():
        slots = FairSlots(1)
        await slots.acquire("a")
        first = asyncio.create_task(slots.acquire("a"))
        second = asyncio.create_task(slots.acquire("b"))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        slots.release()
        await asyncio.wait_for(second, 1)
        slots.release()
        await asyncio.wait_for(slots.acquire("a"), 1)

    asyncio.run(scenario())


def test_slot_that_came_to_a_cancelled_call_is_passed_on():
    async def scenario():
        slots = FairSlots(1)
        await slots.acquire("a")
        waiting = asyncio.create_task(slots.acquire("a"))
        await asyncio.sleep(0)
        slots.release()  # The slot is given, and the call is cancelled before it wakes up.
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.wait_for(slots.acquire("b"), 1)

    asyncio.run(scenario())


def request(app: str) -> ModelRequest:
    return ModelRequest("m", "run", "agent", 1, 1, "key", (), app=app)


class CountingModel:
    """Replies one call after the other, and notes the tenants in the order of their calls."""

    def __init__(self) -> None:
        self.order: list[str] = []

    async def reply(self, request, on_text=None):
        self.order.append(request.app)
        await asyncio.sleep(0)
        return ModelReply("")


def test_tenant_with_few_calls_waits_for_few_calls_of_another():
    async def scenario() -> list[str]:
        model = CountingModel()
        limited = Limited(model, at_once=4)
        many = [asyncio.create_task(limited.reply(request("greedy"))) for _ in range(1000)]
        await asyncio.sleep(0)
        few = [asyncio.create_task(limited.reply(request("modest"))) for _ in range(10)]
        await asyncio.gather(*many, *few)
        return model.order

    order = asyncio.run(scenario())
    assert order.count("modest") == 10
    last = len(order) - order[::-1].index("modest")
    assert last <= 4 + 2 * 10 + 4, f"the last of ten calls was number {last} of {len(order)}"


def test_tenant_with_one_blocking_tool_waits_for_one_of_another():
    order: list[str] = []
    go_on = threading.Event()

    def work(app: str) -> None:
        go_on.wait(10)
        order.append(app)

    async def scenario() -> None:
        threads = Threads(1, 0)
        jobs = [threads.start(lambda: work("greedy"), "greedy") for _ in range(20)]
        jobs.append(threads.start(lambda: work("modest"), "modest"))
        go_on.set()
        await asyncio.gather(*(job.result for job in jobs))
        threads.close()

    asyncio.run(scenario())
    assert order.index("modest") <= 2
