"""Limits of a model call: attempts, fallback model, time, and concurrent calls."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from weft.adapters.fair_queue import FairSlots
from weft.errors import ModelError
from weft.ports.clock import Clock
from weft.ports.model import Model, ModelReply, ModelRequest

OnText = Callable[[str], None]

#: More doublings do not make a wait longer, and would overflow.
_MAX_DOUBLINGS: Final = 30


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Attempts and waits of a call. Waits double from the first to the longest."""

    attempts: int = 4
    first_wait: float = 0.5
    longest_wait: float = 30.0
    #: No attempt begins later than this many seconds after the first.
    deadline: float = 300.0

    def wait_before(self, attempt: int, draw: float) -> float:
        """Return the seconds before an attempt, 2 being the first repetition.

        Half of it is random, so that callers that failed together do not retry together.
        """
        doublings = min(attempt - 2, _MAX_DOUBLINGS)
        full = min(self.longest_wait, self.first_wait * 2.0**doublings)
        return full / 2 + full / 2 * draw


RETRIES: Final = RetryPolicy()


class Retrying:
    """Repeats a call after transient errors, no sooner than the provider allows."""

    def __init__(
        self, model: Model, *, clock: Clock, random: Random, policy: RetryPolicy = RETRIES
    ) -> None:
        self._model = model
        self._clock = clock
        self._random = random
        self._policy = policy

    async def reply(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        """Return the first reply; raise the last error when no further attempt is allowed."""
        listener = Listener(on_text)
        deadline = self._clock.now() + self._policy.deadline * 1000
        most = self._policy.attempts
        failures: list[str] = []
        while True:
            try:
                reply = await self._model.reply(request, listener.ear())
                return replace(reply, retries=_attempt_lines(failures, most)) if failures else reply
            except ModelError as error:
                repeated = failures[-1:] == [str(error)]
                failures.append(str(error))
                attempt = len(failures) + 1
                wait = self._wait_before(error, attempt)
                at = self._clock.now() + wait * 1000
                if not error.retryable or attempt > most:
                    raise _final_error(error, failures, most) from error
                if at > deadline:
                    note = f"The next attempt would start in {wait:.6g} s, longer than Weft waits"
                    raise _final_error(error, failures, most, note) from error
                if request.on_retry:
                    reason = "the same error" if repeated else error
                    request.on_retry(
                        f"attempt {attempt} of {most} in {wait:.1f} s, after: {reason}"
                    )
            await self._clock.sleep_until(round(at))

    def _wait_before(self, error: ModelError, attempt: int) -> float:
        """Return the seconds to wait: the provider's Retry-After if it is longer than ours."""
        wait = self._policy.wait_before(attempt, self._random.random())
        return max(wait, error.after_seconds or 0.0)


def _attempt_lines(failures: Sequence[str], most: int) -> tuple[str, ...]:
    return tuple(f"attempt {number} of {most}: {text}" for number, text in enumerate(failures, 1))


def _final_error(
    error: ModelError, failures: Sequence[str], most: int, note: str = ""
) -> ModelError:
    """Return the last error with the number of attempts; it repeats no error that it is itself."""
    attempts = len(failures)
    text = f"{str(error).rstrip('.')}. {note}." if note else str(error)
    if attempts > 1:
        text = f"{text} (attempts: {attempts})"
    lines = _attempt_lines(failures, most)
    others = (line for line, failure in zip(lines, failures, strict=True) if failure != str(error))
    return _with_attempts(error, text, attempts, tuple(others))


class WithFallback:
    """Calls another model when the first one fails; the reply names the first and its error."""

    def __init__(self, model: Model, fallback: Model, *, name: str) -> None:
        self._model = model
        self._fallback = fallback
        #: The name of the first model.
        self._name = name

    async def reply(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        """Return the reply of the first model, or else of the second."""
        listener = Listener(on_text)
        try:
            return await self._model.reply(request, listener.ear())
        except ModelError as first:
            try:
                reply = await self._fallback.reply(request, listener.ear())
            except ModelError as second:
                text = f"{str(first).rstrip('.')}. The fallback failed too: {second}"
                retries = self._retries(first, second.retries)
                raise _with_attempts(
                    second, text, first.attempts + second.attempts, retries
                ) from second
            return replace(
                reply,
                instead_of=f"{self._name}, which gave no answer: {first}",
                retries=self._retries(first, reply.retries),
            )

    def _retries(self, first: ModelError, then: tuple[str, ...]) -> tuple[str, ...]:
        """Return the attempts of both models; those of the first with its name."""
        return (*(f"{self._name}, {line}" for line in first.retries), *then)


class Listener:
    """Passes on the text of one attempt only.

    A reader that got the start of one reply must not get another one: from the second attempt
    on, only the whole reply counts.
    """

    def __init__(self, on_text: OnText | None) -> None:
        self._on_text = on_text
        self._started = False

    def ear(self) -> OnText | None:
        """Return the callback of an attempt, or None if an earlier attempt has sent text."""
        on_text = self._on_text
        if on_text is None or self._started:
            return None

        def hear(text: str) -> None:
            self._started = True
            on_text(text)

        return hear


def _with_attempts(
    error: ModelError, text: str, attempts: int, retries: tuple[str, ...]
) -> ModelError:
    whole = ModelError(text, retryable=error.retryable, after_seconds=error.after_seconds)
    whole.attempts = attempts
    whole.retries = retries
    return whole


#: The share of a time limit by which it may expire early.
_EARLY_SHARE: Final = 0.05


class TimeLimited:
    """Ends a call with an error after too long a silence.

    The limit applies to the whole reply; of a streamed reply, it restarts with every piece, even
    without text.
    """

    def __init__(self, model: Model, *, name: str, seconds: float) -> None:
        self._model = model
        self._name = name
        self._seconds = seconds

    async def reply(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        try:
            async with asyncio.timeout(self._seconds) as limit:
                return await self._model.reply(request, self._extend_with_text(limit, on_text))
        except TimeoutError as error:
            raise ModelError(
                f"no answer from {self._name} within {self._seconds:g} s. Try again later, allow "
                "more time, or name a fallback model.",
                retryable=True,
            ) from error

    def _extend_with_text(self, limit: asyncio.Timeout, on_text: OnText | None) -> OnText | None:
        if on_text is None:
            return None
        time = asyncio.get_running_loop().time
        renewed = time()

        def heard(text: str) -> None:
            # Pieces come by the hundred: the timer is restarted for a few of them only.
            nonlocal renewed
            now = time()
            if now - renewed > self._seconds * _EARLY_SHARE:
                renewed = now
                limit.reschedule(now + self._seconds)
            if text:
                on_text(text)

        return heard


class Limited:
    """Limits the concurrent calls of a model; further calls wait, those of each tenant in turn."""

    def __init__(self, model: Model, *, at_once: int) -> None:
        self._model = model
        self._slots = FairSlots(at_once)

    async def reply(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        await self._slots.acquire(request.app)
        try:
            return await self._model.reply(request, on_text)
        finally:
            self._slots.release()
