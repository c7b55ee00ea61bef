"""Waiting for something that another process causes."""

import asyncio
from collections.abc import Callable
from typing import Final

WAIT_SECONDS: Final = 10.0


async def until(condition: Callable[[], bool], what: str) -> None:
    """Wait until a condition holds; fail after `WAIT_SECONDS`."""
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            while not condition():  # noqa: ASYNC110  a condition sets no event
                await asyncio.sleep(0.002)
    except TimeoutError:
        raise AssertionError(f"{what}: expected within {WAIT_SECONDS:g} s, found none") from None
