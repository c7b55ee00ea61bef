"""Variables: where each value comes from, what sets it, and which agents see it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from weft.check.secrets import names_a_key
from weft.errors import ExpressionError
from weft.generator.compile.texts import line, title
from weft.generator.compile.values import CALLS, Values, optional
from weft.generator.compile.wiring import Turn
from weft.generator.names import pascal_case
from weft.generator.plans.data_rules import start_fields
from weft.ids import BUILT_IN_VARIABLES
from weft.spec import triggers as on
from weft.spec import variables as sources
from weft.spec.condition_parser import parse_condition
from weft.spec.conditions import names as names_in
from weft.spec.part import JsonMap, JsonValue
from weft.spec.plan import PlannedVariable
from weft.spec.templates import references
from weft.spec.triggers import Trigger
from weft.spec.type_field import ModelField
from weft.spec.type_parser import parse_type
from weft.spec.types import ANY, DictOf, LiteralOf, OptionalOf, Scalar, TypeExpr
from weft.spec.variables import Source, Variable

#: True from a watched word until the agent that took over hands off.
WATCHED: Final = "watched_word_said"
_TEXT: Final = Scalar("str")
_OBJECT: Final = DictOf(ANY)
_FORMATS: Final = {"json": "json", "yaml": "yaml", "yml": "yaml"}


def variables(values: Values) -> dict[str, Variable]:
    """Return every variable; what a plan only describes is not among them."""
    found = {name: _own(values, name) for name in values.own}
    for turn in values.wiring.turns:
        found |= dict(_of_turn(values, turn))
    for name, planned in values.planned.items():
        made = _planned(values, planned)
        if made and not (made.secret and name not in values.inserted):
            found[name] = made
    found |= dict(_addresses(found))
    if values.wiring.interrupted and (watch := values.workflow.strategy.watch):
        words = [on.UserTextTrigger(match=on.Contains(contains=word)) for word in watch.words]
        over = on.HandoffTrigger(source_agent=values.wiring.watch, value=False)
        found[WATCHED] = _flag("Whether the user has said a watched word.", *words, over)
    return found


def missing_notes(values: Values, found: Mapping[str, Variable]) -> Iterator[str]:
    """Yield the variables of the plan that are not there, and why."""
    why = {
        "state": "no agent writes it",
        "computed": "the plan does not say how it is computed",
        "config": "nothing uses this secret",
    }
    for name in values.planned:
        if name not in found:
            yield f"the variable {name} is missing: {why.get(values.kind(name), 'unknown kind')}"


def _derived(type_: TypeExpr, told: str, triggers: Sequence[Trigger]) -> Variable:
    unique = {each.model_dump_json(): each for each in triggers}
    source = sources.DerivedSource(triggers=tuple(unique.values()))
    return Variable(type=type_, description=line(told), source=source)


def _flag(told: str, *triggers: Trigger) -> Variable:
    source = sources.DerivedSource(default=False, triggers=triggers)
    return Variable(type=Scalar("bool"), description=told, source=source)


def _own(values: Values, name: str) -> Variable:
    """Return the variable of a value, with all that sets it."""
    field = values.fields[name]
    triggers: list[Trigger] = []
    for turn in values.wiring.turns:
        if field in values.of_reply(turn) and name not in values.keys:
            triggers.append(on.ToolResponseTrigger(tool=turn.tool, argument=name))
        triggers += [
            on.UiResponseTrigger(tool=tool.name, response_key=name)
            for tool in turn.asking
            if any(name == each.name for each in values.answer_fields(turn, tool.name))
        ]
    return _derived(field.value_type, field.description or title(name), triggers)


def _of_turn(values: Values, turn: Turn) -> Iterator[tuple[str, Variable]]:
    """Yield what the turn of an agent has come to, and which of its questions were answered."""
    if turn.variable:
        trigger: Trigger = on.ToolResponseTrigger(tool=turn.tool, argument="outcome")
        if turn.is_person:
            trigger = on.UiResponseTrigger(tool=turn.tool, response_key="decision")
        told = f"What {turn.name} has come to."
        yield turn.variable, _derived(LiteralOf(turn.values), told, [trigger])
    for question in turn.questions if values.is_structured(turn) else ():
        told = f"Whether {question.name} was answered."
        yield f"{question.name}_answered", _flag(told, on.ToolResponseTrigger(tool=question.name))


def _planned(values: Values, planned: PlannedVariable) -> Variable | None:
    """Return a variable of the plan that is not set value by value; None if nothing says how."""
    kind, name, type_ = values.kind(planned.name), planned.name, planned.value_type or _OBJECT
    source: Source | None = None
    match kind:
        case "data_entity":
            source = _entity(planned)
        case "data_reference":
            source = _documents(planned)
            type_ = parse_type("list[any]") if planned.shared else type_
        case "external":
            source = _service(values, planned)
            type_ = optional(type_) if values.is_called(name) else type_
        case "file":
            path = planned.url or f"data/{name}.json"
            form = _FORMATS.get(path.rpartition(".")[2], "text")
            default: JsonValue = "" if form == "text" else {}
            given: JsonMap = {"path": path, "format": form, "default": default}
            source = sources.FileSource.model_validate(given)
            type_ = _TEXT if form == "text" else type_
        case "config":
            source = sources.EnvironmentSource(env_var=name.upper())
            type_ = planned.value_type or OptionalOf(_TEXT)
        case "computed":
            source, type_ = _computed(values, planned), Scalar("bool")
        case _:
            pass
    in_parallel = any(turn.is_member for turn in values.wiring.turns)
    return source and Variable(
        type=type_,
        description=line(planned.purpose) or title(name),
        source=source,
        secret=kind == "config" and names_a_key(name),
        routing=True if name in values.inserted and kind != "config" else None,
        merge="merge" if in_parallel and kind == "data_entity" else None,
    )


def _entity(planned: PlannedVariable) -> sources.EntitySource:
    fields = {
        each.name: ModelField(
            type=optional(each.value_type), description=line(each.description or "")
        )
        for each in planned.fields
    }
    collection = planned.collection or pascal_case(planned.name, "Documents")
    return sources.EntitySource(
        collection=collection, search_by=_key(planned), schema=fields, default={}
    )


def _documents(planned: PlannedVariable) -> sources.DatabaseSource:
    names: list[JsonValue] = [field.name for field in planned.fields]
    is_one = len(names) == 1 and planned.value_type not in (None, _OBJECT)
    given: JsonMap = {"collection": planned.collection or pascal_case(planned.name, "Documents")}
    given |= {"field": names[0]} if is_one else {"fields": names}
    if planned.shared:
        by: JsonMap = {planned.key: f"{{{planned.key}}}"} if planned.key else {}
        given |= {"query_template": by, "find": "many", "default": []}
    else:
        # A number that is not found has no honest default: the turn fails.
        nothing = "" if planned.value_type == _TEXT else None
        given |= {"search_by": _key(planned), "default": nothing if is_one else {}}
    if planned.key and planned.key not in BUILT_IN_VARIABLES:
        given["refresh_strategy"] = "on_demand"
    return sources.DatabaseSource.model_validate(given)


def _key(planned: PlannedVariable) -> str:
    """Return what a document is found by: the plan says, or it is one for each run."""
    return planned.key or ("app_id" if planned.shared else "chat_id")


def _service(values: Values, planned: PlannedVariable) -> sources.ExternalSource:
    """Return a service that is read with GET, or called by a tool."""
    url = planned.url or f"{{{planned.name}_url}}"
    method, _, address = url.partition(" ") if url.startswith(CALLS) else ("GET", "", url)
    given: JsonMap = {
        "service": planned.name,
        "operation": method.lower(),
        "url": address.removeprefix("GET ").strip(),
    }
    if method == "GET":
        given["refresh_strategy"] = "on_demand"
        given["default"] = {} if planned.value_type in (None, _OBJECT) else None
        return sources.ExternalSource.model_validate(given)
    body: JsonMap = {field.name: f"{{{field.name}}}" for field in planned.fields}
    # If no one is there to approve a call, the approval of the plan counts.
    approval = "write" if values.workflow.is_attended else "never"
    more: JsonMap = {"method": method, "body": body or None, "approval": approval}
    return sources.ExternalSource.model_validate(given | more)


def _computed(values: Values, planned: PlannedVariable) -> sources.ComputedSource | None:
    """Return a value that a condition of the plan says."""
    for text in (planned.trigger_hint or "", planned.purpose):
        try:
            names = names_in(parse_condition(text))
        except ExpressionError:
            continue
        if names and all(name in values.own or name in values.planned for name in names):
            return sources.ComputedSource(computation=text, inputs=names)
    return None


def _addresses(found: Mapping[str, Variable]) -> Iterator[tuple[str, Variable]]:
    """Yield the settings that stand in addresses and are no variables of the plan."""
    for variable in found.values():
        url = variable.source.url if isinstance(variable.source, sources.ExternalSource) else ""
        for each in references(url):
            if each.name not in found and each.name not in BUILT_IN_VARIABLES:
                told = f"A part of the address of {variable.description}"
                source = sources.EnvironmentSource(env_var=each.name.upper())
                yield (
                    each.name,
                    Variable(type=OptionalOf(_TEXT), description=line(told), source=source),
                )


def exposure(values: Values, found: Mapping[str, Variable]) -> dict[str, tuple[str, ...]]:
    """Return which variables each agent sees: those it reads, and those that no agent names.

    An agent that reads nothing in particular sees the records.
    """
    named = {
        values.kept_in.get(name, name) for each in values.workflow.agents for name in each.reads
    }
    for each in values.workflow.agents:
        written = (values.kept_in.get(name, name) for name in each.writes)
        named.update(name for name in written if values.kind(name) != "state")
    free = {name for name in values.planned if name not in named}
    brought = {field.name for field in start_fields(values.workflow.strategy)}
    shown: dict[str, tuple[str, ...]] = {}
    for turn in values.wiring.turns:
        wanted = {values.kept_in.get(name, name) for name in turn.agent.reads or values.kept_in}
        if turn.asks:
            wanted |= {values.kept_in.get(name, name) for name in turn.agent.writes}
        # What the start brings need not be in a record yet.
        wanted |= brought.intersection(turn.agent.reads)
        wanted = (wanted | free) - {turn.variable}
        names = tuple(name for name in found if name in wanted and not found[name].secret)
        if names:
            shown[turn.name] = names
    return shown
