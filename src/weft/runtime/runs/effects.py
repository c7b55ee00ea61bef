"""The effects of a run that are under way, its inbox, and how many runs work or wait at once."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias, cast

from weft.context.user_code import user_code
from weft.engine.commands import CallModel, CallTool, Fetch, WriteDocument
from weft.engine.commands import Effect as Command
from weft.engine.state import State
from weft.errors import RunError
from weft.findings import Json
from weft.runtime.runs.decision import NewEvent

NewEvents: TypeAlias = tuple[NewEvent, ...]


class Effect(NamedTuple):
    """Something to be done in the world: tools are named by their call."""

    name: str
    command: Command
    work: Coroutine[Any, Any, NewEvents]


@dataclass(frozen=True, slots=True)
class Broken:
    """An effect that ended without a result and was not dropped; None: it was cancelled."""

    fault: Exception | None


class Effects:
    """The effects of one run that are under way in this process."""

    def __init__(self) -> None:
        #: By name, with the tasks that perform them.
        self._begun: dict[str, tuple[Effect, asyncio.Task[None]]] = {}
        #: The one that is begun when everything has been taken in.
        self._next: Effect | None = None
        #: Of the tools that wait for a person, which of their questions it is, and its answer.
        self._asking: dict[str, tuple[int, asyncio.Future[Json]]] = {}

    def __bool__(self) -> bool:
        return self._next is not None or bool(self._begun)

    def __contains__(self, name: str) -> bool:
        return name in self._begun or (self._next is not None and self._next.name == name)

    @property
    def has_waiting_tools(self) -> bool:
        """Whether tools wait here for a person; the answer may arrive in another process."""
        return bool(self._asking)

    @property
    def all_wait(self) -> bool:
        """Whether every effect is a tool that waits for a person."""
        return (
            self._next is None and bool(self._begun) and self._begun.keys() <= self._asking.keys()
        )

    def keep(self, effect: Effect) -> bool:
        """Assign an effect to the current task; return False if it already has one."""
        if self._next is not None:
            return False
        self._next = effect
        return True

    def take(self) -> Effect | None:
        """Return the effect that was kept, for the task that asks: it is to perform it now."""
        effect, self._next = self._next, None
        if effect is not None:
            self.begun(effect, cast("asyncio.Task[None]", asyncio.current_task()))
        return effect

    def begun(self, effect: Effect, task: asyncio.Task[None]) -> None:
        """Take note that a task performs an effect."""
        self._begun[effect.name] = effect, task

    async def perform(self, effect: Effect) -> NewEvents | Broken | None:
        """Perform an effect and return what result of it; None if it was dropped meanwhile."""
        result: NewEvents | Broken
        try:
            with user_code:
                result = await effect.work
        except Exception as error:  # noqa: BLE001 - reported to everything that waits for the run
            result = Broken(error)
        except asyncio.CancelledError:
            if effect.name not in self._begun:
                raise
            result = Broken(None)
        # No effect any more once its result is there: a run with nothing else to do may leave then.
        return result if self._begun.pop(effect.name, None) else None

    def answer(self, command: CallTool) -> bool:
        """Give the newest answer to the tool that waits for it here; tell whether there is one."""
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
        effect, self._next = self._next, None
        if effect is not None:
            effect.work.close()
        await self._drop(list(self._begun))

    async def drop_answered_elsewhere(self, state: State) -> None:
        """Cancel tools whose requests were answered in another process, which calls them again."""
        if self._asking:
            gone = [call for call, (number, _) in self._asking.items() if _has(state, call, number)]
            await self._drop([call for call in gone if call in self._begun])

    async def drop_unwanted(self, state: State) -> None:
        """Break off what no turn waits for any more: another result first, or the time is over."""
        kept = self._next
        if kept is not None and not _is_wanted(kept.command, state):
            self._next = None
            kept.work.close()
        gone = [
            it for it, (effect, _) in self._begun.items() if not _is_wanted(effect.command, state)
        ]
        if gone:
            await self._drop(gone)

    async def _drop(self, names: Iterable[str]) -> None:
        dropped = [self._begun.pop(name) for name in names]
        for _, task in dropped:
            task.cancel()
        if dropped:
            await asyncio.gather(*(task for _, task in dropped), return_exceptions=True)
        for effect, _ in dropped:  # A task that is cancelled before its first step has not begun.
            effect.work.close()


def _has(state: State, call: str, number: int) -> bool:
    """Tell whether a call has the answer to a question of its, or is over."""
    found = state.calls.get(call)
    return found is None or len(found.answers) > number


def _is_wanted(command: Command, state: State) -> bool:
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


@dataclass(frozen=True, slots=True)
class Delivery:
    """Something to be done with a run, and who waits for it to be done."""

    work: Callable[[], Awaitable[Any]]
    done: asyncio.Future[Any] | None = None

    async def perform(self) -> None:
        """Do it, and resolve the future with the outcome."""
        done = self.done
        try:
            result = await self.work()
        except asyncio.CancelledError:
            self.fail(RunError("the host was closed; look whether it was written"))
            raise
        except Exception as error:  # the future gets it
            if done is None:
                raise
            self.fail(error)
        else:
            if done is not None and not done.done():
                done.set_result(result)

    def fail(self, fault: Exception) -> None:
        """Resolve the future with an error."""
        if self.done is not None and not self.done.done():
            self.done.set_exception(fault)


#: A delivery, the result of an effect, or an effect that ended without one.
Item: TypeAlias = Delivery | NewEvents | Broken


class Inbox:
    """Results and deliveries, in the order they result."""

    def __init__(self, write: Callable[[NewEvents], Awaitable[None]]) -> None:
        self._write = write
        self.items: deque[Item] = deque()

    def put(self, item: Item) -> None:
        """Let something wait to be taken in."""
        self.items.append(item)

    def take(self) -> Delivery:
        """Return the first that waits, as something to be done."""
        item = self.items.popleft()
        if isinstance(item, Delivery):
            return item
        if isinstance(item, Broken):
            return Delivery(partial(_raise, item.fault))
        return Delivery(partial(self._write, item))

    @property
    def results(self) -> list[NewEvents]:
        """The results that wait."""
        return [it for it in self.items if isinstance(it, tuple)]

    def fail_waiters(self, fault: Exception) -> None:
        """Take nothing in any more, and tell everybody who waits for it."""
        while self.items:
            self.take().fail(fault)


async def _raise(fault: Exception | None) -> None:
    if isinstance(fault, RunError):
        raise fault
    raise RunError(f"an effect ended without a result: {fault or 'cancelled'}") from fault


#: Few enough that a round is over soon, and many enough that what they write shares a transaction.
AT_ONCE: Final = 64


class Pace:
    """Lets a few runs go on in each round of the event loop, in the order they result.

    A round does one thing for everybody. If a thousand replies come together and all may go on,
    the first request is not sent before the last run has decided; if a few may, the models of the
    first are at work while the others decide.
    """

    def __init__(self) -> None:
        #: How many have gone on in this round; while there are any, the next round is announced.
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
class Holding:
    """The runs of a host that are held; more than the most are let go at once."""

    seconds: float = HOLD_SECONDS
    most: int = MOST_HELD
    _held: int = 0

    def begin(self, let_go: Callable[[], None]) -> asyncio.TimerHandle:
        """Hold one more run, and have it let go when its time is over."""
        self._held += 1
        seconds = self.seconds if self._held <= self.most else 0
        return asyncio.get_running_loop().call_later(seconds, let_go)

    def end(self, timer: asyncio.TimerHandle) -> None:
        """Hold a run no longer: something is to be done for it, or it was let go."""
        self._held -= 1
        timer.cancel()
