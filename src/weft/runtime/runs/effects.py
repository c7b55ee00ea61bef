"""The effects of a run that are under way, its inbox, and how many runs work or wait at once."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, TypeAlias

from weft.context.user_code import user_code
from weft.engine.commands import CallModel, CallTool, Fetch, WriteDocument
from weft.engine.commands import Effect as Command
from weft.engine.events import EventData, ModelFailed, ModelReplied, ToolFailed, ToolReturned
from weft.engine.state import State
from weft.errors import RunError
from weft.findings import Json
from weft.runtime.runs.decision import NewEvent

NewEvents: TypeAlias = tuple[NewEvent, ...]


class Effect(NamedTuple):
    """An effect to perform; a tool is identified by its call."""

    name: str
    command: Command
    work: Coroutine[Any, Any, NewEvents]


class Effects(dict[str, tuple[Effect, "asyncio.Task[None] | None"]]):
    """The effects of one run in this process by name, with the tasks that perform them.

    One may have no task: the current task performs it after the inbox is empty.
    """

    def __init__(self) -> None:
        super().__init__()
        self._next: Effect | None = None
        #: For tools that wait for a person: the number of the question, and its answer.
        self._asking: dict[str, tuple[int, asyncio.Future[Json]]] = {}

    @property
    def has_waiting_tools(self) -> bool:
        """Whether tools wait here for a person; the answer may arrive in another process."""
        return bool(self._asking)

    @property
    def all_wait(self) -> bool:
        """Whether every effect is a tool that waits for a person."""
        return bool(self) and self.keys() <= self._asking.keys()

    @property
    def seqs(self) -> list[int]:
        """The events that began the effects under way."""
        return [effect.command.seq for effect, task in self.values() if task is not None]

    @property
    def performed(self) -> set[str]:
        """The effects under way, without tools that wait for a person."""
        return self.keys() - self._asking.keys()

    def keep(self, effect: Effect) -> bool:
        """Assign an effect to the current task; return False if it already has one."""
        if self._next is not None:
            return False
        self._next = effect
        self[effect.name] = effect, None
        return True

    def take(self) -> Effect | None:
        """Return the effect that was assigned to the current task, which performs it now."""
        effect, self._next = self._next, None
        if effect is not None:
            self[effect.name] = effect, asyncio.current_task()
        return effect

    async def perform(self, effect: Effect) -> NewEvents | RunError | None:
        """Perform an effect and return its result; None if it was dropped meanwhile.

        An error is reported to everything that waits for the run.
        """
        result: NewEvents | RunError
        try:
            with user_code:
                result = await effect.work
        except RunError as error:
            result = error
        except Exception as error:  # noqa: BLE001 - as above
            result = RunError(f"an effect ended without a result: {error}")
            result.__cause__ = error
        except asyncio.CancelledError:
            if effect.name not in self:
                raise
            result = RunError("an effect ended without a result: cancelled")
        # Removed as soon as its result is there: a run without other work may be released then.
        return result if self.pop(effect.name, None) else None

    def answer(self, command: CallTool) -> bool:
        """Give the newest answer to the tool that waits here; return whether there is one."""
        _, waiting = self._asking.pop(command.id, (0, None))
        if waiting is None:
            return False
        if not waiting.done():
            waiting.set_result(command.answers[-1].value)
        return True

    async def answered(self, call: str, number: int) -> Json:
        """Wait, in a tool, for the answer to one of its questions."""
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._asking[call] = number, answer
        try:
            return await answer
        finally:
            self._asking.pop(call, None)

    async def drop(self) -> None:
        """Cancel every effect."""
        await self._drop(list(self))

    async def drop_unwanted(self, state: State) -> None:
        """Cancel the effects that no turn waits for any more."""
        gone = [name for name, (effect, _) in self.items() if not is_wanted(effect.command, state)]
        if gone:
            await self._drop(gone)

    async def _drop(self, names: Iterable[str]) -> None:
        dropped = [self.pop(name) for name in names]
        if self._next is not None and self._next.name not in self:
            self._next = None
        tasks = [task for _, task in dropped if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.gather(*tasks, return_exceptions=True)
        for effect, _ in dropped:  # A task that is cancelled before its first step has not begun.
            effect.work.close()


def marked_as_repeated(result: NewEvents, abandoned_by: str) -> NewEvents:
    """Return the result of an effect that another worker has abandoned, with a note."""

    def marked(data: EventData) -> EventData:
        match data:
            case ToolReturned() | ToolFailed():
                return replace(data, abandoned_by=abandoned_by)
            case ModelReplied() | ModelFailed():
                return replace(data, retries=(*data.retries, repeated_text(abandoned_by)))
            case _:
                return data

    return tuple(new._replace(data=marked(new.data)) for new in result)


def repeated_text(abandoned_by: str) -> str:
    """Return the note about a call that may have been performed twice."""
    return f"worker {abandoned_by} left this call: it may have been performed twice"


def is_wanted(command: Command, state: State) -> bool:
    """Return whether a run still waits for the result of an effect."""
    match command:
        case CallTool(id=id_):
            return id_ in state.calls
        case CallModel(turn=turn, seq=seq):
            return _is_at(state, turn, "model", seq)
        case Fetch(turn=turn, seq=seq):
            return _is_at(state, turn, "fetching", seq)
        case WriteDocument(name=name, seq=seq):
            return state.writing.get(name) == seq
        case _:
            return state.judging is not None and state.judging.seq == command.seq


def _is_at(state: State, turn: int, stage: str, seq: int) -> bool:
    active = state.active.get(turn)
    return active is not None and active.stage == stage and active.seq == seq


@dataclass(slots=True)
class Delivery:
    """A change to a run, and the future of the caller that waits for it."""

    work: Callable[[], Awaitable[Any]]
    done: asyncio.Future[Any] | None = None

    def fail(self, fault: Exception) -> None:
        """Resolve the future with an error."""
        if self.done is not None and not self.done.done():
            self.done.set_exception(fault)


class Inbox(deque[Delivery | NewEvents | RunError]):
    """Deliveries, and results of effects or why there is none, in arrival order."""

    def __init__(self, write: Callable[[NewEvents], Awaitable[None]]) -> None:
        super().__init__()
        self._write = write

    async def process_next(self) -> None:
        """Write the first result, or make the first change and resolve its future."""
        item = self.popleft()
        if isinstance(item, RunError):
            raise item
        if isinstance(item, tuple):
            await self._write(item)
            return
        try:
            made = await item.work()
        except asyncio.CancelledError:
            item.fail(
                RunError(
                    "the host was closed before the write was confirmed; read the run to see "
                    "whether it was stored"
                )
            )
            raise
        except Exception as error:  # The future gets the error.
            if item.done is None:
                raise
            item.fail(error)
        else:
            if item.done is not None and not item.done.done():
                item.done.set_result(made)

    @property
    def results(self) -> list[NewEvents]:
        """The results that are not processed yet."""
        return [item for item in self if isinstance(item, tuple)]

    def fail_waiters(self, fault: Exception) -> None:
        """Accept no more entries, and fail those that wait."""
        while self:
            item = self.popleft()
            if isinstance(item, Delivery):
                item.fail(fault)


#: Few enough that a round is short, and many enough that their writes share a transaction.
AT_ONCE: Final = 64


class Pace:
    """Lets a few runs continue in each round of the event loop, in the order they ask.

    If a thousand replies arrive together and all runs continued in one round, the first request
    would be sent after the last run has decided. With a few per round, the models of the first
    runs work while the others decide.
    """

    def __init__(self) -> None:
        #: How many have continued in this round; while there are any, the next round is scheduled.
        self._gone = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def turn(self) -> None:
        """Return when the caller may continue: at once, unless this round is full."""
        loop = asyncio.get_running_loop()
        if not self._gone:
            loop.call_soon(self._next_round)
        if self._gone < AT_ONCE:
            self._gone += 1
            return
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _next_round(self) -> None:
        self._gone = min(AT_ONCE, len(self._waiting))
        if self._gone:
            asyncio.get_running_loop().call_soon(self._next_round)
        for _ in range(self._gone):
            turn = self._waiting.popleft()
            if not turn.done():  # The waiting task was cancelled.
                turn.set_result(None)


HOLD_SECONDS: Final = 300.0
MOST_HELD: Final = 500


@dataclass
class HeldRuns:
    """The idle runs that a host keeps in memory; those beyond the limit are released at once."""

    seconds: float = HOLD_SECONDS
    most: int = MOST_HELD
    _held: int = 0

    def begin(self, let_go: Callable[[], None]) -> asyncio.TimerHandle:
        """Keep one more run, and release it when its time is over."""
        self._held += 1
        seconds = self.seconds if self._held <= self.most else 0
        return asyncio.get_running_loop().call_later(seconds, let_go)

    def end(self, timer: asyncio.TimerHandle) -> None:
        """Keep a run no longer: it has work, or it was released."""
        self._held -= 1
        timer.cancel()
