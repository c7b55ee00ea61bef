"""Tools: what records a decision, what asks a person, and what the plan does not say how to do."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from weft.generator.compile.python import CONTEXT, function_file, mapping, string
from weft.generator.compile.texts import line, title
from weft.generator.compile.values import Values, optional
from weft.generator.compile.wiring import Turn
from weft.generator.names import pascal_case
from weft.generator.plans.data_rules import start_fields
from weft.spec.form import ASK_USER
from weft.spec.part import JsonMap, JsonValue
from weft.spec.plan import PlannedField, PlannedTool
from weft.spec.templates import references
from weft.spec.tools import AgentTool, Tool, Ui, UiTool
from weft.spec.type_meaning import json_schema
from weft.spec.types import LiteralOf, OptionalOf

_OBJECT: Final = "dict[str, object]"
#: The fields that the compiler adds: what a person reads who is asked, and what follows.
_BRIEFING: Final = PlannedField(name="briefing", description="What the person must know to answer.")
_OUTCOME: Final = "outcome"
_DECISION: Final = "decision"


@dataclass(frozen=True, slots=True)
class Made:
    """A tool, and the text of its file."""

    tool: Tool
    text: str


def reply_fields(values: Values, turn: Turn) -> list[PlannedField]:
    """Return the fields of the structured reply of an agent, which its tool gets."""
    fields = [each for each in values.of_reply(turn) if each.name not in (_OUTCOME, "briefing")]
    if turn.is_person:
        return [_BRIEFING, *fields]
    if turn.asks:
        # What the user has not said yet is null.
        fields = [each.model_copy(update={"type": optional(each.value_type)}) for each in fields]
    if not turn.outcomes:
        return fields
    told = "What this has come to."
    return [PlannedField(name=_OUTCOME, type=LiteralOf(turn.values), description=told), *fields]


def tools_of(values: Values, turn: Turn) -> Iterator[Made]:
    """Yield the tools of an agent."""
    if not turn.is_person and values.is_structured(turn):
        yield _recorder(values, turn)
    for tool in turn.asking:
        yield _person(values, turn, tool)
    for tool in turn.agent.agent_tools:
        if tool.interaction_mode == "none":
            yield _unwritten(turn, tool)


def _unwritten(turn: Turn, tool: PlannedTool) -> Made:
    """Return a tool that refuses: the plan says what it is for, and not how it is done."""
    service = f" It needs {tool.integration}." if tool.integration else ""
    purpose = line(tool.purpose) or title(tool.name)
    asked = [PlannedField(name="request", description="What is wanted.")]
    body = [f"raise Refuse({string(f'not written yet: {purpose}{service}')})"]
    text = function_file(tool.name, purpose, asked, body, result="str")
    return Made(_entry(turn, tool.name, purpose), text)


def _recorder(values: Values, turn: Turn) -> Made:
    """Return the tool that every reply of an agent calls: it keeps what the agent has decided."""
    fields = reply_fields(values, turn)
    purpose = f"Records what {turn.name} has come to."
    names = [field.name for field in fields]
    written = {name: name for name in names if name in turn.agent.writes}
    body = [*_required(values, turn), *_keys(values, fields), *_kept(values, written)]
    body += _called(values, turn)
    body.append(f"return {mapping((name, name) for name in names)}")
    text = function_file(turn.tool, purpose, fields, body, result=_OBJECT)
    entry = _entry(turn, turn.tool, purpose)
    return Made(entry.model_copy(update={"auto_invoke": True}), text)


def _entry(turn: Turn, name: str, purpose: str) -> AgentTool:
    return AgentTool(agent=turn.name, file=f"{name}.py", function=name, description=purpose)


def _required(values: Values, turn: Turn) -> Iterator[str]:
    """Yield what a decision is refused for: a question not asked, or a value that is missing."""
    decided = f'{_OUTCOME} != "{ASK_USER}" and ' if turn.asks else ""
    for question in turn.questions:
        yield f"if {decided}not {CONTEXT}.get_bool({string(f'{question.name}_answered')}):"
        yield f"    raise RetryModel({string(f'Call {question.name} before you decide.')})"
    wanted = [
        field.name
        for field in values.of_reply(turn)
        if turn.asks and field.name != _OUTCOME and not isinstance(field.value_type, OptionalOf)
    ]
    if wanted:
        yield f"_given = {mapping((name, name) for name in wanted)}"
        # The first outcome is the usual one. An emergency must not wait for the rest.
        needed = {name: values.read_after(turn, name) for name in turn.outcomes[1:]}
        if any(not needed[name].issuperset(wanted) for name in needed):
            lists = {
                name: f"[{', '.join(string(each) for each in wanted if each in needed[name])}]"
                for name in needed
            }
            yield f"_needed = {mapping(lists.items())}.get({_OUTCOME}, [*_given])"
            yield "_missing = [name for name in _needed if _given[name] is None]"
        else:
            yield "_missing = [name for name, value in _given.items() if value is None]"
        yield f"if {decided}_missing:"
        told = "Fill in {', '.join(_missing)}, or ask the user."
        yield f'    raise RetryModel(f"{told}")'


def _keys(values: Values, fields: Sequence[PlannedField]) -> Iterator[str]:
    """Yield the lines that read the documents which are found by a value of the reply."""
    for field in fields:
        documents = values.keys.get(field.name, ())
        if documents:
            yield f"if {field.name} is not None:"
            yield f"    {CONTEXT}.set({string(field.name)}, {field.name})"
            yield from (f"    await {CONTEXT}.refresh({string(name)})" for name in documents)


def _kept(values: Values, given: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines that put values into the records that keep them, as soon as keys are known.

    What the start of the run has brought is put there as well.
    """
    brought = [field.name for field in start_fields(values.workflow.strategy)]
    for record in dict.fromkeys(values.kept_in.values()):
        own = {name: each for name, each in given.items() if values.kept_in.get(name) == record}
        if not own:
            continue
        fields = {name: _get(name) for name in brought if values.kept_in.get(name) == record}
        yield f"_kept = {mapping((fields | own).items())}"
        yield "_kept = {name: value for name, value in _kept.items() if value is not None}"
        key = values.planned[record].key
        known = key in values.fields
        if known:
            yield f"if {_get(key or '')} is not None:"
        whole = f"{{**{CONTEXT}.get_dict({string(record)}), **_kept}}"
        yield f"{'    ' if known else ''}{CONTEXT}.set({string(record)}, {whole})"


def _get(name: str) -> str:
    return f"{CONTEXT}.get({string(name)})"


def _called(values: Values, turn: Turn) -> Iterator[str]:
    """Yield the lines that call services with the values that they are sent."""
    given = {field.name for field in reply_fields(values, turn)}
    for name in values.calls(turn):
        sent = [field.name for field in values.planned[name].fields if field.name in given]
        lines = [f"{CONTEXT}.set({string(each)}, {each})" for each in sent]
        lines.append(f"await {CONTEXT}.refresh({string(name)})")
        if turn.asks:
            yield f'if {_OUTCOME} != "{ASK_USER}":'
            lines = [f"    {each}" for each in lines]
        yield from lines


def _person(values: Values, turn: Turn, tool: PlannedTool) -> Made:
    """Return a tool that asks a person: for the decision, or for values."""
    decides = turn.is_person and turn.tool == tool.name
    fields = reply_fields(values, turn) if decides else [_BRIEFING]
    answered = values.answer_fields(turn, tool.name)
    asked = [each for each in answered if not (decides and each.name == _DECISION)]
    if decides and turn.outcomes:
        told = "Your decision"
        asked.insert(
            0, PlannedField(name=_DECISION, type=LiteralOf(turn.outcomes), description=told)
        )
    shown = turn.component(tool.name)
    shows = {name: _value(values, name) for name in (shown.shows if shown else ())}
    pairs = [*(shows | {field.name: field.name for field in fields}).items()]
    body = [f"_shown = {mapping(pairs)}"]
    body.append(f"_answer = await use_ui_tool({string(tool.name)}, _shown)")
    written = {each.name: each.name for each in fields if each.name in turn.agent.writes}
    written |= {each.name: f"_answer.get({string(each.name)})" for each in answered}
    body += [*_kept(values, written), "return _answer"]
    purpose = line(tool.purpose) or f"Asks a person for {title(tool.name)}."
    label = line(shown.label) if shown else title(tool.name)
    told = turn.agent.tell if decides else None
    has_answer = bool(references(told or ""))
    entry = UiTool(
        agent=turn.name,
        file=f"{tool.name}.py",
        function=tool.name,
        description=purpose,
        auto_invoke=decides,
        ui=Ui(
            component=shown.component if shown else pascal_case(tool.name, "Question"),
            mode="artifact" if tool.interaction_mode == "artifact" else "inline",
        ),
        payload_schema=_payload(label, [name for name, _ in pairs]),
        response_schema=_schema(asked),
        tell=told if has_answer else None,
        tell_asked=None if has_answer else told,
    )
    text = function_file(tool.name, purpose, fields, body, result=_OBJECT)
    return Made(entry.model_copy(update={"for_": turn.asked_by(tool.name)}), text)


def _value(values: Values, name: str) -> str:
    """Return the expression for a value that is shown."""
    record = values.kept_in.get(name)
    if record and name not in values.own:
        return f"{CONTEXT}.get_dict({string(record)}).get({string(name)})"
    return _get(name)


def _payload(label: str, names: Sequence[str]) -> JsonMap:
    properties: JsonMap = {name: {"title": title(name)} for name in names}
    return {"type": "object", "title": label, "properties": properties}


def _schema(fields: Sequence[PlannedField]) -> JsonMap:
    """Return the schema of an answer, from which the form is made."""
    required: list[JsonValue] = [
        field.name for field in fields if not isinstance(field.value_type, OptionalOf)
    ]
    return {
        "type": "object",
        "properties": {field.name: _property(field) for field in fields},
        "required": required,
        "additionalProperties": False,
    }


def _property(field: PlannedField) -> JsonMap:
    type_ = field.value_type
    inner = type_.of if isinstance(type_, OptionalOf) else type_
    found = cast("JsonMap", json_schema(inner, {}))
    found.pop("$schema")
    kind: JsonMap = {"type": "string"} if isinstance(inner, LiteralOf) else {}
    return {**kind, **found, "title": field.description or title(field.name)}
