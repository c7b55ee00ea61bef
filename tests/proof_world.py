"""Every run of a small workflow, played against the engine to the last state."""

import json
from collections import deque
from dataclasses import dataclass, field
from itertools import product

from engine_play import Play
from weft.check.explore.witness import show
from weft.engine.commands import CallModel, CallTool
from weft.engine.compiled import compile_workflow
from weft.engine.events import (
    HandedOff,
    ModelReplied,
    RequestAnswered,
    RequestOpened,
    RunStarted,
    ToolFailed,
    ToolRequest,
    ToolReturned,
    TurnStarted,
    VariableRefused,
    VariableSet,
)
from weft.engine.reduce import pending
from weft.errors import Refuse, RetryModel, ToolError
from weft.runtime.context_variables import Context
from weft.spec.workflow import WorkflowSpec

#: No trigger waits for a later turn of an agent.
COUNTED = 4


class AskedError(Exception):
    """A tool has asked what nobody has answered yet."""


@dataclass(frozen=True)
class Choices:
    """What models, people and the environment may say."""

    texts: tuple[str, ...]
    #: Arguments of any tool that a model calls, the fields of a reply, answers to a UI tool.
    arguments: tuple[dict, ...]
    outputs: tuple[dict, ...]
    answers: tuple[object, ...]
    #: The values from outside that a run begins with, and the words of the user, if any.
    starts: tuple[tuple[dict, str | None], ...]


@dataclass
class World:
    """All states of all runs: who is to speak with which values, and what follows."""

    spec: WorkflowSpec
    choices: Choices
    code: dict[str, str]
    follow: dict = field(default_factory=dict)
    rests: set = field(default_factory=set)
    spoke: set = field(default_factory=set)
    rules: set = field(default_factory=set)
    truncated: bool = False
    #: An automatic tool has failed in some run, and the run with it.
    broken: bool = False

    def __post_init__(self):
        self.compiled = compile_workflow(self.spec)
        self.counts = bool(self.compiled.triggers.agent_turn_count)
        self.bound = {it.agent for it in self.spec.registry if it.model}
        self.answers: list = []
        names: dict = {"use_ui_tool": self.ask, "Refuse": Refuse, "RetryModel": RetryModel}
        for text in self.code.values():
            exec(text, names)
        self.functions = names

    def begin(self):
        """Yield a run for each way in which the values outside may be."""
        for values, words in self.choices.starts:
            play = Play(self.compiled)
            play.start(message=words, **values)
            yield play

    def explore(self, most=1500):
        """Play everything; more states than `most` are left out."""
        waiting = deque(self.begin())
        for play in waiting:
            self.note(play)
        while waiting:
            play = waiting.popleft()
            key = self.key(play)
            if key in self.follow:
                continue
            if len(self.follow) >= most:
                self.truncated = True
                break
            self.follow[key] = set()
            for after in self.next(play):
                self.note(after)
                self.follow[key].add(self.key(after))
                waiting.append(after)
        return self

    def next(self, play):
        """Yield the run after each thing that may happen next, with the new events only."""
        for happening in self.options(play):
            after = Play(self.compiled, play.state)
            for data in happening:
                after.take(data)
            # How often replies may be sent back is a limit, like that of turns.
            if "gave no reply that fits" not in after.state.reason:
                yield after

    def key(self, play):
        state = play.state
        turn = state.turn
        where = (turn.agent, turn.stage, len(turn.calls), turn.refusals) if turn else state.outcome
        calls = (
            [(it.tool, str(it.arguments), it.answers) for it in turn.calls.values()] if turn else []
        )
        asked = tuple((it.kind, it.agent, it.tool) for it in state.requests.values())
        limited = state.last if min(it.limit for it in self.compiled.agents.values()) < 50 else None
        taken = [(agent, min(count, COUNTED)) for agent, count in sorted(state.taken.items())]
        values = json.dumps(dict(state.variables))
        key = (where, str(calls), asked, limited, str(taken) if self.counts else "", values)
        if any(it.kind == "chat" for it in state.requests.values()) or state.outcome == "completed":
            self.rests.add(key)
        return key

    def note(self, play):
        for event in play.events:
            match event.data:
                case TurnStarted(agent=agent):
                    self.spoke.add(agent)
                case HandedOff(rule=rule):
                    self.rules.add(rule)
                case _:
                    continue

    def options(self, play):
        """Yield what may happen next, each as the events that come in together."""
        for request in play.state.requests.values():
            answers = self.choices.texts if request.kind == "chat" else self.choices.answers
            yield from ((RequestAnswered(request.id, it, "user"),) for it in answers)
        for command in pending(play.state):
            match command:
                case CallModel(agent=agent, turn=turn, call=call):
                    texts = self.choices.texts
                    if agent in self.bound:
                        texts = map(json.dumps, self.choices.outputs)
                    yield from ((ModelReplied(turn, call, text),) for text in texts)
                    tools = self.compiled.agents[agent].tools
                    for tool, arguments in product(tools, self.choices.arguments):
                        request = ToolRequest(f"{turn}-{call}", tool, arguments)
                        yield (ModelReplied(turn, call, "", (request,)),)
                case CallTool():
                    yield self.called(play, command)

    def called(self, play, command):
        """Call a tool: what it asks a person comes first, and then it is called again."""
        self.answers = list(command.answers)
        context = Context(
            self.compiled, play.state, agent=command.agent, tool=command.tool, key="k"
        )
        try:
            value = self.functions[command.tool](context, **command.arguments)
        except AskedError as error:
            id_ = f"q{play.state.seq}"
            return (RequestOpened(id_, "ui", command.agent, tool=str(error), call=command.id),)
        except RetryModel as error:
            # Sent back, an automatic tool gets another reply.
            return (ToolFailed(command.id, str(error), "retry"),)
        except Refuse as error:
            self.broken = self.broken or command.id.startswith("auto")
            return (*context.finish(), ToolFailed(command.id, str(error), "refused"))
        except (ToolError, KeyError, ValueError) as error:
            # What a call that fails has set does not count.
            self.broken = self.broken or command.id.startswith("auto")
            return (ToolFailed(command.id, str(error)),)
        return (*context.finish(), ToolReturned(command.id, value))

    def ask(self, tool):
        """Ask a person, in place of the function that tools call."""
        if not self.answers:
            raise AskedError(tool)
        self.answers.pop(0)

    def lost(self):
        """Return the states from which no end can be reached."""
        before: dict = {}
        for key, after in self.follow.items():
            for one in after:
                before.setdefault(one, set()).add(key)
        good, waiting = set(self.rests), list(self.rests)
        while waiting:
            fresh = before.get(waiting.pop(), set()) - good
            good |= fresh
            waiting.extend(fresh)
        return self.follow.keys() - good

    def replays(self, witness):
        """Tell whether some run takes the way that a finding shows."""
        values, stations = _stations(witness)
        waiting, met = deque(), set()
        for play in self.begin():
            at = _follow(stations, values, play, 0)
            if at is not None:
                waiting.append((play, at))
        while waiting:
            play, at = waiting.popleft()
            if at == len(stations):
                return True
            if (self.key(play), at) in met:
                continue
            met.add((self.key(play), at))
            for after in self.next(play):
                further = _follow(stations, values, after, at, play.state.variables)
                if further is not None:
                    waiting.append((after, further))
        return False


def _stations(witness):
    """Read a way: with which values it begins, and who comes up, with all that is set by then."""
    held, stations, first = {}, [], None
    for word in witness.split(" -> "):
        if word.startswith("("):
            held = {**held, **dict(part.split(" = ") for part in word[1:-1].split(", "))}
        else:
            first = held if first is None else first
            stations.append((word.removesuffix(" (passed over)"), held))
    return first, stations


def _follow(stations, begin, play, at, values=None):
    """Return how far on a way the events of a run have led; None if they leave it."""
    for who, held in _arrivals(play, dict(values or {}), stations[at - 2][0] if at > 1 else None):
        if at == len(stations):
            break
        if who == "start":
            fits = all(show(held[name]) == text for name, text in begin.items())
            # Words given at the start are the user's.
            at += stations[at][0] == "user" and play.state.status != "waiting"
        else:
            name, wanted = stations[at]
            fits = who == name and all(show(held[it]) == text for it, text in wanted.items())
            at += 1
        if not fits:
            return None
    return at


def _arrivals(play, values, asking):
    """Return who comes up in the events of a run, with the values then.

    What an event sets stands behind it, so the values are those before the next other event.
    """
    found, first = [], play.compiled.orchestrator.initial_agent
    for event in play.events:
        data = event.data
        if isinstance(data, VariableSet | VariableRefused):
            values |= {data.name: data.value} if isinstance(data, VariableSet) else {}
            continue
        values = dict(values)
        match data:
            case RunStarted(values=given, message=words):
                values |= {**play.compiled.start_values, **given}
                found.append(("start", values))
                if play.compiled.startup != "UserDriven" or words is not None:
                    found.append((first, values))
            case RequestOpened(kind="chat"):
                found.append(("user", values))
            case HandedOff(target=target) if target != "user":
                found.append((target, values))
            case RequestAnswered(id=id_) if not id_.startswith("q"):
                found.append((asking or first, values))
            case _:
                continue
    return found
