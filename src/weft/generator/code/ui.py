"""The code of tools that ask a person: the question in Python, the form in React."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from weft.check.declarations import placed_triggers
from weft.check.subject import Subject
from weft.generator.code.python_text import (
    Piece,
    docstring,
    mapping,
    module,
    one_line,
    signature,
    string,
    type_of,
    typing_imports,
)
from weft.generator.shapes import FieldShape, ToolShape
from weft.spec.triggers import UiResponseTrigger
from weft.spec.types import ListOf, LiteralOf, OptionalOf, Scalar
from weft.spec.workflow import WorkflowSpec

_WORD: Final = re.compile(r"[A-Za-z_$][\w$]*\Z", re.ASCII)
#: How much stands on one line of an object.
_SHORT: Final = 60
_SHOWN: Final = """\
const shown = (value) =>
  typeof value === "string" ? value : JSON.stringify(value, null, 2);
"""
_PARSED: Final = """\
const parsed = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};
"""


def ui_files(shapes: Sequence[ToolShape], spec: WorkflowSpec) -> dict[str, str]:
    """Return the files of all tools that ask a person: Python, and a component for each."""
    files: dict[str, str] = {}
    drawn: dict[str, list[ToolShape]] = {}
    for shape in shapes:
        if shape.kind == "ui":
            files.setdefault(f"tools/{shape.file}", module(shape.purpose, [_question(shape)]))
            if shape.component:
                drawn.setdefault(shape.component, []).append(shape)
    for component, tools in drawn.items():
        files[f"tools/{component}.jsx"] = _component(component, tools, spec)
    return files


def _question(shape: ToolShape) -> Piece:
    head = signature(
        shape.name, shape.parameters, context=False, awaits=True, returns="dict[str, object]"
    )
    doc = docstring(shape.purpose, f"Asks by {shape.name}.", shape.parameters)
    payload = mapping((it.name, it.name) for it in shape.parameters)
    body = f"    return await use_ui_tool({string(shape.name)}, {payload})\n"
    return Piece(head + doc + body, typing_imports(shape.parameters) | {("weft", "use_ui_tool")})


def response_fields(shape: ToolShape, spec: WorkflowSpec) -> tuple[FieldShape, ...]:
    """Return the fields of an answer: those of the shape, and what variables are set from."""
    fields = {it.name: it for it in shape.result}
    for placed in placed_triggers(Subject(spec)):
        trigger = placed.trigger
        if isinstance(trigger, UiResponseTrigger) and trigger.tool == shape.name:
            key = trigger.response_key.partition(".")[0]
            fields.setdefault(key, FieldShape(key, "str"))
    return tuple(fields.values())


@dataclass(frozen=True, slots=True)
class _Input:
    """One field of the form: what it begins with, what is sent, and how it is drawn."""

    name: str
    start: str
    sent: str
    drawn: str
    #: What must hold before the form can be sent.
    needs: str = ""


def _component(component: str, tools: Sequence[ToolShape], spec: WorkflowSpec) -> str:
    shown = _once(field for tool in tools for field in tool.parameters)
    inputs = [
        _input(it) for it in _once(it for tool in tools for it in response_fields(tool, spec))
    ]
    about = one_line(tools[0].summary or tools[0].purpose)
    needs = " && ".join(it.needs for it in inputs if it.needs)
    blocked = f" disabled={{!({needs})}}" if needs else ""
    helpers = (
        _SHOWN if shown else "",
        _PARSED if any("parsed" in it.sent for it in inputs) else "",
    )
    rows = "".join(_row(it) for it in shown)
    start, sent = (
        _object(((it.name, it.start) for it in inputs), "  "),
        _object(((it.name, it.sent) for it in inputs), "    "),
    )
    lines = [
        'import { useState } from "react";\n' if inputs else "",
        *helpers,
        f"export default function {component}({{ {'payload, ' if shown else ''}onResponse }}) {{",
        "  const given = payload ?? {};" if shown else "",
        f"  const [values, setValues] = useState({start});\n" if inputs else "",
        "  const send = (event) => {",
        "    event.preventDefault();",
        f"    onResponse({sent});",
        "  };\n",
        "  return (",
        "    <section>",
        f"      <h2>{_text(tools[0].label or component)}</h2>",
        f"      <p>{_text(about)}</p>" if about else "",
        f"      <dl>\n{rows}      </dl>" if rows else "",
        "      <form onSubmit={send}>",
        *(it.drawn for it in inputs),
        f'        <button type="submit"{blocked}>Send</button>',
        "      </form>",
        "    </section>",
        "  );",
        "}",
    ]
    return "\n".join(it for it in lines if it) + "\n"


def _once(fields: Iterable[FieldShape]) -> list[FieldShape]:
    found: dict[str, FieldShape] = {}
    for field in fields:
        found.setdefault(field.name, field)
    return [*found.values()]


def _text(text: str) -> str:
    """Return a text as an expression, so that no sign of it is read as markup."""
    return f"{{{json.dumps(one_line(text))}}}"


def _label(field: FieldShape) -> str:
    return _text(field.description or field.name.replace("_", " ").capitalize())


def _member(name: str, of: str) -> str:
    return f"{of}.{name}" if _WORD.match(name) else f"{of}[{json.dumps(name)}]"


def _key(name: str) -> str:
    return name if _WORD.match(name) else json.dumps(name)


def _object(pairs: Iterable[tuple[str, str]], indent: str) -> str:
    """Return an object: on one line, or one entry to a line where it is long."""
    entries = [f"{_key(name)}: {value}" for name, value in pairs]
    if len(", ".join(entries)) <= _SHORT:
        return f"{{ {', '.join(entries)} }}" if entries else "{}"
    return "{\n" + "".join(f"{indent}  {it},\n" for it in entries) + f"{indent}}}"


def _row(field: FieldShape) -> str:
    value = _member(field.name, "given")
    return f"        <dt>{_label(field)}</dt>\n        <dd>{{shown({value})}}</dd>\n"


def _input(field: FieldShape) -> _Input:
    type_ = type_of(field)
    optional = isinstance(type_, OptionalOf)
    value = _member(field.name, "values")
    match type_.of if isinstance(type_, OptionalOf) else type_:
        case Scalar("bool"):
            return _Input(field.name, "false", value, _checkbox(field, value))
        case LiteralOf(values):
            needs = "" if optional else f"{value} !== null"
            choices = [json.dumps(it) for it in values]
            sent = f"{value} ?? undefined" if optional else value
            return _Input(field.name, "null", sent, _select(field, value, choices), needs)
        case Scalar("int" | "float"):
            number = f"Number({value})"
            sent = f'{value} === "" ? undefined : {number}' if optional else number
            box = ("input", 'type="number"', 'step="any"')
        case ListOf(Scalar("str")):
            sent, box = f'{value}.split("\\n").filter(Boolean)', ("textarea", "rows={4}")
        case Scalar("str"):
            sent, box = value, ("textarea", "rows={3}")
        case _:
            sent, box = f"parsed({value})", ("textarea", "rows={4}")
    drawn = _box(field, value, *box, *(() if optional else ("required",)))
    return _Input(field.name, '""', sent, drawn)


def _change(field: FieldShape, value: str) -> str:
    return f"onChange={{(event) => setValues({{ ...values, {_key(field.name)}: {value} }})}}"


def _labelled(field: FieldShape, inside: str) -> str:
    return f"        <label>\n          {_label(field)}\n{inside}        </label>"


def _box(field: FieldShape, value: str, *box: str) -> str:
    parts = [*box, f"value={{{value}}}", _change(field, "event.target.value")]
    return _labelled(field, _element(parts, "/>"))


def _checkbox(field: FieldShape, value: str) -> str:
    change = _change(field, "event.target.checked")
    parts = ["input", 'type="checkbox"', f"checked={{{value}}}", change]
    return _labelled(field, _element(parts, "/>"))


def _select(field: FieldShape, value: str, choices: Sequence[str]) -> str:
    change = _change(field, "JSON.parse(event.target.value)")
    head = _element(["select", f"value={{JSON.stringify({value})}}", change], ">")
    options = "".join(
        f"            <option value={{{json.dumps(it)}}}>{_text(str(json.loads(it)))}</option>\n"
        for it in choices
    )
    first = '            <option value="null">{"Please choose"}</option>\n'
    return _labelled(field, f"{head}{first}{options}          </select>\n")


def _element(parts: Sequence[str], end: str) -> str:
    """Return the opening of an element, one attribute to a line."""
    name, *attributes = parts
    inside = "".join(f"            {it}\n" for it in attributes)
    return f"          <{name}\n{inside}          {end}\n"
