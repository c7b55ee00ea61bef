"""A worker of the chaos test: it pays in runs that a gateway has started, until it is killed.

    python chaos_worker.py STORE LOG

Every model call, payment and accepted heartbeat is a line in LOG: what, process, time in ms, run,
and the key. `begin` is when a payment begins, and `pay` when the money is gone.
"""

import asyncio
import os
import sys
import time
from pathlib import Path

from weft.adapters.sql.postgres.store import PostgresStore
from weft.errors import StoreError
from weft.ports.model import ModelRequest
from weft.ports.store import Heartbeat, RunKey
from weft.spec.workflow import WorkflowSpec
from weft.testing.hosts import host_for
from weft.testing.models import FunctionModel, Line, call

#: The payments of one run.
PAYMENTS = 3
#: Names the file that payments are noted in.
LOG = "WEFT_CHAOS_LOG"

CODE = {
    "tools/work.py": b'''
import asyncio
import os
import time


async def pay(amount: int, context_variables) -> str:
    """Pay, which takes a moment before and after the money is gone."""
    key = context_variables.key
    note("begin", key)
    await asyncio.sleep(0.15)
    note("pay", key)
    await asyncio.sleep(0.15)
    return key


def note(what, key):
    with open(os.environ["WEFT_CHAOS_LOG"], "a") as file:
        run = key.partition("/")[2].rpartition(":")[0]
        file.write(f"{what} {os.getpid()} {time.time_ns() // 1_000_000} {run} {key}\\n")
'''
}

SPEC = WorkflowSpec.model_validate(
    {
        "orchestrator": {"workflow_name": "Paying", "initial_agent": "Clerk"},
        "agents": [{"agent_name": "Clerk"}],
        "handoffs": [{"source_agent": "Clerk", "target_agent": "terminate", "reason": "paid"}],
        "tools": [
            {
                "tool_type": "Agent_Tool",
                "agent": "Clerk",
                "file": "work.py",
                "function": "pay",
                "description": "Pay.",
            }
        ],
    }
)


class NotingStore(PostgresStore):
    """Notes the heartbeats that were accepted, and the begin of each further life of its owner."""

    async def beat(self, owner: str) -> Heartbeat:
        beat = await super().beat(owner)
        if beat.alive:
            note("beat", at=beat.now)
        return beat

    async def rename(self, owner: str, new: str) -> list[RunKey]:
        kept = await super().rename(owner, new)
        note("beat")
        return kept


def note(what: str, run: str = "-", key: str = "-", *, at: int = 0) -> None:
    """Write a line; one write of a short line is never mixed with another."""
    with Path(os.environ[LOG]).open("a") as file:
        file.write(f"{what} {os.getpid()} {at or time.time_ns() // 1_000_000} {run} {key}\n")


async def open_store(address: str) -> PostgresStore:
    """Open the store; the server may just be away."""
    while True:
        try:
            return await NotingStore.open(address)
        except StoreError as error:
            if not error.retryable:
                raise
            await asyncio.sleep(0.1)


async def say(request: ModelRequest) -> Line:
    """Pay several times, then be done."""
    note("ask", request.run, request.key)
    await asyncio.sleep(0.05)
    return call("pay", amount=request.call) if request.call <= PAYMENTS else "All is paid."


async def main() -> None:
    """Work until this process is killed."""
    address, os.environ[LOG] = sys.argv[1:]
    store = await open_store(address)
    async with host_for(SPEC, FunctionModel(say), code=CODE, store=store) as host:
        while True:
            try:
                await host.recover()
                break
            except StoreError:
                await asyncio.sleep(0.1)
        note("ready")
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
