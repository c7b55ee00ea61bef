"""A run shown while it happens: what agents say on stdout, everything else on stderr."""

import json
import sys
from collections import deque
from typing import Final, Protocol

from weft.cli.chat.form import shown_payload
from weft.cli.formats.documents import document_line
from weft.cli.models import is_badged, model_of
from weft.cli.pages.event_lines import (
    how_it_ended,
    progress_text,
    summary,
    who_stood_in,
    writer_text,
)
from weft.cli.pages.flow_lines import agent_name, is_step_call
from weft.cli.streams import Streams, finish
from weft.cli.text import clean, clean_lines, folded
from weft.context.audience import Audience
from weft.engine import events
from weft.engine.events import Event, EventData
from weft.inspect.flow import retry_delay
from weft.runtime.runs.live_stream import Delta, ModelRetry, TextDelta, ToolProgress
from weft.runtime.workflow import Workflow
from weft.wire.events import event_data, progress_data, readable_text

#: What is shown of the work on a run, beside what is said; the second ones stand under a turn.
_STEPS: Final[tuple[type[EventData], ...]] = (
    events.TurnStarted,
    events.RunForked,
    events.RequestExpired,
    events.StopAsked,
    events.Forked,
    events.Joined,
    events.Branched,
    events.ArtifactArrived,
    events.DeliveryMissed,
    events.BatchesFlushed,
    events.RunEnding,
)
_DETAILS: Final[tuple[type[EventData], ...]] = (
    events.ToolCalled,
    events.ToolReturned,
    events.ToolFailed,
    events.ModelConsulted,
    events.ContextFetched,
    events.DocumentWritten,
    events.ConditionJudged,
    events.VariableSet,
    events.VariableRefused,
    events.HandedOff,
    events.ModelFailed,
    events.OutputRefused,
    events.TurnFailed,
    events.DeliveryDeferred,
)

_MARGIN: Final = "    "

#: What is worth more than one line.
_LONG: Final = (
    events.HandedOff,
    events.ModelFailed,
    events.ToolFailed,
    events.ContextFetched,
    events.ConditionJudged,
    events.DeliveryMissed,
    events.TurnFailed,
)

#: What may say why a turn or the run fails next.
_FAILURES: Final = (events.ContextFetched, events.ModelFailed, events.ToolFailed, events.TurnFailed)


class RunView(Protocol):
    """Shows everything that happens in a run."""

    def show(self, item: Event | Delta) -> None:
        """Show one more event or piece of text."""
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
        #: Whether what the user said is shown as well.
        self._echo = echo
        #: Who speaks at which call, in which turn; the call whose words are being printed, and how
        #: much of them; and what other turns have done meanwhile.
        self._callers: dict[int, tuple[str, int]] = {}
        self._spoken: tuple[int, str] | None = None
        self._held: deque[Event | ModelRetry] = deque()
        #: Whether the last line says how far a tool has come.
        self._moving = False
        #: The calls at boundaries, and who answered for the agent of which turn.
        self._points: set[str] = set()
        self._answerers: dict[int, str] = {}
        #: Who takes which turn at present; several where they do so side by side.
        self._turns: dict[int, str] = {}
        #: The turns whose last reply was refused.
        self._refused: set[int] = set()
        #: What was shown last of something that failed.
        self._failure = ""
        #: What was shown last of a model that did not answer.
        self._instead_of = ""
        self._columns = streams.settings.columns if sys.stderr.isatty() else None

    def show(self, item: Event | Delta) -> None:
        """Print what a person wants to know of it; words under way are not interrupted."""
        if isinstance(item, ToolProgress):
            self._progress(item)
            return
        if self._moving:
            self._streams.status("")
            self._moving = False
        if isinstance(item, TextDelta):
            self._piece(item)
        elif self._interrupts(item):
            self._held.append(item)
        else:
            self._show(item)
            while self._held and not self._interrupts(self._held[0]):
                self._show(self._held.popleft())

    def _progress(self, item: ToolProgress) -> None:
        """Show how far a tool has come, while nobody speaks; what it came to stands in its end."""
        if self._spoken is None:
            self._streams.status(f"{_MARGIN}{item.tool}: {progress_text(item.share, item.text)}")
            self._moving = True

    def _interrupts(self, item: Event | ModelRetry) -> bool:
        """Tell whether another turn than the one that speaks has done something."""
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
            case events.MessageSent(agent=agent, text=text):
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
        """Tell whether a function at a boundary is called, or has changed nothing."""
        if isinstance(data, events.ToolCalled) and data.hook not in (None, "handoff"):
            self._points.add(data.id)
            return True
        return isinstance(data, events.ToolReturned) and (
            # On a board, what was published says what code came to.
            data.id in self._points and (data.value is None or self._is_board)
        )

    def _is_quiet(self, event: Event) -> bool:
        """Tell whether other lines say what is to be known of an event."""
        if self._is_quiet_point(event.data):
            return True
        if not self._is_flow:
            return False
        match event.data:
            case events.ToolReturned(id=id_) | events.ToolFailed(id=id_):
                return is_step_call(id_)  # What is set, or why it failed, comes next.
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
        """Show an artifact: what agents publish is what a board says."""
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
        if isinstance(event.data, _STEPS):
            most = 3 if isinstance(event.data, _LONG) else 1
            self._note(self._told_once(event), "", most)
        elif isinstance(event.data, _DETAILS):
            # Why a turn is handed off is worth a second line, what a tool returned is not.
            most = 3 if isinstance(event.data, _LONG) else 1
            whose = f"{self._turns[event.turn]}: " if self._is_one_of_several(event.turn) else ""
            self._note(whose + self._told_once(event), _MARGIN, most)
        elif isinstance(event.data, events.TimerSet) and retry_delay(event):
            self._note(summary(event, self._workflow), _MARGIN)
        if isinstance(event.data, events.TurnEnded | events.TurnFailed):
            self._turns.pop(event.turn, None)
        elif isinstance(event.data, events.Joined):
            self._turns.clear()  # Some of them may have been broken off.

    def _told_once(self, event: Event) -> str:
        """Return what is shown of an event: why it failed only if the line before does not say."""
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

    def _is_one_of_several(self, turn: int) -> bool:
        return len(self._turns) > 1 and turn in self._turns

    def _piece(self, delta: TextDelta) -> None:
        """Print a piece of what is being said, unless it comes after its reply."""
        agent, _ = self._callers.get(delta.call, ("", 0))
        if not agent or not self._flows(agent):
            return
        if self._spoken is None and delta.offset == 0:
            self._streams.part(self._label(agent))
            self._spoken = delta.call, ""
        elif self._spoken is None or self._spoken[0] != delta.call:
            return  # Of several that speak side by side, the others come whole.
        self._streams.part(clean_lines(delta.text))
        self._spoken = delta.call, self._spoken[1] + delta.text

    def _flows(self, agent: str) -> bool:
        """Tell whether an agent's words are printed as they come."""
        return (
            self._streams.settings.terminal
            and self._workflow.views[agent].output is None
            and not is_badged(model_of(self._workflow, agent, self._model))
            and self._audience.sees_while_streaming(agent)
        )

    def _reply(self, call: int, agent: str, data: events.ModelReplied) -> None:
        said = self._spoken[1] if self._spoken is not None and self._spoken[0] == call else None
        self._callers.pop(call, None)
        # Another model may have stepped in for the one that was named, with words of its own.
        if said is not None and data.text.startswith(said):
            self._streams.part(clean_lines(data.text[len(said) :]) + _badge(data.answerer))
            self._end_line()
            self._stood_in(data)
        else:
            self._end_line()
            self._stood_in(data)
            self._words(agent, data)
        for retry in data.retries if self._echo else ():  # Live, each was shown when it happened.
            self._note(retry, _MARGIN)
        if data.finish:
            self._note(f"the reply of {agent} {how_it_ended(data.finish)}", _MARGIN)

    def _stood_in(self, data: events.ModelReplied) -> None:
        """Show that another model answers than was to, once for as long as that stays so."""
        if data.instead_of and data.instead_of != self._instead_of:
            self._note(who_stood_in(data.model, data.instead_of), _MARGIN, most=3)
        self._instead_of = data.instead_of

    def _words(self, agent: str, data: events.ModelReplied) -> None:
        if self._is_board and self._workflow.views[agent].output is not None:
            return  # It is published, or refused.
        text = data.text if data.shown is None else data.shown
        if not (data.text.strip() or data.tool_requests):
            self._note(f"{agent} says nothing", _MARGIN)
        else:
            self._heard(agent, data.text, text, data.answerer)

    def _sent(self, agent: str, text: str, answerer: str) -> None:
        """Show what an agent says after its hooks."""
        if not text.strip():
            self._note(f"{agent} says nothing", _MARGIN)
        self._heard(agent, text, readable_text(self._workflow, agent, text), answerer)

    def _heard(self, agent: str, text: str, words: str, answerer: str) -> None:
        """Show the words that users hear of a text; what they do not hear, as a note."""
        if words.strip() and self._audience.hears(agent, text):
            self._say(agent, words, answerer)
        elif words.strip() and self._is_flow:
            self._note(f"{agent_name(agent)}{_badge(answerer)} says: {words}", _MARGIN, most=3)
        elif words.strip():
            self._note(f"{agent} says, unseen by users: {words}", _MARGIN)

    def _surface(self, data: events.SurfaceShown) -> None:
        """Show what a tool shows, in a frame."""
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
    """Return what stands beside words that no model has said."""
    return "" if answerer == "model" else f" ({answerer})"


class JsonLines:
    """Shows a run to a program: one line of JSON for each event."""

    def __init__(self, streams: Streams, workflow: Workflow, run: str) -> None:
        self._streams = streams
        self._run = run
        self._workflow = workflow

    def show(self, item: Event | Delta) -> None:
        """Print an event, or progress; pieces of text come again with the reply they belong to."""
        if isinstance(item, Event):
            line = document_line({"event": event_data(item, self._run, self._workflow)})
        elif isinstance(item, ToolProgress):
            line = document_line({"progress": progress_data(item)})
        else:
            return
        self._streams.result(line)
        finish()
