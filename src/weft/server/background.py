"""Work that is done beside the routes as long as the server runs."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager


@asynccontextmanager
async def running(work: Coroutine[object, object, None]) -> AsyncGenerator[None]:
    """Do some work as long as the block lasts."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        await stop([task])


async def stop(tasks: list[asyncio.Task[None]]) -> None:
    """Cancel tasks, and wait for them."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
