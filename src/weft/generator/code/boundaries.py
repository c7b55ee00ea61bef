"""Functions at the boundaries of runs and turns: they prepare, and they sum up.

Before something begins, the sources that nobody has read yet are read, and whoever watches hears
which values are missing. After it, whoever watches hears what has come of it. A variable that is
called like the function keeps that as well. A function with a service asks it: before something for
the user, and after it with the last words.
"""

from collections.abc import Iterator
from typing import Final, TypeAlias

from weft.generator.code.python_text import CONTEXT, Piece, docstring, mapping, string
from weft.spec.templates import references
from weft.spec.tools import Hook, LifecycleTool
from weft.spec.types import OptionalOf, Scalar, TypeExpr
from weft.spec.variables import DatabaseSource, DerivedSource, ExternalSource, Variable
from weft.spec.workflow import WorkflowSpec

Declared: TypeAlias = LifecycleTool | Hook

_BEFORE: Final = ("before_chat", "on_start", "before_agent")
#: How much of the last words a service is asked with: they stand in its address.
_MOST_WORDS: Final = 500


def boundary_function(declared: Declared, point: str, spec: WorkflowSpec) -> Piece:
    """Return the function of a lifecycle tool, or of a hook that changes variables only."""
    before = point in _BEFORE
    lines = [*(_prepared(declared, spec) if before else _summed_up(declared, spec))]
    lines += _asked(declared, spec, before=before)
    lines += [_kept(name, it) for name, it in _records(declared, spec)]
    awaits = any("await " in it for it in lines)
    parameters = f"{CONTEXT}: Context" if before else f"messages: list, {CONTEXT}: Context"
    head = f"{'async ' if awaits else ''}def {declared.function}({parameters}) -> None:\n"
    doc = docstring(declared.description, f"Called at {point}.")
    body = "".join(f"    {it}\n" for it in lines)
    return Piece(head + doc + body, frozenset({("weft", "Context")}))


def _readable(declared: Declared, spec: WorkflowSpec) -> Iterator[tuple[str, Variable]]:
    """Yield the variables that the function may read and tell about."""
    for name, variable in spec.variables.items():
        readers = variable.readers
        if not variable.secret and (
            readers is None or declared.agent is None or declared.agent in readers
        ):
            yield name, variable


def _prepared(declared: Declared, spec: WorkflowSpec) -> Iterator[str]:
    own = dict(_readable(declared, spec))
    # What the call of a tool asks for is not there before it, and may have effects.
    own = {it: of for it, of in own.items() if not _query_of(of, spec)}
    read = [it for it, variable in own.items() if _is_read_here(declared, variable)]
    for name in read:
        yield f"await {CONTEXT}.refresh({string(name)})"
    told = [it for it in own if _is_from_outside(own[it])]
    yield f"values = {mapping((it, _get(it)) for it in told)}"
    yield "missing = [name for name, value in values.items() if value is None]"
    yield "told = f\"Without a value: {', '.join(missing) or 'nothing'}\""
    yield f"{CONTEXT}.progress(1.0, told)"


def _summed_up(declared: Declared, spec: WorkflowSpec) -> Iterator[str]:
    queries = _queries(spec)
    own = [
        it
        for it, of in _readable(declared, spec)
        if isinstance(of.source, DerivedSource) and it not in queries
    ]
    yield f"values = {mapping((it, _get(it)) for it in own)}"
    yield "settled = [name for name, value in values.items() if value is not None]"
    yield "told = f\"{len(messages)} messages; with a value: {', '.join(settled) or 'nothing'}\""
    yield f"{CONTEXT}.progress(1.0, told)"


def _asked(declared: Declared, spec: WorkflowSpec, *, before: bool) -> Iterator[str]:
    """Yield the lines that ask the service of a function, as the call of a tool does."""
    for name, variable in spec.variables.items():
        source, query = variable.source, _query_of(variable, spec)
        if not query or not isinstance(source, ExternalSource):
            continue
        if (source.service, source.operation) == (declared.integration, declared.function):
            if not before:
                yield 'last = messages[-1]["content"] if messages else None'
            value = f'{_get("user_id")} or ""' if before else f"(last or told)[:{_MOST_WORDS}]"
            yield f"{CONTEXT}.set({string(query)}, {value})"
            yield f"await {CONTEXT}.refresh({string(name)})"


def _query_of(variable: Variable, spec: WorkflowSpec) -> str | None:
    """Return the variable of the run that stands in the address of a source, if there is one."""
    source = variable.source
    named = references(source.url) if isinstance(source, ExternalSource) else ()
    known = (it.name for it in named if it.name in spec.variables)
    return next((it for it in known if not _is_from_outside(spec.variables[it])), None)


def _queries(spec: WorkflowSpec) -> set[str | None]:
    """Return the variables that say what services are asked for; they tell nothing of the run."""
    return {_query_of(it, spec) for it in spec.variables.values()}


def _get(name: str) -> str:
    return f"{CONTEXT}.get({string(name)})"


def _is_from_outside(variable: Variable) -> bool:
    return not isinstance(variable.source, DerivedSource)


def _is_read_here(declared: Declared, variable: Variable) -> bool:
    """Tell whether a source waits to be read: what is read once was read when the run began."""
    source = variable.source
    if isinstance(source, ExternalSource) and source.service == declared.integration:
        return True
    waits = isinstance(source, DatabaseSource | ExternalSource)
    return waits and source.refresh_strategy == "on_demand"


def _records(declared: Declared, spec: WorkflowSpec) -> Iterator[tuple[str, TypeExpr]]:
    """Yield the variables that are called like the function, and that it may set."""
    queries = _queries(spec)
    for name, variable in spec.variables.items():
        source, writers = variable.source, variable.writers
        may = writers is None or declared.function in writers or declared.agent in writers
        called = name == declared.function or name.startswith(f"{declared.function}_")
        called = called and name not in queries
        plain = isinstance(source, DerivedSource) and not source.transitions
        type_ = variable.type.of if isinstance(variable.type, OptionalOf) else variable.type
        kept = type_ in (Scalar("str"), Scalar("bool"), Scalar("int"), Scalar("any"))
        if called and may and plain and kept and not variable.secret:
            yield name, type_


def _kept(name: str, type_: TypeExpr) -> str:
    """Return the line that notes in a variable that the function was called."""
    match type_:
        case Scalar("bool"):
            value = "True"
        case Scalar("int"):
            value = f"{CONTEXT}.get_int({string(name)}) + 1"
        case _:
            value = "told"
    return f"{CONTEXT}.set({string(name)}, {value})"
