"""What one chat message asks of the store and of the code, from its delivery to the printed reply.

    python benchmarks/one_message.py [--enforce]

A chat with one agent is in memory and waits, as in `weft chat`. A message is delivered, the agent
answers, and its reply is printed; whatever is called on the journal meanwhile is counted, and
every file of Weft in which a function is called. The second message of the chat is looked at, when
everything has been imported.
"""

import asyncio
import io
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import FrameType
from typing import Any, Final

import weft
from weft.adapters.memory import MemoryJournal
from weft.app.hosts import LOCAL
from weft.cli.chat.conversation import Subscription, subscribed
from weft.cli.chat.terminal_view import TerminalView
from weft.cli.settings import Settings
from weft.cli.streams import Streams
from weft.engine.events import Event, RequestOpened
from weft.runtime.host import Host
from weft.runtime.signals import UserMessage
from weft.spec.workflow import WorkflowSpec
from weft.testing import ScriptedModel, host_for

#: Reads of the store for one message, and files: 62 were touched before the runtime was reshaped.
QUERY_BUDGET: Final = 2
FILE_BUDGET: Final = 50

PACKAGE: Final = Path(weft.__file__).parent
READS: Final = ("read", "follow", "run", "runs", "requests", "unfinished", "next_due", "due")


class CountingJournal(MemoryJournal):
    """Counts what is asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()

    def __getattribute__(self, name: str) -> object:
        if name in (*READS, "append", "package", "beat"):
            self.asked[name] += 1
        return super().__getattribute__(name)


class Calls:
    """Notes every function of Weft that is called."""

    def __init__(self) -> None:
        self.functions: Counter[str] = Counter()
        self.files: set[str] = set()
        self.switches = 0
        self._last = ""

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Take note of one call."""
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(str(PACKAGE)):
            self.functions[f"{file}:{frame.f_code.co_qualname}"] += 1
            self.files.add(file)
            self.switches += file != self._last
            self._last = file


def chat() -> WorkflowSpec:
    """Return the package: an agent that answers its user."""
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "Chat", "initial_agent": "Helper"},
            "agents": [
                {"agent_name": "Helper", "prompt_sections": [{"id": "role", "content": "Help."}]}
            ],
            "handoffs": [{"source_agent": "Helper", "target_agent": "user"}],
        }
    )


async def one_message(
    host: Host, run: str, show: Callable[[Any], None], news: Subscription, text: str
) -> None:
    """Deliver a message, and show what happens until the run waits for the next."""
    await host.deliver(run, UserMessage(text), scope=LOCAL)
    while True:
        item = await news.item()
        show(item)
        if isinstance(item, Event) and isinstance(item.data, RequestOpened):
            return


async def measured() -> tuple[Counter[str], Calls, str]:
    """Return what the second message of a chat asks for, and what was printed."""
    journal, calls, printed = CountingJournal(), Calls(), io.StringIO()
    model = ScriptedModel({"Helper": ["one", "two", "three"]})
    async with host_for(chat(), model, journal=journal) as host:
        run = await host.start("Chat", scope=LOCAL, message="hello")
        await host.settled(run, scope=LOCAL)
        workflow = await host.workflow(run, scope=LOCAL)
        last = (await host.run(run, scope=LOCAL)).seq
        with redirect_stdout(printed), redirect_stderr(io.StringIO()):
            view = TerminalView(Streams(Settings()), workflow)
            async with subscribed(host, run, after=last) as news:
                await one_message(host, run, view.show, news, "first")
                journal.asked.clear()
                sys.setprofile(calls)
                try:
                    await one_message(host, run, view.show, news, "second")
                finally:
                    sys.setprofile(None)
    return journal.asked, calls, printed.getvalue()


def main() -> int:
    """Measure, print, and fail with --enforce where a budget is exceeded."""
    asked, calls, printed = asyncio.run(measured())
    if "three" not in printed:
        raise SystemExit(f"the reply was not printed: {printed!r}")
    reads = sum(asked[name] for name in READS)
    print(f"store: {asked['append']} appends, {reads} reads (budget {QUERY_BUDGET})")
    print(f"code: {calls.functions.total()} calls of {len(calls.functions)} functions")
    print(
        f"files: {len(calls.files)} (budget {FILE_BUDGET}), {calls.switches} switches between them"
    )
    within = reads <= QUERY_BUDGET and len(calls.files) <= FILE_BUDGET
    return 1 if "--enforce" in sys.argv and not within else 0


if __name__ == "__main__":
    sys.exit(main())
