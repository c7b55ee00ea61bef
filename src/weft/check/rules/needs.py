"""What a source needs to be read: the variables that it is found by, and when these have values."""

from collections.abc import Iterator
from dataclasses import dataclass

from weft.check.spelling import did_you_mean
from weft.check.subject import Hit, Subject
from weft.check.values import texts_in
from weft.engine.compile import refreshed
from weft.engine.turn.hook_points import is_function
from weft.findings import Path
from weft.spec.templates import references
from weft.spec.variables import ComputedSource, DatabaseSource, EntitySource, Source


@dataclass(frozen=True, slots=True)
class Need:
    """A variable that is looked for, or that a text at a path puts in at an offset."""

    name: str
    path: Path
    offset: int | None = None


def needs_of(source: Source, path: Path = ()) -> Iterator[Need]:
    """Yield the variables that must have a value for a source to be read."""
    if isinstance(source, DatabaseSource | EntitySource) and source.search_by is not None:
        yield Need(source.search_by, (*path, "search_by"))
    for key in ("query_template", "url"):
        for at, text in texts_in(getattr(source, key, None), (*path, key)):
            yield from insertions_in(text, at)


def insertions_in(text: str, path: Path) -> Iterator[Need]:
    """Yield the variables that a text puts in."""
    return (Need(it.name, path, it.offset) for it in references(text))


def unknown_insertion(subject: Subject, what: str, need: Need) -> Hit:
    """Report that a text puts in what is no variable."""
    literally = "declare it in context_variables.json"
    if "query_template" not in need.path:  # In a query, {{name}} is read as {name}.
        literally = f"declare it, or write {{{{{need.name}}}}} if the braces are meant literally"
    return Hit(
        need.path,
        f'{what} puts in "{need.name}", which is no variable',
        hint=did_you_mean(need.name, subject.variable_names) or (literally,),
        offset=need.offset,
        length=len(need.name),
    )


#: When a variable has its value: from the start, once the run has been prepared, or in a turn.
AT_START, PREPARED, IN_TURN = range(3)


def read_at(source: Source) -> int:
    """Return when a source is read from outside; AT_START for what is not."""
    strategy = refreshed(source)
    return AT_START if strategy is None else PREPARED if strategy == "once" else IN_TURN


def known_from(subject: Subject, name: str) -> int:
    """Return when a variable first has its value, with all that it is computed from."""
    latest, waiting, met = AT_START, [name], {name}
    for found in waiting:
        variable = subject.spec.variables.get(found)
        if variable is None:
            continue
        source = variable.source
        latest = max(latest, read_at(source))
        if isinstance(source, ComputedSource):
            # A function is called when all was read that is read for the run.
            latest = max(latest, PREPARED if is_function(source.computation) else AT_START)
            fresh = [it for it in source.inputs if it not in met]
            met.update(fresh)
            waiting += fresh
    return latest
