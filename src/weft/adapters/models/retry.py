"""Another attempt after a failure that may pass: with the same model, then with another one."""

from collections.abc import Callable
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
    """Asks again after errors that may pass, no sooner than the provider allows."""

    def __init__(
        self, model: Model, *, clock: Clock, random: Random, policy: RetryPolicy = RETRIES
    ) -> None:
        self._model = model
        self._clock = clock
        self._random = random
        self._policy = policy

    async def reply(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        """Return the first answer; raises the last error when no further attempt may be made."""
        listener = Listener(on_text)
        last = self._clock.now() + self._policy.deadline * 1000
        most = self._policy.attempts
        failed: tuple[str, ...] = ()
        attempt = 1
        while True:
            try:
                reply = await self._model.reply(request, listener.ear())
                return replace(reply, retries=failed) if failed else reply
            except ModelError as error:
                failed += (f"attempt {attempt} of {most}: {error}",)
                attempt += 1
                at = self._next_attempt(error, attempt)
                if not error.retryable or attempt > most or at > last:
                    if attempt == 2:
                        raise
                    text = f"{error} (attempts: {attempt - 1})"
                    raise _tried(error, text, attempt - 1, failed) from error
                if request.on_retry:
                    seconds = (at - self._clock.now()) / 1000
                    request.on_retry(
                        f"attempt {attempt} of {most} in {seconds:.1f} s, after: {error}"
                    )
            await self._clock.sleep_until(round(at))

    def _next_attempt(self, error: ModelError, attempt: int) -> float:
        """Return when to try again; what a provider asks for may be beyond all numbers."""
        wait = self._policy.wait_before(attempt, self._random.random())
        return self._clock.now() + max(wait, error.after_seconds or 0.0) * 1000


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
                raise _tried(second, text, first.attempts + second.attempts, retries) from second
            return replace(
                reply,
                instead_of=f"{self._name}, which gave no answer: {first}",
                retries=self._retries(first, reply.retries),
            )

    def _retries(self, first: ModelError, then: tuple[str, ...]) -> tuple[str, ...]:
        """Put the attempts of both models one after the other; those of the first bear its name."""
        return (*(f"{self._name}, {it}" for it in first.retries), *then)


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


def _tried(error: ModelError, text: str, attempts: int, retries: tuple[str, ...]) -> ModelError:
    whole = ModelError(text, retryable=error.retryable, after_seconds=error.after_seconds)
    whole.attempts = attempts
    whole.retries = retries
    return whole
