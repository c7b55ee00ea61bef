"""The person at the terminal: work goes on in a thread of its own, the main one asks.

Only the main thread is interrupted by Ctrl-C, and only there does a terminal let lines be edited.
"""

import asyncio
import contextlib
import io
import os
import sys
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass
from getpass import getpass
from importlib import import_module
from itertools import islice
from queue import SimpleQueue
from select import select
from threading import Thread
from typing import Any, Final, Generic, Literal, TypeVar

from weft.environment import read_environment

T = TypeVar("T")

#: Lines that nobody has read are counted up to here: a pipe may have no end.
MANY: Final = 1000


class UserLeft(Exception):
    """The person has left: at the end of what there was to read, or with Ctrl-C."""

    def __init__(self, how: Literal["end", "interrupt"]) -> None:
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
    """Nothing is asked; a line that is typed all the same is to be told."""

    answer: asyncio.Future[str]


#: The person has asked to leave.
_LEAVING: Final = object()

#: Seconds between two looks at whether there is something to do for an idle person.
_GLANCE: Final = 0.1


class Person:
    """Asks for lines. A question whose person has left is never answered; the work is stopped."""

    def __init__(self, questions: "SimpleQueue[Any]") -> None:
        self._questions = questions

    async def line(self, prompt: str, *, secret: bool = False) -> str:
        """Return one line, without its end; what is secret is not shown while it is typed."""
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._questions.put(_Question(prompt, answer, secret))
        return await answer

    async def unasked_line(self) -> str:
        """Return a line that is typed though nothing is asked; the person can leave meanwhile.

        The next question of anybody ends this, whether or not it is waited for.
        """
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._questions.put(_Idling(answer))
        return await answer

    async def leave(self) -> None:
        """Leave as if there were nothing more to read; the caller is stopped with all the work."""
        self._questions.put(_LEAVING)
        await asyncio.Event().wait()


def stdin_is_terminal() -> bool:
    """Tell whether a person sits at the other end of stdin."""
    # None where the caller closed it.
    return sys.stdin is not None and sys.stdin.isatty()  # pyright: ignore[reportUnnecessaryComparison]


def read_line(prompt: str) -> str:
    """Read one line; raise EOFError when there are no more."""
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise EOFError
    if stdin_is_terminal() and sys.stdout.isatty():
        with contextlib.suppress(ImportError):  # some systems have no line editing
            _edit_lines()
        return input(prompt)
    if stdin_is_terminal():
        _show(prompt)
    return _read_plainly()


def read_secret(prompt: str) -> str:
    """Read one line that is not shown, nor remembered; raise EOFError when there are no more."""
    if not stdin_is_terminal():
        return read_line(prompt)
    return getpass(prompt, stream=sys.stderr)


def _read_plainly() -> str:
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\r\n")


def unread_lines() -> int:
    """Count the lines that came in through a pipe and that nobody has read.

    What may come later is not waited for; many lines are counted as MANY.
    """
    if sys.stdin is None or stdin_is_terminal():  # pyright: ignore[reportUnnecessaryComparison]
        return 0
    with _without_waiting():
        lines = islice(iter(sys.stdin.readline, ""), MANY)
        return sum(1 for line in lines if line.strip())


@contextlib.contextmanager
def _without_waiting() -> Generator[None]:
    """Let reading end where nothing has come in yet."""
    try:
        number = sys.stdin.fileno()
    except io.UnsupportedOperation:  # a text in memory is all there at once
        yield
        return
    before = os.get_blocking(number)
    os.set_blocking(number, False)
    try:
        yield
    finally:
        os.set_blocking(number, before)


def _edit_lines() -> None:
    """Let input() edit lines and remember them; what is pasted is one line, however many it has."""
    readline: Any = import_module("readline")
    if read_environment().get("TERM") != "dumb":
        readline.parse_and_bind("set enable-bracketed-paste on")


def _show(prompt: str) -> None:
    sys.stderr.write(prompt)
    sys.stderr.flush()


def with_person(work: Callable[[Person], Coroutine[Any, Any, T]]) -> T:
    """Carry work out that may ask the person, and return what it returns.

    Raises UserLeft when the person goes: the work is stopped first, and has closed what it opened.
    """
    questions: SimpleQueue[Any] = SimpleQueue()
    started: SimpleQueue[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = SimpleQueue()

    async def whole() -> T:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine that runs is a task's
        started.put((asyncio.get_running_loop(), task))
        return await work(Person(questions))

    def backstage() -> None:
        try:
            questions.put(_Finished(asyncio.run(whole())))
        except BaseException as error:  # noqa: BLE001 - it is raised again in the main thread
            questions.put(_Finished(error=error))

    # A second Ctrl-C ends the process, whatever the work is doing.
    Thread(target=backstage, daemon=True, name="weft-work").start()
    loop, task = started.get()
    try:
        finished: _Finished[T] = _serve(questions, loop)
    except (EOFError, KeyboardInterrupt) as gone:
        with contextlib.suppress(RuntimeError):  # the work may have ended just now
            loop.call_soon_threadsafe(task.cancel)
        _wait(questions)
        raise UserLeft("end" if isinstance(gone, EOFError) else "interrupt") from None
    if finished.error is not None:
        raise finished.error
    return finished.value  # pyright: ignore[reportReturnType] - what the work returned


def _serve(questions: "SimpleQueue[Any]", loop: asyncio.AbstractEventLoop) -> _Finished[Any]:
    """Ask what is to be asked, until the work is done."""
    while True:
        item = questions.get()
        if isinstance(item, _Finished):
            return item  # pyright: ignore[reportUnknownVariableType]
        if item is _LEAVING:
            raise EOFError
        line = _idle(questions) if isinstance(item, _Idling) else _asked(item)
        if line is not None:
            loop.call_soon_threadsafe(_give, item.answer, line)


def _asked(question: _Question) -> str:
    read = read_secret if question.secret else read_line
    return read(question.prompt)


def _idle(questions: "SimpleQueue[Any]") -> str | None:
    """Return what is typed before there is something else to do, or None."""
    while questions.empty():
        if select([sys.stdin], [], [], _GLANCE)[0]:
            return _read_plainly()  # line editing would take a Ctrl-D before it for a character
    return None


def _give(answer: asyncio.Future[str], line: str) -> None:
    if not answer.done():  # whoever asked may not want to know any more
        answer.set_result(line)


def _wait(questions: "SimpleQueue[Any]") -> None:
    while not isinstance(questions.get(), _Finished):
        continue
