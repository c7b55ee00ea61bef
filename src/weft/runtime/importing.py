"""Importing the code of packages in threads: an import that hangs is abandoned and reported."""

import asyncio
from collections.abc import Callable, Hashable
from contextlib import suppress
from contextvars import copy_context
from threading import Thread
from typing import TypeVar

from weft.errors import LinkError

T = TypeVar("T")


class ImportThreads:
    """Runs what imports code in threads, each for a limited time.

    A thread cannot be stopped. One that takes too long is abandoned; the same import is not started
    again until it has ended, and it does not prevent the process from exiting.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._left: set[Hashable] = set()

    async def run(self, key: Hashable, name: str, work: Callable[[], T]) -> T:
        """Call a function that imports something, which has a `key`, and a `name` for messages.

        Raises LinkError if it takes too long, or if an earlier call has not ended.
        """
        if key in self._left:
            raise self._too_slow(name)
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        context = copy_context()

        def work_in_thread() -> None:
            try:
                result, error = context.run(work), None
            except BaseException as raised:  # noqa: BLE001 - raised where the result is awaited
                result, error = None, raised
            self._left.discard(key)
            with suppress(RuntimeError):  # The event loop is closed.
                done.get_loop().call_soon_threadsafe(_settle, done, result, error)

        Thread(target=work_in_thread, name="weft-import", daemon=True).start()
        try:
            async with asyncio.timeout(self._seconds):
                return await asyncio.shield(done)
        except TimeoutError as error:
            if done.done():
                raise
            self._left.add(key)
            raise self._too_slow(name) from error

    def _too_slow(self, name: str) -> LinkError:
        return LinkError(
            f"importing the code of {name} takes longer than {self._seconds:g} s: "
            "move what takes long, or waits, out of the modules and into the functions"
        )


def _settle(done: asyncio.Future[T], result: T | None, error: BaseException | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(result)  # pyright: ignore[reportArgumentType] - that of the function
    else:
        done.set_exception(error)
        done.exception()  # It may be that no caller waits any more.
