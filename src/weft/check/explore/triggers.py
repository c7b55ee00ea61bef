"""What triggers set, as happenings: all that fires at once sets its variables together."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final, cast

from weft.check.answer_schema import Lost, follow
from weft.check.code.facts import asked_of, path_in
from weft.check.declarations import bound_model, serving
from weft.check.explore.happenings import (
    ANSWERED,
    CALLED,
    COUNTED,
    LAST,
    RETURNED,
    Caller,
    Happening,
    Moment,
    Setting,
    When,
    callers,
)
from weft.check.subject import Subject
from weft.engine.variables.conditions import UNKNOWN
from weft.engine.variables.patterns import example_of
from weft.engine.variables.trigger_index import matcher
from weft.errors import ExpressionError
from weft.findings import Json
from weft.spec.part import JsonMap
from weft.spec.tools import UiTool
from weft.spec.triggers import (
    CUSTOM,
    AgentTextTrigger,
    AgentTurnCountTrigger,
    Contains,
    CustomTrigger,
    Equals,
    Exact,
    FunctionTrigger,
    HandoffTrigger,
    LifecycleTrigger,
    Match,
    ModelFailedTrigger,
    TimerExpiredTrigger,
    ToolCallTrigger,
    ToolFailedTrigger,
    ToolResponseTrigger,
    Trigger,
    UiResponseTrigger,
    UserTextTrigger,
)
from weft.spec.types import TypeExpr
from weft.spec.variables import DerivedSource, Variable

#: What a schema may say without ruling out a value.
_REMARKS: Final = frozenset({"type", "title", "description", "default", "examples"})


@dataclass(frozen=True, slots=True)
class Firing:
    """A trigger fires: what it shares with all others that do so then, and its values.

    `at.why` says why it may not fire, and `open_value` why a value may not come.
    """

    at: Happening
    values: tuple[Json, ...]
    open_value: str = ""
    text: Match | None = None


def triggered(subject: Subject, variables: Mapping[str, Variable]) -> Iterator[Happening]:
    texts: dict[When, dict[Match, list[Setting]]] = {}
    sums: dict[Happening, list[tuple[Setting, str]]] = {}
    reader = _Reader(subject)
    for name, variable in variables.items():
        for firing, setting in reader.settings(name, variable):
            if firing.text is not None:
                found = texts.setdefault(firing.at.when, {})
                found.setdefault(firing.text, []).append(setting)
            else:
                why = firing.at.why or firing.open_value
                sums.setdefault(replace(firing.at, why=""), []).append((setting, why))
    for bare, pairs in sums.items():
        settings = [setting for setting, _ in pairs]
        why = next((why for _, why in pairs if why), "") or _several(settings)
        yield replace(bare, settings=_perhaps(settings) if why else tuple(settings), why=why)
    for when, found in texts.items():
        yield from _said(subject, when, found)


def _perhaps(settings: Iterable[Setting]) -> tuple[Setting, ...]:
    return tuple(replace(it, keeps=True) for it in settings)


def _several(settings: Iterable[Setting]) -> str:
    """Say that the values of several variables come from one call, and may hang together."""
    taken = {it.variable: None for it in settings if it.value is UNKNOWN}
    return f"{' and '.join(taken)} take their values from one call" if len(taken) > 1 else ""


def _said(
    subject: Subject, when: When, found: Mapping[Match, Sequence[Setting]]
) -> Iterator[Happening]:
    """Yield the texts that somebody may say: each sets all that waits for such a text."""
    settings = list(found.values())
    # Of replies that must be JSON it is not known which texts are in them.
    sets, complete = ((), False) if bound_model(subject, when.agent or "") else together([*found])
    for indexes in sets:
        yield Happening(when, tuple(one for index in indexes for one in settings[index]))
    if not complete:
        why = f"one text may be what {settings[0][0].variable} waits for and others too, or not"
        yield Happening(when, _perhaps(one for group in settings for one in group), why)


class _Reader:
    """Reads triggers; knows all that is called in a run, with the tools it shows to a person."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._callers: list[tuple[Caller, frozenset[str | None]]] = []
        for it in callers(subject):
            path = path_in(it.folder, it.file, subject.code) or ""
            self._callers.append((it, asked_of(subject, path, it.function)))

    def settings(self, name: str, variable: Variable) -> Iterator[tuple[Firing, Setting]]:
        """Yield what the triggers of a variable set, and when."""
        source = variable.source
        if not isinstance(source, DerivedSource):
            return
        for place, trigger in enumerate(source.triggers):
            rank = _rank(trigger, place)
            for it in self._firings(trigger, name, variable.type):
                for value in it.values:
                    yield it, Setting(name, value, keeps=value is UNKNOWN, rank=rank)
        for place, step in enumerate(source.transitions, start=len(source.triggers)):
            if step.trigger is not None:
                rank = _rank(step.trigger, place)
                for firing in self._firings(step.trigger, name, variable.type):
                    fixed = replace(firing, open_value="")
                    yield fixed, Setting(name, step.to, step.from_, rank=rank)

    def _firings(self, trigger: Trigger, name: str, type_: TypeExpr) -> Iterator[Firing]:
        match trigger:
            case AgentTextTrigger(agent=agent, match=text, value=value):
                yield Firing(Happening(When("say", agent)), (value,), text=text)
            case UserTextTrigger(match=text, value=value):
                yield Firing(Happening(When("hear")), (value,), text=text)
            case UiResponseTrigger():
                yield from self._answered(trigger)
            case ToolCallTrigger(tool=tool):
                for caller in self._calls(tool):
                    yield self._called(trigger, caller, name, type_)
            case ToolResponseTrigger(tool=tool, response_key=key, value=value):
                for caller in self._calls(tool):
                    at = Happening(caller.when, stage=RETURNED, call=tool)
                    yield Firing(at, (value,)) if key is None else _returned(at, name, tool)
            case HandoffTrigger(source_agent=source, target_agent=target, value=value):
                yield Firing(Happening(When("pass", source, target)), (value,))
            case AgentTurnCountTrigger(agent=agent, count=count, value=value):
                why = f"turn {count} of {agent}, which sets {name}, is not counted"
                at = Happening(When("close", agent), why=why, stage=COUNTED)
                yield Firing(at, (value,))
            case _:
                yield from self._at_boundary(trigger, name)

    def _at_boundary(self, trigger: Trigger, name: str) -> Iterator[Firing]:
        match trigger:
            case LifecycleTrigger(event=event, agent=agent, value=value) if event in _MOMENTS:
                yield Firing(Happening(When(_MOMENTS[event], agent)), (value,))
            case FunctionTrigger(function=function):
                why = f"what {name} is set to depends on what {function} returns"
                at = Happening(When("close"), why=why, stage=RETURNED, call=function)
                yield Firing(at, (UNKNOWN,))
            case ToolFailedTrigger(tool=tool, response_key=key, value=value):
                why = f"{tool or 'a tool'} may fail and set {name}, or not"
                agents = {it.agent: None for it in self._calls(tool)} if tool else {}
                for agent in agents or (None,):
                    at = Happening(When("turn", agent), why=why, call=f"{tool} fails")
                    yield Firing(at, (value if key is None else UNKNOWN,))
            case TimerExpiredTrigger(value=value):
                at = Happening(When("any"), why=f"a {trigger.type} trigger may set {name}")
                yield Firing(at, (value,))
            case CustomTrigger():
                why = f"a {CUSTOM}{trigger.name} trigger may set {name}"
                yield Firing(Happening(When("any"), why=why), (UNKNOWN,))
            case ModelFailedTrigger(agent=agent, response_key=key, value=value):
                why = f"the model of {agent or 'a member'} may fail and set {name}, or not"
                value = value if key is None else UNKNOWN
                yield Firing(Happening(When("fail", agent), why=why), (value,))
            case _:
                return  # after a chat nothing is decided any more

    def _calls(self, tool: str) -> Iterator[Caller]:
        declared = [it for it, _ in self._callers if it.function == tool]
        yield from (it for it in declared if it.when.moment in ("turn", "auto"))
        if not declared:
            for server in serving(self._subject, tool):
                for agent in server.agents or (None,):
                    yield Caller(tool, "", "", agent, When("turn", agent))

    def _called(
        self, trigger: ToolCallTrigger, caller: Caller, name: str, type_: TypeExpr
    ) -> Firing:
        """Say when a call sets a variable: to a value, or to what stands at an argument."""
        at = Happening(caller.when, stage=CALLED, call=trigger.tool)
        if trigger.argument is None:
            return Firing(at, (trigger.value,))
        if caller.when.moment != "auto":
            return Firing(at, (UNKNOWN,))
        fields = self._subject.models[bound_model(self._subject, caller.agent or "") or ""]
        if fields.get(trigger.argument) == type_:
            return Firing(at, (UNKNOWN,))
        why = f"the output that {trigger.tool} is called with does not tell what {name} can be"
        return Firing(at, (UNKNOWN,), why)

    def _answered(self, trigger: UiResponseTrigger) -> Iterator[Firing]:
        """Say when a person's answer sets a variable: wherever code may show them the tool."""
        tool, key = trigger.tool, trigger.response_key
        declared = self._subject.tools.get(tool)
        schema = declared.response_schema if isinstance(declared, UiTool) else None
        values, sure = _answers(schema or {}, key)
        open_value = "" if sure else f"the response_schema of {tool} leaves open which values come"
        for caller, asked in self._callers:
            own = caller.function == tool
            if own or not asked.isdisjoint((tool, None)):
                why = "" if own else f"the code of {caller.function} may ask {tool}, or not"
                at = Happening(caller.when, why=why, stage=ANSWERED, call=caller.function)
                yield Firing(at, values, open_value)


#: The boundaries at which triggers set what rules look at.
_MOMENTS: Final[dict[str, Moment]] = {
    "before_chat": "start",
    "before_agent": "begin",
    "after_agent": "close",
}


def _rank(trigger: Trigger, place: int) -> int:
    """Return which of several triggers counts: what a plug-in brings may be null, as by code."""
    if isinstance(trigger, CustomTrigger):
        return LAST
    # At a boundary, those for one agent come after those for all.
    return place + (LAST // 2 if isinstance(trigger, LifecycleTrigger) and trigger.agent else 0)


def _returned(at: Happening, name: str, function: str) -> Firing:
    return Firing(at, (UNKNOWN,), f"what {name} is set to depends on what {function} returns")


def _answers(schema: JsonMap, key: str) -> tuple[tuple[Json, ...], bool]:
    """Return what an answer may set, by a dotted path, and whether each of it can really come.

    A null in an answer sets nothing.
    """
    node = follow(schema, key)
    if node is None or isinstance(node, Lost):
        return (UNKNOWN,), not schema
    listed = node.get("enum")
    if isinstance(listed, list):
        return tuple(it for it in cast("list[Json]", listed) if it is not None), True
    return (UNKNOWN,), node.keys() <= _REMARKS


#: Of more texts than this, only some are put together.
_MOST_PARTS: Final = 6
#: Stands between parts; nobody looks for it.
_BETWEEN: Final = "\ue000"


def together(matches: Sequence[Match]) -> tuple[tuple[tuple[int, ...], ...], bool]:
    """Return the matches, by their indexes, that hold for one text while no other does.

    The second is whether all texts were thought of: without patterns, and with few parts.
    """
    texts = ["", _BETWEEN]
    for text in map(_looked_for, matches):
        texts += (text, text.lower(), text.upper(), f" {text} ")
    inside = (_looked_for(it) for it in matches if not isinstance(it, Equals | Exact))
    parts = list(dict.fromkeys(inside))
    most = len(parts) if len(parts) <= _MOST_PARTS else 2
    for size in range(1, most + 1):
        texts += [_BETWEEN.join(("", *chosen, "")) for chosen in combinations(parts, size)]
    held = (tuple(n for n, match in enumerate(matches) if _holds(match, it)) for it in texts)
    plain = all(isinstance(match, Equals | Exact | Contains) for match in matches)
    return tuple(dict.fromkeys(held)), plain and most == len(parts)


def _holds(match: Match, text: str) -> bool:
    """Tell whether a text is what a match looks for, as a run would; a bad pattern never is."""
    try:
        return matcher(match)(text)
    except ExpressionError:
        return False  # another rule reports it


def _looked_for(match: Match) -> str:
    match match:
        case Equals(equals=text) | Exact(exact=text) | Contains(contains=text):
            return text
        case _:
            return example_of(match.regex) or ""
