"""The code of tools: what an agent decides, works out, looks up and keeps."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from weft.generator.code.boundaries import boundary_function
from weft.generator.code.models import result_class
from weft.generator.code.python_text import (
    CONTEXT,
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
from weft.spec.types import OptionalOf, Scalar
from weft.spec.variables import DerivedSource, EntitySource, Variable
from weft.spec.workflow import WorkflowSpec

_RESULT: Final = "dict[str, object]"
_ANSWER: Final = (FieldShape("answer", "str", "What was asked for."),)
#: Sources that are read once more when a tool needs them.
_READ_ANEW: Final = ("database", "external")
_VALUE: Final = "value"
_TOLD: Final = '''\
def _told(given: dict[str, object]) -> str:
    """Return what is given, as a model reads it."""
    return "".join(f"\\n- {name}: {value}" for name, value in given.items())
'''


def tool_files(shapes: Sequence[ToolShape], spec: WorkflowSpec) -> dict[str, str]:
    """Return the files of all tools that ask no person, lifecycle tools among them."""
    pieces: dict[str, tuple[str, dict[str, Piece]]] = {}
    for shape in shapes:
        if shape.kind != "ui":
            _, found = pieces.setdefault(f"tools/{shape.file}", (shape.purpose, {}))
            found.setdefault(shape.name, _piece(shape, spec))
    for tool in spec.lifecycle_tools:
        path = f"tools/{tool.file.removeprefix('tools/')}"
        _, found = pieces.setdefault(path, (tool.description, {}))
        if tool.function not in found:
            found[tool.function] = boundary_function(tool, tool.trigger, spec)
    return {path: module(doc, [*found.values()]) for path, (doc, found) in pieces.items()}


def _piece(shape: ToolShape, spec: WorkflowSpec) -> Piece:
    known = [it for it in shape.variables if it in spec.variables]
    match shape.kind:
        case "ask":
            return _ask(shape, spec)
        case "external" if known:
            return _external(shape, spec.variables, known)
        case "access" if known:
            return _access(shape, spec.variables, known)
        case _:
            return _decision(shape)


def _function(shape: ToolShape, lines: Sequence[str], *, context: bool, awaits: bool) -> Piece:
    """Return a tool with these lines as its body."""
    head = signature(shape.name, shape.parameters, context=context, awaits=awaits, returns=_RESULT)
    doc = docstring(shape.purpose, f"Does the work of {shape.name}.", shape.parameters)
    body = "".join(f"    {it}\n" for it in lines)
    imports = {("weft", "Context")} if context else set[tuple[str, str]]()
    return Piece(head + doc + body, typing_imports(shape.parameters) | imports)


def _decision(shape: ToolShape) -> Piece:
    # What follows from a decision is declared: triggers set variables from its arguments.
    own = [it.name for it in shape.parameters]
    recorded = f'f"Recorded: {{{own[0]}}}"' if own else string("Recorded.")
    told = [(it.name, recorded) for it in shape.result if it.name not in own]
    decided = mapping([*((it, it) for it in own), *told[:1]])
    return _function(shape, [f"return {decided}"], context=False, awaits=False)


def _ask(shape: ToolShape, spec: WorkflowSpec) -> Piece:
    name, result = result_class(
        shape.name, shape.result or _ANSWER, {it.name: it for it in spec.models}
    )
    own = [it.name for it in shape.parameters]
    # What a model is sent is kept in the journal, and secrets are not.
    read = [
        it
        for it in shape.variables
        if it not in own and it in spec.variables and not spec.variables[it].secret
    ]
    given = [*((it, it) for it in own), *((it, _get(it)) for it in read)]
    instruction = string(one_line(shape.purpose) or f"Do the work of {shape.name}.")
    lines = [
        f"asked = {instruction}" + (f" + _told({mapping(given)})" if given else ""),
        f"result = await {CONTEXT}.ask(asked, output={name})",
        "return result.model_dump(by_alias=True)",
    ]
    tool = _function(shape, lines, context=True, awaits=True)
    helpers = {"_told": _TOLD} if given else {}
    return Piece(f"{result.text}\n\n\n{tool.text}", tool.imports | result.imports, helpers)


def _external(shape: ToolShape, variables: Mapping[str, Variable], known: Sequence[str]) -> Piece:
    outside = [it for it in known if variables[it].source.type == "external"]
    asked = outside[0] if outside else known[0]
    settable = [it for it in known if it != asked and _can_set(variables[it], shape)]
    same = [it for it in shape.parameters if it.name in settable]
    rest = [it.name for it in shape.parameters if it not in same]
    queries = [it for it in settable if it not in {one.name for one in same}]
    lines = [_set_given(it.name, it) for it in same]
    if queries and rest:
        lines.append(_set(queries[0], _query(variables[queries[0]], rest)))
    lines.append(f"answer = {_read(asked, variables[asked])}")
    lines.append(f"return {mapping(_answer(shape, asked))}")
    return _function(shape, lines, context=True, awaits="await " in "".join(lines))


def _answer(shape: ToolShape, asked: str) -> Iterator[tuple[str, str]]:
    """Yield what is told of an answer: whether there is one, and the answer or parts of it."""
    flags = [it for it in shape.result if type_of(it) == Scalar("bool")]
    others = [it for it in shape.result if it not in flags]
    yield from ((it.name, "bool(answer)") for it in flags)
    if len(others) <= 1:
        yield others[0].name if others else asked, "answer"
    else:
        part = "answer.get({}) if isinstance(answer, dict) else None"
        yield from ((it.name, part.format(string(it.name))) for it in others)


def _query(variable: Variable, names: Sequence[str]) -> str:
    """Return what a service is asked for: the arguments, as the type of its variable wants."""
    if len(names) == 1:
        return names[0]
    if variable.type == Scalar("str"):
        return f'" ".join(f"{{it}}" for it in ({", ".join(names)}) if it is not None)'
    return mapping((it, it) for it in names)


def _access(shape: ToolShape, variables: Mapping[str, Variable], known: Sequence[str]) -> Piece:
    """Write what was given first: what is looked up is found by it."""
    lines = [
        line
        for name in known
        for line in _written(shape, name, variables[name], alone=len(known) == 1)
    ]
    values = {it: _read(it, variables[it]) for it in known}
    renamed = len(known) == len(shape.result) == 1
    found = [(shape.result[0].name if renamed else it, value) for it, value in values.items()]
    lines.append(f"return {mapping(found)}")
    awaits = any(it.startswith("await ") for it in values.values())
    return _function(shape, lines, context=True, awaits=awaits)


def _written(shape: ToolShape, name: str, variable: Variable, *, alone: bool) -> Iterator[str]:
    """Yield the lines that keep what was given: a state as a whole, of a document the changes."""
    own = {it.name: it for it in shape.parameters}
    given = own.get(name) or (own.get(_VALUE) if alone else None)
    if not _can_set(variable, shape):
        return
    if isinstance(variable.source, DerivedSource):
        if given:
            yield _set_given(name, given)
        return
    document = variable.source.document if isinstance(variable.source, EntitySource) else {}
    fields = [it for it in own if it in document or (alone and not document and own[it] != given)]
    if given or fields:
        changes = mapping((it, it) for it in fields)
        yield f"changes = {changes}" + (f" | ({given.name} or {{}})" if given else "")
        yield "changes = {name: it for name, it in changes.items() if it is not None}"
        yield "if changes:"
        yield "    " + _set(name, f"{{**{CONTEXT}.get_dict({string(name)}), **changes}}")


def _read(name: str, variable: Variable) -> str:
    if variable.secret:  # the agent hears whether there is one
        return f"{CONTEXT}.contains({string(name)})"
    if variable.source.type in _READ_ANEW:
        return f"await {CONTEXT}.refresh({string(name)})"
    return _get(name)


def _get(name: str) -> str:
    return f"{CONTEXT}.get({string(name)})"


def _set(name: str, value: str) -> str:
    return f"{CONTEXT}.set({string(name)}, {value})"


def _set_given(name: str, given: FieldShape) -> str:
    """Return the line that sets a variable to an argument, unless that was left out."""
    line = _set(name, given.name)
    optional = isinstance(type_of(given), OptionalOf)
    return f"if {given.name} is not None:\n        {line}" if optional else line


def _can_set(variable: Variable, shape: ToolShape) -> bool:
    writers = variable.writers
    allowed = writers is None or shape.name in writers or shape.agent in writers
    own = isinstance(variable.source, DerivedSource | EntitySource) and not variable.secret
    return own and allowed
