"""The person at the terminal: the main thread asks, the work runs in another thread.

Only the main thread is interrupted by signals, and only there can lines be edited.
"""

import asyncio
import contextlib
import io
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import copy_context
from dataclasses import dataclass
from getpass import getpass
from importlib import import_module
from itertools import islice
from queue import SimpleQueue
from select import select
from socket import socketpair
from threading import Event, Thread, current_thread, main_thread
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

from weft.cli.streams import Streams, clean
from weft.environment import read_environment

T = TypeVar("T")

#: Unread lines are counted up to this number: a pipe may be endless.
MANY: Final = 1000


class UserLeft(Exception):
    """The person left: at the end of the input, with Ctrl-C, or the process got SIGTERM."""

    def __init__(self, how: Literal["end", "interrupt", "terminate"]) -> None:
        super().__init__(how)
        self.how = how


@dataclass(frozen=True, slots=True)
class _Question:
    prompt: str
    answer: asyncio.Future[str]
    secret: bool = False


@dataclass(frozen=True, slots=True)
class _Finished(Generic[T]):
    value: T | None = None
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class _Idling:
    """Nothing is asked; a line that is typed anyway is the answer."""

    answer: asyncio.Future[str]


#: The person has asked to leave.
_LEAVING: Final = object()

#: Seconds between two checks for a question while nothing is asked.
_GLANCE: Final = 0.1

#: Seconds after which SIGTERM is repeated if it interrupted nothing.
_REPEAT: Final = 0.1


class Person:
    """Asks for lines. If the person leaves, the question is never answered: the work is stopped."""

    def __init__(self, questions: "SimpleQueue[Any]") -> None:
        self._questions = questions

    async def line(self, prompt: str, *, secret: bool = False) -> str:
        """Return one line without its end; a secret one is not shown while it is typed."""
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._questions.put(_Question(prompt, answer, secret))
        return await answer

    async def unasked_line(self) -> str:
        """Return a line that is typed although nothing is asked; the person can leave meanwhile.

        The next question ends this.
        """
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._questions.put(_Idling(answer))
        return await answer

    async def leave(self) -> None:
        """Leave as at the end of the input; the caller is stopped with all the work."""
        self._questions.put(_LEAVING)
        await asyncio.Event().wait()


#: Prints the inspection of a run.
Inspecting: TypeAlias = Callable[[], Awaitable[None]]

SLASH_COMMANDS: Final = """\
  /inspect   what happened so far, and why
  /stop      stop the run
  /quit      leave; the run waits and can be continued
  /help      this list
  //text     a message that begins with a slash
  text\\      a backslash at the end of a line continues it in the next"""


def is_command(text: str) -> bool:
    """Return whether a line is a slash command and not a message."""
    return text.startswith("/") and not text.startswith("//")


def message_of(text: str) -> str:
    """Return the message of a line: of two slashes at its beginning, one is removed."""
    return text[1:] if text.startswith("//") else text


async def run_command(
    text: str, streams: Streams, inspect: Inspecting
) -> Literal["stop", "quit", "again"]:
    """Run a slash command; the caller stops the run or leaves it."""
    match text.strip().lower():
        case "/stop":
            return "stop"
        case "/quit" | "/exit":
            return "quit"
        case "/inspect":
            await inspect()
        case "/help":
            streams.problem(SLASH_COMMANDS)
        case _:
            streams.problem(f"unknown command {clean(text)}; available:\n{SLASH_COMMANDS}")
    return "again"


def stdin_is_terminal() -> bool:
    """Return whether stdin is a terminal."""
    # None where the caller closed it.
    return sys.stdin is not None and sys.stdin.isatty()  # pyright: ignore[reportUnnecessaryComparison]


def read_line(prompt: str) -> str:
    """Read one line; raise EOFError at the end."""
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise EOFError
    if stdin_is_terminal() and sys.stdout.isatty():
        with contextlib.suppress(ImportError):  # some systems have no line editing
            readline: Any = import_module("readline")
            if read_environment().get("TERM") != "dumb":  # pasted text is one line
                readline.parse_and_bind("set enable-bracketed-paste on")
        return input(prompt)
    if stdin_is_terminal():
        sys.stderr.write(prompt)
        sys.stderr.flush()
    return _read_plainly()


def read_secret(prompt: str) -> str:
    """Read one line without showing or remembering it; raise EOFError at the end."""
    if not stdin_is_terminal():
        return read_line(prompt)
    return getpass(prompt, stream=sys.stderr)


def _read_plainly() -> str:
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\r\n")


def unread_lines() -> int:
    """Return the number of unread lines of a pipe, without waiting for more; at most MANY."""
    if sys.stdin is None or stdin_is_terminal():  # pyright: ignore[reportUnnecessaryComparison]
        return 0
    with _without_waiting():
        lines = islice(iter(sys.stdin.readline, ""), MANY)
        return sum(1 for line in lines if line.strip())


@contextlib.contextmanager
def _without_waiting() -> Generator[None]:
    """Make reading return at once where no input has arrived."""
    try:
        number = sys.stdin.fileno()
    except io.UnsupportedOperation:  # text in memory
        yield
        return
    before = os.get_blocking(number)
    os.set_blocking(number, False)
    try:
        yield
    finally:
        os.set_blocking(number, before)


def with_person(work: Callable[[Person], Coroutine[Any, Any, T]]) -> T:
    """Perform work that may ask the person, and return its result.

    Raises UserLeft when the person leaves, after the work was stopped and has cleaned up.
    """
    questions: SimpleQueue[Any] = SimpleQueue()
    started: SimpleQueue[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = SimpleQueue()

    async def whole() -> T:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine that runs is a task's
        started.put((asyncio.get_running_loop(), task))
        return await work(Person(questions))

    def work_thread() -> None:
        try:
            questions.put(_Finished(asyncio.run(whole())))
        except BaseException as error:  # noqa: BLE001 - it is raised again in the main thread
            questions.put(_Finished(error=error))

    # A daemon: a second Ctrl-C ends the process, whatever the work is doing.
    # In the context of the command, which has its tenant and user.
    context = copy_context()
    Thread(target=lambda: context.run(work_thread), daemon=True, name="weft-work").start()
    loop, task = started.get()
    try:
        with _sigterm_raises(loop):
            finished: _Finished[T] = _serve(questions, loop)
    except (EOFError, KeyboardInterrupt) as left:
        with contextlib.suppress(RuntimeError):  # the work may have ended just now
            loop.call_soon_threadsafe(task.cancel)
        while not isinstance(questions.get(), _Finished):
            continue
        how = "terminate" if isinstance(left, _Terminated) else "interrupt"
        raise UserLeft("end" if isinstance(left, EOFError) else how) from None
    if finished.error is not None:
        raise finished.error
    return finished.value  # pyright: ignore[reportReturnType] - what the work returned


class _Terminated(KeyboardInterrupt):
    """The process got SIGTERM."""


@contextlib.contextmanager
def _sigterm_raises(loop: asyncio.AbstractEventLoop) -> Generator[None]:
    """Treat SIGTERM like Ctrl-C, so that the command prints how to continue the run.

    A signal between the print of a prompt and the wait for a line interrupts neither; the loop of
    the work repeats it.
    """
    if current_thread() is not main_thread():  # as in a test
        yield
        return
    raised = Event()
    receiver, sender = socketpair()
    receiver.settimeout(0)
    sender.settimeout(0)

    def stop(_number: int, _frame: object) -> None:
        if not raised.is_set():
            raised.set()
            raise _Terminated

    def repeat() -> None:
        if not raised.is_set():
            signal.pthread_kill(main_thread().ident or 0, signal.SIGTERM)

    def notice() -> None:
        if signal.SIGTERM in receiver.recv(4096):
            loop.call_later(_REPEAT, repeat)

    def close() -> None:
        loop.remove_reader(receiver)
        receiver.close()

    earlier = signal.signal(signal.SIGTERM, stop)
    earlier_fd = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    with contextlib.suppress(RuntimeError):  # the work may have ended already
        loop.call_soon_threadsafe(loop.add_reader, receiver, notice)
    try:
        yield
    finally:
        signal.set_wakeup_fd(earlier_fd)
        signal.signal(signal.SIGTERM, earlier)
        sender.close()
        try:
            loop.call_soon_threadsafe(close)
        except RuntimeError:
            receiver.close()


def _serve(questions: "SimpleQueue[Any]", loop: asyncio.AbstractEventLoop) -> _Finished[Any]:
    """Ask the questions of the work until it is done."""
    while True:
        item = questions.get()
        if isinstance(item, _Finished):
            return item  # pyright: ignore[reportUnknownVariableType]
        if item is _LEAVING:
            raise EOFError
        if isinstance(item, _Idling):
            line = _idle(questions)
        else:
            line = (read_secret if item.secret else read_line)(item.prompt)
        if line is not None:
            loop.call_soon_threadsafe(_give, item.answer, line)


def _idle(questions: "SimpleQueue[Any]") -> str | None:
    """Return a line that is typed before the next question, or None."""
    while questions.empty():
        if select([sys.stdin], [], [], _GLANCE)[0]:
            return _read_plainly()  # line editing would read an earlier Ctrl-D as a character
    return None


def _give(answer: asyncio.Future[str], line: str) -> None:
    if not answer.done():  # the question may have been cancelled
        answer.set_result(line)
