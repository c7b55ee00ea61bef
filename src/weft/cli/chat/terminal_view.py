"""A run shown while it happens: replies on stdout, everything else on stderr."""

import json
import sys
from collections import deque
from time import monotonic
from typing import Final, Protocol

from weft.cli.chat.form import shown_payload
from weft.cli.pages.events import (
    how_it_ended,
    progress_text,
    replacement_text,
    summary,
    writer_text,
)
from weft.cli.pages.flow import agent_name
from weft.cli.results import document
from weft.cli.starting import is_badged, model_of
from weft.cli.streams import Streams, clean, clean_lines, finish, folded
from weft.context.audience import Audience
from weft.engine import events
from weft.engine.events import Event, EventData
from weft.inspect.flow import is_step_call, retry_delay
from weft.ports.live import Delta, ModelRetry, TextDelta, ToolProgress
from weft.runtime.workflow import Workflow
from weft.wire.events import event_data, progress_data, readable_text

_MARGIN: Final = "    "

#: Events shown besides the replies: the margin, which is deeper below a turn, and the most lines.
_SHOWN: Final[dict[type[EventData], tuple[str, int]]] = {
    **dict.fromkeys(
        (
            events.TurnStarted,
            events.RunForked,
            events.RequestExpired,
            events.StopRequested,
            events.Forked,
            events.Joined,
            events.Branched,
            events.ArtifactArrived,
            events.BatchesFlushed,
            events.RunEnding,
        ),
        ("", 1),
    ),
    events.DeliveryMissed: ("", 3),
    **dict.fromkeys(
        (
            events.ToolCalled,
            events.ToolReturned,
            events.ModelConsulted,
            events.DocumentWritten,
            events.VariableSet,
            events.VariableRefused,
            events.OutputRefused,
            events.DeliveryDeferred,
        ),
        (_MARGIN, 1),
    ),
    **dict.fromkeys(
        (
            events.ToolFailed,
            events.ContextFetched,
            events.ConditionJudged,
            events.HandedOff,
            events.ModelFailed,
            events.TurnFailed,
        ),
        (_MARGIN, 3),
    ),
}

#: Events that may explain the next failure of a turn or of the run.
_FAILURES: Final = (events.ContextFetched, events.ModelFailed, events.ToolFailed, events.TurnFailed)


class RunView(Protocol):
    """Shows the events of a run."""

    def show(self, item: Event | Delta) -> None:
        """Show one more event or piece of text."""
        ...

    def tick(self) -> None:
        """Show that the run is still waiting; called about once a second without an item."""
        ...


class TerminalView:
    """Shows a run to a person."""

    def __init__(
        self,
        streams: Streams,
        workflow: Workflow,
        *,
        model: str = "",
        echo: bool = False,
    ) -> None:
        self._streams = streams
        self._workflow = workflow
        self._audience = Audience(workflow.spec)
        self._model = model
        #: Whether the messages of the user are shown as well.
        self._echo = echo
        #: The open model calls with their agent and turn; the call whose reply is being printed,
        #: and the text so far; and the events of other turns meanwhile.
        self._callers: dict[int, tuple[str, int]] = {}
        self._spoken: tuple[int, str] | None = None
        self._held: deque[Event | ModelRetry] = deque()
        #: Whether the last line is a progress line; and when the last item arrived.
        self._has_status = False
        self._since = monotonic()
        #: The calls at hook points, and who answered for the agent of a turn.
        self._points: set[str] = set()
        self._answerers: dict[int, str] = {}
        #: The agents of the current turns; several if they run in parallel.
        self._turns: dict[int, str] = {}
        #: The turns whose last reply was rejected.
        self._refused: set[int] = set()
        #: The last failure that was shown.
        self._failure = ""
        #: The last replaced model that was shown.
        self._instead_of = ""
        self._columns = streams.settings.columns if sys.stderr.isatty() else None

    def show(self, item: Event | Delta) -> None:
        """Print an item; a reply that is being streamed is not interrupted."""
        if isinstance(item, ToolProgress):
            self._progress(item)
            return
        self._since = monotonic()
        if self._has_status:
            self._streams.status("")
            self._has_status = False
        if isinstance(item, TextDelta):
            self._piece(item)
        elif self._interrupts(item):
            self._held.append(item)
        else:
            self._show(item)
            while self._held and not self._interrupts(self._held[0]):
                self._show(self._held.popleft())

    def _progress(self, item: ToolProgress) -> None:
        """Show the progress of a tool, unless a reply is being streamed."""
        if self._spoken is None:
            self._streams.status(f"{_MARGIN}{item.tool}: {progress_text(item.share, item.text)}")
            self._has_status = True

    def tick(self) -> None:
        """Show how long the current model calls have been silent."""
        if self._spoken is not None:
            return
        agents = [
            agent
            for agent, _ in self._callers.values()
            if not is_badged(model_of(self._workflow, agent, self._model))
        ]
        if agents:
            seconds = monotonic() - self._since
            names = ", ".join(dict.fromkeys(agents))
            self._streams.status(f"{_MARGIN}{names}: waiting for the model ({seconds:.0f} s)")
            self._has_status = True

    def _interrupts(self, item: Event | ModelRetry) -> bool:
        """Return whether an item belongs to another turn than the reply that is being streamed."""
        if self._spoken is None:
            return False
        if isinstance(item, ModelRetry):
            return item.call != self._spoken[0]
        return item.turn not in (0, self._callers[self._spoken[0]][1])

    def _show(self, item: Event | ModelRetry) -> None:
        if isinstance(item, ModelRetry):
            self._end_line()
            agent, _ = self._callers.get(item.call, ("the model", 0))
            self._note(f"{agent}: {item.text}", _MARGIN)
            return
        data = item.data
        match data:
            case events.RequestAnswered(value=value) if not self._is_flow:
                self._echoed(value if isinstance(value, str) else json.dumps(value))
            case events.RequestOpened(kind="ui") | events.RequestAnswered():
                if self._echo or self._is_flow:
                    self._note(summary(item, self._workflow), _MARGIN)
            case events.MessageShown(text=text):
                self._say(self._workflow.name, text)
            case events.ContextAssembled(agent=agent):
                self._callers[item.seq] = agent, item.turn
                if item.turn in self._refused:
                    self._refused.discard(item.turn)
                    self._note(f"{agent} tries again", _MARGIN)
            case events.ModelReplied():
                self._answerers[item.turn] = data.answerer
                self._reply(item.cause, item.actor.removeprefix("agent:"), data)
            case events.MessageSent(agent=agent, text=text, held=False):
                self._sent(agent, text, self._answerers.get(item.turn, "model"))
            case events.SurfaceShown():
                self._surface(data)
            case events.Joined(name=name, text=str(text)) if self._audience.sees_agent(name):
                self._turns.clear()
                self._say(name, text)
            case _:
                self._step(item)

    def _echoed(self, text: str) -> None:
        if self._echo and self._audience.sees_user_text(text):
            self._say("you", text)

    def _is_quiet_point(self, data: EventData) -> bool:
        """Return whether a function at a hook point is called, or changed nothing."""
        if isinstance(data, events.ToolCalled) and data.hook not in (None, "handoff"):
            self._points.add(data.id)
            return True
        return isinstance(data, events.ToolReturned) and (
            # On a board, the artifacts show what code returned.
            data.id in self._points and (data.value is None or self._is_board)
        )

    def _is_quiet(self, event: Event) -> bool:
        """Return whether other lines already show an event."""
        if self._is_quiet_point(event.data):
            return True
        if not self._is_flow:
            return False
        match event.data:
            case events.ToolReturned(id=id_) | events.ToolFailed(id=id_):
                return is_step_call(id_)  # The next event shows its values or its failure.
            case events.ContextFetched():
                return summary(event, self._workflow) == "fetched nothing"
            case _:
                return False

    @property
    def _is_board(self) -> bool:
        return self._workflow.compiled.board is not None

    @property
    def _is_flow(self) -> bool:
        return self._workflow.compiled.flow is not None

    def _published(self, event: Event, data: events.ArtifactPublished) -> None:
        """Show an artifact; those of agents are the result of a board."""
        text = summary(event, self._workflow)
        if not event.turn:
            self._note(text, "", most=3)
            return
        badge = _badge(self._answerers.get(event.turn, "model"))
        self._streams.result(
            self._streams.paint(data.by, "bold") + badge + clean(text.removeprefix(data.by))
        )
        finish()

    def _step(self, event: Event) -> None:
        self._end_line()
        if self._is_quiet(event):
            return
        if isinstance(event.data, events.ArtifactPublished):
            self._published(event, event.data)
        if isinstance(event.data, events.TurnStarted):
            self._turns[event.turn] = (self._is_flow and event.data.step) or event.data.agent
            self._failure = ""
        elif isinstance(event.data, events.OutputRefused):
            self._refused.add(event.turn)
        elif isinstance(event.data, events.ModelFailed):
            self._callers.pop(event.cause, None)
        if type(event.data) in _SHOWN:
            margin, most = _SHOWN[type(event.data)]
            is_parallel = margin and len(self._turns) > 1 and event.turn in self._turns
            whose = f"{self._turns[event.turn]}: " if is_parallel else ""
            self._note(whose + self._without_repetition(event), margin, most)
        elif isinstance(event.data, events.TimerSet) and retry_delay(event):
            self._note(summary(event, self._workflow), _MARGIN)
        if isinstance(event.data, events.TurnEnded | events.TurnFailed):
            self._turns.pop(event.turn, None)
        elif isinstance(event.data, events.Joined):
            self._turns.clear()  # Some may have been cancelled.

    def _without_repetition(self, event: Event) -> str:
        """Return the line of an event, without a reason that the line before shows."""
        text = summary(event, self._workflow)
        match event.data:
            case events.TurnFailed(error=reason) | events.RunEnding(reason=reason):
                if reason in self._failure:
                    return text.removesuffix(f": {reason}")
            case events.VariableSet(writer=writer) if self._is_flow:
                return text.removesuffix(f" ({writer_text(writer)})")
            case _:
                pass
        if isinstance(event.data, _FAILURES):
            self._failure = text
        return text

    def _piece(self, delta: TextDelta) -> None:
        """Print a piece of a reply, unless the reply was printed before."""
        agent, _ = self._callers.get(delta.call, ("", 0))
        if not agent or not self._is_streamed(agent):
            return
        if self._spoken is None and delta.offset == 0:
            self._streams.part(self._label(agent))
            self._spoken = delta.call, ""
        elif self._spoken is None or self._spoken[0] != delta.call:
            return  # Of parallel replies, only the first is streamed.
        self._streams.part(clean_lines(delta.text))
        self._spoken = delta.call, self._spoken[1] + delta.text

    def _is_streamed(self, agent: str) -> bool:
        """Return whether the replies of an agent are printed while they arrive."""
        return (
            self._streams.settings.terminal
            and self._workflow.views[agent].output is None
            and not is_badged(model_of(self._workflow, agent, self._model))
            and self._audience.sees_while_streaming(agent)
        )

    def _reply(self, call: int, agent: str, data: events.ModelReplied) -> None:
        said = self._spoken[1] if self._spoken is not None and self._spoken[0] == call else None
        self._callers.pop(call, None)
        # A fallback model may have answered with another text.
        if said is not None and data.text.startswith(said):
            self._streams.part(clean_lines(data.text[len(said) :]) + _badge(data.answerer))
            self._end_line()
            self._note_replacement(data)
        else:
            self._end_line()
            self._note_replacement(data)
            self._print_reply(agent, data)
        for retry in (
            data.retries if self._echo else ()
        ):  # In a live run, each was shown when it happened.
            self._note(retry, _MARGIN)
        if data.finish_reason:
            self._note(f"the reply of {agent} {how_it_ended(data.finish_reason)}", _MARGIN)

    def _note_replacement(self, data: events.ModelReplied) -> None:
        """Show that a fallback model answers; once, until that changes."""
        if data.instead_of and data.instead_of != self._instead_of:
            self._note(replacement_text(data.model, data.instead_of), _MARGIN, most=3)
        self._instead_of = data.instead_of

    def _print_reply(self, agent: str, data: events.ModelReplied) -> None:
        if self._is_board and self._workflow.views[agent].output is not None:
            return  # It is published or rejected.
        text = data.text if data.shown is None else data.shown
        text = "" if data.held else text
        if not (data.text.strip() or data.tool_requests):
            self._note(f"{agent} says nothing", _MARGIN)
        else:
            self._print_text(agent, data.text, text, data.answerer)

    def _sent(self, agent: str, text: str, answerer: str) -> None:
        """Show a reply after its hooks."""
        if not text.strip():
            self._note(f"{agent} says nothing", _MARGIN)
        self._print_text(agent, text, readable_text(self._workflow, agent, text), answerer)

    def _print_text(self, agent: str, text: str, words: str, answerer: str) -> None:
        """Show the text that users see of a reply; a reply hidden from users is a note."""
        if words.strip() and self._audience.hears(agent, text):
            self._say(agent, words, answerer)
        elif words.strip() and self._is_flow:
            self._note(f"{agent_name(agent)}{_badge(answerer)} says: {words}", _MARGIN, most=3)
        elif words.strip():
            self._note(f"{agent} says (hidden from users): {words}", _MARGIN)

    def _surface(self, data: events.SurfaceShown) -> None:
        """Show the payload of a tool in a frame."""
        self._end_line()
        paint = self._streams.paint_error
        self._streams.note(paint(f"{_MARGIN}+- {data.tool} shows {data.component}", "cyan"))
        for line in shown_payload(data.payload):
            self._streams.note(f"{_MARGIN}|  {line}")
        self._streams.note(paint(f"{_MARGIN}+-", "cyan"))

    def _say(self, who: str, text: str, answerer: str = "model") -> None:
        self._end_line()
        self._streams.result(self._label(who, answerer) + clean_lines(text))
        finish()

    def _label(self, who: str, answerer: str = "model") -> str:
        return f"{self._streams.paint(who, 'bold')}{_badge(answerer)}: "

    def _note(self, text: str, margin: str, most: int = 1) -> None:
        lines = [margin + clean(text)]
        if self._columns is not None:
            lines = folded(lines[0], self._columns, most=most)
        for line in lines:
            self._streams.note(self._streams.paint_error(line, "dim" if margin else "cyan"))

    def _end_line(self) -> None:
        if self._spoken is not None:
            self._streams.result("")
            self._spoken = None


def _badge(answerer: str) -> str:
    """Return the mark of a reply that no language model made."""
    return "" if answerer == "model" else f" ({answerer})"


class JsonLines:
    """Shows a run to a program: one line of JSON per event."""

    def __init__(self, streams: Streams, workflow: Workflow, run: str) -> None:
        self._streams = streams
        self._run = run
        self._workflow = workflow

    def show(self, item: Event | Delta) -> None:
        """Print an event or progress; pieces of text are part of the reply that follows."""
        if isinstance(item, Event):
            line = document({"event": event_data(item, self._run, self._workflow)}, line=True)
        elif isinstance(item, ToolProgress):
            line = document({"progress": progress_data(item)}, line=True)
        else:
            return
        self._streams.result(line)
        finish()

    def tick(self) -> None:
        """Print nothing: a program needs no sign of life."""
