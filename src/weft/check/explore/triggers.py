"""Triggers as happenings: triggers that fire at once set their variables together."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final, cast

from weft.check.answer_schema import UnknownKey, follow
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

#: Keywords of a schema that do not exclude values.
_REMARKS: Final = frozenset({"type", "title", "description", "default", "examples"})


@dataclass(frozen=True, slots=True)
class Firing:
    """The firing of a trigger: its moment, shared with other triggers, and its values.

    `at.why` is why it may not fire, and `open_value` why a value may not occur.
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
    return tuple(replace(setting, keeps=True) for setting in settings)


def _several(settings: Iterable[Setting]) -> str:
    """Return the reason for uncertainty when one call sets several unknown variables."""
    taken = {setting.variable: None for setting in settings if setting.value is UNKNOWN}
    return f"{' and '.join(taken)} take their values from one call" if len(taken) > 1 else ""


def _said(
    subject: Subject, when: When, found: Mapping[Match, Sequence[Setting]]
) -> Iterator[Happening]:
    """Yield the possible messages: each sets the variables whose triggers match it."""
    settings = list(found.values())
    # The texts inside a structured reply are unknown.
    sets, complete = ((), False) if bound_model(subject, when.agent or "") else together([*found])
    for indexes in sets:
        yield Happening(when, tuple(one for index in indexes for one in settings[index]))
    if not complete:
        why = f"one text may be what {settings[0][0].variable} waits for and others too, or not"
        yield Happening(when, _perhaps(one for group in settings for one in group), why)


class _Reader:
    """Reads triggers, knowing all functions that a run calls and the UI tools they show."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._callers: list[tuple[Caller, frozenset[str | None]]] = []
        for caller in callers(subject):
            path = path_in(caller.folder, caller.file, subject.code) or ""
            self._callers.append((caller, asked_of(subject, path, caller.function)))

    def settings(self, name: str, variable: Variable) -> Iterator[tuple[Firing, Setting]]:
        """Yield what the triggers of a variable set, and when."""
        source = variable.source
        if not isinstance(source, DerivedSource):
            return
        for place, trigger in enumerate(source.triggers):
            rank = _rank(trigger, place)
            for fired in self._firings(trigger, name, variable.type):
                for value in fired.values:
                    yield fired, Setting(name, value, keeps=value is UNKNOWN, rank=rank)
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
            case ToolCallTrigger(tool=tool) | ToolResponseTrigger(tool=tool, argument=str()):
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
                agents = {call.agent: None for call in self._calls(tool)} if tool else {}
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
                return  # there are no decisions after a chat

    def _calls(self, tool: str) -> Iterator[Caller]:
        declared = [caller for caller, _ in self._callers if caller.function == tool]
        yield from (call for call in declared if call.when.moment in ("turn", "auto"))
        if not declared:
            for server in serving(self._subject, tool):
                for agent in server.agents or (None,):
                    yield Caller(tool, "", "", agent, When("turn", agent))

    def _called(
        self,
        trigger: ToolCallTrigger | ToolResponseTrigger,
        caller: Caller,
        name: str,
        type_: TypeExpr,
    ) -> Firing:
        """Return when a call sets a variable, to a fixed value or to an argument."""
        stage = CALLED if isinstance(trigger, ToolCallTrigger) else RETURNED
        at = Happening(caller.when, stage=stage, call=trigger.tool)
        if trigger.argument is None:
            return Firing(at, (trigger.value,))
        if caller.when.moment != "auto":
            return Firing(at, (UNKNOWN,))
        fields = self._subject.models[bound_model(self._subject, caller.agent or "") or ""]
        if fields.get(trigger.argument) == type_:
            return Firing(at, (UNKNOWN,))
        why = f"the output that {trigger.tool} is called with does not determine {name}"
        return Firing(at, (UNKNOWN,), why)

    def _answered(self, trigger: UiResponseTrigger) -> Iterator[Firing]:
        """Yield when a user's answer sets a variable: wherever code may show the tool."""
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


#: The lifecycle points whose triggers can affect rules.
_MOMENTS: Final[dict[str, Moment]] = {
    "before_chat": "start",
    "before_agent": "begin",
    "after_agent": "close",
}


def _rank(trigger: Trigger, place: int) -> int:
    """Return the rank of a trigger; plug-ins rank like code, because they may return null."""
    if isinstance(trigger, CustomTrigger):
        return LAST
    # At a lifecycle point, triggers for one agent come after those for all.
    return place + (LAST // 2 if isinstance(trigger, LifecycleTrigger) and trigger.agent else 0)


def _returned(at: Happening, name: str, function: str) -> Firing:
    return Firing(at, (UNKNOWN,), f"what {name} is set to depends on what {function} returns")


def _answers(schema: JsonMap, key: str) -> tuple[tuple[Json, ...], bool]:
    """Return the values at a dotted path of an answer, and whether each can really occur.

    A null in an answer sets nothing.
    """
    node = follow(schema, key)
    if node is None or isinstance(node, UnknownKey):
        return (UNKNOWN,), not schema
    listed = node.get("enum")
    if isinstance(listed, list):
        return tuple(value for value in cast("list[Json]", listed) if value is not None), True
    return (UNKNOWN,), node.keys() <= _REMARKS


#: With more texts than this, only some combinations are tried.
_MOST_PARTS: Final = 6
#: The separator between parts; no trigger matches it.
_BETWEEN: Final = "\ue000"


def together(matches: Sequence[Match]) -> tuple[tuple[tuple[int, ...], ...], bool]:
    """Return the sets of matches, as indexes, that can hold for one text together.

    The second result is whether the list is complete: no patterns, and few parts.
    """
    texts = ["", _BETWEEN]
    for text in map(_looked_for, matches):
        texts += (text, text.lower(), text.upper(), f" {text} ")
    inside = (_looked_for(match) for match in matches if not isinstance(match, Equals | Exact))
    parts = list(dict.fromkeys(inside))
    most = len(parts) if len(parts) <= _MOST_PARTS else 2
    for size in range(1, most + 1):
        texts += [_BETWEEN.join(("", *chosen, "")) for chosen in combinations(parts, size)]
    held = (
        tuple(n for n, match in enumerate(matches) if _holds(match, example)) for example in texts
    )
    plain = all(isinstance(match, Equals | Exact | Contains) for match in matches)
    return tuple(dict.fromkeys(held)), plain and most == len(parts)


def _holds(match: Match, text: str) -> bool:
    """Return whether a text matches, as in a run; an invalid pattern never matches."""
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
