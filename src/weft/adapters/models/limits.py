"""Limits of a model call: attempts, fallback model, time, and concurrent calls."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from weft.errors import ModelError
from weft.ports.clock import Clock
from weft.ports.model import Model, ModelReply, ModelRequest

OnText = Callable[[str], None]

#: Beyond this a wait is as long as it gets, and powers of two grow past what a number holds.
_MOST_DOUBLINGS: Final = 30


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long to try. Waits double from the first to the longest."""

    attempts: int = 4
    first_wait: float = 0.5
    longest_wait: float = 30.0
    #: No attempt begins so many seconds after the first.
    deadline: float = 300.0

    def wait_before(self, attempt: int, draw: float) -> float:
        """Return the seconds before an attempt, 2 being the first repetition.

        Half of it is chance, so that those who failed together do not come back together.
        """
        doublings = min(attempt - 2, _MOST_DOUBLINGS)
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
    return _counted(error, text, attempts, tuple(others))


class WithFallback:
    """Asks another model when the first gave no answer, whatever the reason; the reply tells it."""

    def __init__(self, model: Model, fallback: Model, *, name: str) -> None:
        self._model = model
        self._fallback = fallback
        #: What the first model is called.
        self._name = name

    async def reply(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        """Return the answer of the first model, or else that of the second."""
        listener = Listener(on_text)
        try:
            return await self._model.reply(request, listener.ear())
        except ModelError as first:
            try:
                reply = await self._fallback.reply(request, listener.ear())
            except ModelError as second:
                text = f"{str(first).rstrip('.')}. The fallback failed too: {second}"
                retries = self._retries(first, second.retries)
                raise _counted(second, text, first.attempts + second.attempts, retries) from second
            return replace(
                reply,
                instead_of=f"{self._name}, which gave no answer: {first}",
                retries=self._retries(first, reply.retries),
            )

    def _retries(self, first: ModelError, then: tuple[str, ...]) -> tuple[str, ...]:
        """Put the attempts of both models one after the other; those of the first bear its name."""
        return (*(f"{self._name}, {line}" for line in first.retries), *then)


class Listener:
    """Passes pieces of text on, of one attempt only.

    Who has heard the beginning of one answer must not be told another one: from the second attempt
    on only the whole reply counts.
    """

    def __init__(self, on_text: OnText | None) -> None:
        self._on_text = on_text
        self._heard = False

    def ear(self) -> OnText | None:
        """Return what an attempt may speak to, or None if something was heard before."""
        on_text = self._on_text
        if on_text is None or self._heard:
            return None

        def hear(text: str) -> None:
            self._heard = True
            on_text(text)

        return hear


def _counted(error: ModelError, text: str, attempts: int, retries: tuple[str, ...]) -> ModelError:
    whole = ModelError(text, retryable=error.retryable, after_seconds=error.after_seconds)
    whole.attempts = attempts
    whole.retries = retries
    return whole


#: By which part of its length a time limit may come early.
_GRAIN: Final = 0.05


class TimeLimited:
    """Gives up on a model that is silent for too long.

    The time counts until the whole reply; where it is streamed, it counts anew with every piece, be
    it without words.
    """

    def __init__(self, model: Model, *, name: str, seconds: float) -> None:
        self._model = model
        self._name = name
        self._seconds = seconds

    async def reply(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        try:
            async with asyncio.timeout(self._seconds) as limit:
                return await self._model.reply(request, self._extending(limit, on_text))
        except TimeoutError as error:
            raise ModelError(
                f"no answer from {self._name} within {self._seconds:g} s. Try again later, allow "
                "more time, or name a fallback model.",
                retryable=True,
            ) from error

    def _extending(self, limit: asyncio.Timeout, on_text: OnText | None) -> OnText | None:
        if on_text is None:
            return None
        time = asyncio.get_running_loop().time
        renewed = time()

        def heard(text: str) -> None:
            # Words come by the hundred: the timer is set anew for a few of them only.
            nonlocal renewed
            now = time()
            if now - renewed > self._seconds * _GRAIN:
                renewed = now
                limit.reschedule(now + self._seconds)
            if text:
                on_text(text)

        return heard


class Limited:
    """Lets only so many calls of a model run at once; the others wait their turn."""

    def __init__(self, model: Model, *, at_once: int) -> None:
        self._model = model
        self._places = asyncio.Semaphore(at_once)

    async def reply(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        async with self._places:
            return await self._model.reply(request, on_text)
