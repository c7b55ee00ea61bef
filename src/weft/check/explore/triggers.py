"""What triggers set, as happenings: all that fires at once sets its variables together."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final, cast

from weft.check.answer_schema import Lost, follow
from weft.check.bindings import bound_model
from weft.check.code.facts import asked_of, path_in
from weft.check.explore.happenings import (
    ANSWERED,
    CALLED,
    RETURNED,
    Caller,
    Happening,
    Setting,
    When,
    callers,
)
from weft.check.subject import Subject
from weft.check.values import misfit
from weft.engine.conditions import UNKNOWN
from weft.engine.pattern_examples import example_of
from weft.engine.trigger_index import matcher
from weft.errors import ExpressionError
from weft.findings import Json
from weft.spec.part import JsonMap
from weft.spec.tools import UiTool
from weft.spec.triggers import (
    AgentTextTrigger,
    AgentTurnCountTrigger,
    Contains,
    Equals,
    Exact,
    FunctionTrigger,
    HandoffTrigger,
    Match,
    ToolCallTrigger,
    ToolResponseTrigger,
    Trigger,
    UiResponseTrigger,
    UserTextTrigger,
)
from weft.spec.type_meaning import finite_values
from weft.spec.types import Scalar, TypeExpr
from weft.spec.variables import DerivedSource, Variable

#: What a schema may say without ruling out a value.
_REMARKS: Final = frozenset({"type", "title", "description", "default", "examples"})


@dataclass(frozen=True, slots=True)
class Firing:
    """A trigger fires: what it shares with all others that do so then, and its values.

    `at.why` says why it may not fire, `open_value` why a value may not come, and `keeps` that it
    may bring none.
    """

    at: Happening
    values: tuple[Json, ...]
    cause: str = ""
    keeps: bool = False
    open_value: str = ""
    text: Match | None = None
    part: str | None = None


def triggered(subject: Subject, variables: Mapping[str, Variable]) -> Iterator[Happening]:
    texts: dict[When, dict[Match, list[Setting]]] = {}
    sums: dict[tuple[Happening, str], list[tuple[Setting, str]]] = {}
    reader = _Reader(subject)
    for name, variable in variables.items():
        for firing, setting in reader.settings(name, variable):
            if firing.text is not None:
                found = texts.setdefault(firing.at.when, {})
                found.setdefault(firing.text, []).append(setting)
            else:
                why = firing.at.why or firing.open_value
                bare = replace(firing.at, why="")
                sums.setdefault((bare, firing.cause), []).append((setting, why))
    for (bare, _), pairs in sums.items():
        settings = [setting for setting, _ in pairs]
        why = next((why for _, why in pairs if why), "") or _shared(settings)
        yield replace(bare, settings=_perhaps(settings) if why else tuple(settings), why=why)
    for when, found in texts.items():
        yield from _said(subject, when, found)


def _perhaps(settings: Iterable[Setting]) -> tuple[Setting, ...]:
    return tuple(replace(it, keeps=True) for it in settings)


def _shared(settings: Iterable[Setting]) -> str:
    """Say that two variables take their values from one place: they never get different ones."""
    takers: dict[str, str] = {}
    for it in settings:
        place = (it.part or "").partition(".")[0]
        if place and takers.setdefault(place, it.variable) != it.variable:
            return f"{takers[place]} and {it.variable} take their values from one place, {place}"
    return ""


def _said(
    subject: Subject, when: When, found: Mapping[Match, Sequence[Setting]]
) -> Iterator[Happening]:
    """Yield the texts that somebody may say: each sets all that waits for such a text."""
    settings = list(found.values())
    name = settings[0][0].variable
    why = f"one text may be what {name} waits for and others too, or not"
    bound = bound_model(subject, when.agent or "")
    if bound:
        # Of replies that must be JSON it is not known which texts are in them.
        why = f"{name} waits for a text, but the replies of {when.agent} are JSON, as {bound} says"
    texts = together(list(found))
    for indexes in () if bound else texts.sets:
        yield Happening(when, tuple(one for index in indexes for one in settings[index]))
    if bound or not texts.complete:
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
        """Yield what the triggers of a variable set, and when; null is nothing to set."""
        source = variable.source
        if not isinstance(source, DerivedSource):
            return
        for rank, trigger in enumerate(source.triggers):
            for it in self._firings(trigger, name, variable.type):
                for value in it.values:
                    if value is not None:
                        yield it, Setting(name, value, keeps=it.keeps, part=it.part, rank=rank)
        for rank, step in enumerate(source.transitions, start=len(source.triggers)):
            if step.trigger is not None and step.to is not None:
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
                    at = Happening(caller.when, stage=RETURNED, call=caller.call)
                    one = Firing(at, (value,), f"returned {tool}")
                    yield one if key is None else _returned(one, name, tool)
            case HandoffTrigger(source_agent=source, target_agent=target, value=value):
                yield Firing(Happening(When("pass", source, target)), (value,))
            case AgentTurnCountTrigger(agent=agent, count=count, value=value):
                why = f"turn {count} of {agent}, which sets {name}, is not counted"
                yield Firing(Happening(When("close", agent), why=why), (value,))
            case FunctionTrigger(function=function):
                yield _returned(Firing(Happening(When("any")), ()), name, function)
            case _:
                at = Happening(When("any"), why=f"a {trigger.type} trigger may set {name}")
                yield Firing(at, (trigger.value,))

    def _calls(self, tool: str) -> Iterator[Caller]:
        return (it for it, _ in self._callers if it.function == tool)

    def _called(
        self, trigger: ToolCallTrigger, caller: Caller, name: str, type_: TypeExpr
    ) -> Firing:
        """Say when a call sets a variable: to a value, or to what stands at an argument."""
        tool, argument = trigger.tool, trigger.argument
        at = Happening(caller.when, stage=CALLED, call=caller.call)
        plain = Firing(at, (trigger.value,), f"called {tool}", part=argument)
        if argument is None:
            return plain
        if caller.when.moment != "auto":
            return replace(plain, values=(UNKNOWN,))
        models = self._subject.models
        fields = models[bound_model(self._subject, caller.agent or "") or ""]
        field = fields.get(argument)
        listed = finite_values(field) if field else None
        if listed is not None:
            fit = tuple(it for it in listed if it is not None and not misfit(type_, it, models))
            return replace(plain, values=fit, keeps=len(fit) < len(listed))
        if field == type_:
            return replace(plain, values=(UNKNOWN,), keeps=not isinstance(field, Scalar))
        # Deeper than a field it is not known; and what is no field is never there.
        values = (UNKNOWN,) if argument.partition(".")[0] in fields else ()
        why = f"the output that {tool} is called with does not tell which values {name} can get"
        return replace(plain, values=values, keeps=True, open_value=why)

    def _answered(self, trigger: UiResponseTrigger) -> Iterator[Firing]:
        """Say when a person's answer sets a variable: wherever code may show them the tool."""
        tool, key = trigger.tool, trigger.response_key
        declared = self._subject.tools.get(tool)
        schema = declared.response_schema if isinstance(declared, UiTool) else None
        values, sure = _answers(schema, key)
        open_value = "" if sure else f"the response_schema of {tool} leaves open which values come"
        for caller, asked in self._callers:
            own = caller.function == tool
            if own or not asked.isdisjoint((tool, None)):
                why = "" if own else f"the code of {caller.function} may ask {tool}, or not"
                at = Happening(caller.when, why=why, stage=ANSWERED, call=caller.call)
                cause = f"answered {caller.function}"
                yield Firing(at, values, cause, keeps=True, open_value=open_value, part=key)


def _returned(firing: Firing, name: str, function: str) -> Firing:
    why = f"what {name} is set to depends on what {function} returns"
    return replace(firing, values=(UNKNOWN,), keeps=True, open_value=why)


def _answers(schema: JsonMap | None, key: str) -> tuple[tuple[Json, ...], bool]:
    """Return what an answer may hold at a dotted path, and whether each of it can really come."""
    node = follow(schema, key) if schema else None
    if node is None or isinstance(node, Lost):
        return (UNKNOWN,), not schema
    listed = [node["const"]] if "const" in node else node.get("enum")
    if isinstance(listed, list):
        return tuple(cast("list[Json]", listed)), True
    if node.get("type") == "boolean":
        return (False, True), True
    return (UNKNOWN,), node.keys() <= _REMARKS


#: Of more parts than this, only some are put together.
_MOST_PARTS: Final = 6
#: Stands between parts; nobody looks for it.
_BETWEEN: Final = "\ue000"


@dataclass(frozen=True, slots=True)
class Together:
    """The matches, by their indexes, that hold for one text while no other does.

    `complete` means that all texts were thought of: without patterns, and with few parts.
    """

    sets: tuple[tuple[int, ...], ...]
    complete: bool


def together(matches: Sequence[Match]) -> Together:
    parts = list(dict.fromkeys(text for match in matches for text in _parts(match)))
    texts = ["", _BETWEEN, *(text for match in matches for text in _alone(match))]
    most = len(parts) if len(parts) <= _MOST_PARTS else 2
    for size in range(1, most + 1):
        texts += [_BETWEEN.join(("", *chosen, "")) for chosen in combinations(parts, size)]
    held = (tuple(n for n, match in enumerate(matches) if _holds(match, it)) for it in texts)
    plain = all(isinstance(match, Equals | Exact | Contains) for match in matches)
    return Together(tuple(dict.fromkeys(held)), complete=plain and most == len(parts))


def _holds(match: Match, text: str) -> bool:
    """Tell whether a text is what a match looks for, as a run would; a bad pattern never is."""
    try:
        return matcher(match)(text)
    except ExpressionError:
        return False  # another rule reports it


def _parts(match: Match) -> Iterator[str]:
    """Yield what may stand anywhere in a text."""
    if isinstance(match, Contains):
        yield match.contains
    elif not isinstance(match, Equals | Exact):
        yield example_of(match.regex) or ""


def _alone(match: Match) -> Iterator[str]:
    match match:
        case Equals(equals=text) | Exact(exact=text) | Contains(contains=text):
            yield from (text, text.lower(), text.upper(), f" {text} ")
        case _:
            yield example_of(match.regex) or ""
