"""Family VAR, fourth part: every variable is set by something and read by something."""

from collections.abc import Iterator
from typing import Final

from weft.check.code.facts import code_of
from weft.check.rule import rule
from weft.check.rules.declared import all_entries
from weft.check.rules.prompts import insertions, quoted_words, words
from weft.check.spelling import variable_meant
from weft.check.subject import Hit, Subject
from weft.check.values import texts_in
from weft.spec.conditions import names
from weft.spec.ingredients import VariablesIngredient
from weft.spec.templates import references
from weft.spec.variables import (
    ComputedSource,
    DatabaseSource,
    DerivedSource,
    EntitySource,
    ExternalSource,
    Source,
)

#: Where a variable may be set or read.
_READS: Final = (
    "variables", "agents", "exposure", "handoffs", "tools", "lifecycle_tools", "hooks", "code",
)  # fmt: skip


@rule("VAR011", *_READS)
def something_sets_it(subject: Subject) -> Iterator[Hit]:
    variables = subject.spec.variables
    still = [
        name
        for name, source in subject.sources(DerivedSource)
        if not _has_trigger(source) and not variables[name].writers
    ]
    if not still:
        return
    written = _set_by_code(subject)
    # A variable that nothing reads is reported for that alone.
    read = subject.once(read_variables)
    for name in still:
        if written is not None and name not in written and name in read:
            yield Hit(
                ("variables", name, "source"),
                f"nothing ever sets {name}: it keeps its default for the whole run",
                hint=("add a trigger, or name who may set it under writers", "or make it static"),
            )


def _lacks_code(subject: Subject) -> bool:
    """Tell whether declared code is not there: what it would set and read is not known."""
    return any(entry.file not in subject.code for entry in all_entries(subject))


def _has_trigger(source: DerivedSource) -> bool:
    return bool(source.triggers) or any(step.trigger for step in source.transitions)


def _set_by_code(subject: Subject) -> frozenset[str] | None:
    """Return the variables that code sets; None if it may be any."""
    code = code_of(subject)
    if code.faults or _lacks_code(subject):
        return None
    definitions = [
        definition for module in code.modules.values() for definition in module.definitions.values()
    ]
    found = {write.variable for definition in definitions for write in definition.writes}
    # A misspelt name is reported by VAR021, and counts as what it means.
    return None if None in found else frozenset(variable_meant(subject, it) for it in found if it)


@rule("VAR012", *_READS)
def something_reads_it(subject: Subject) -> Iterator[Hit]:
    if _lacks_code(subject):
        return
    read = subject.once(read_variables)
    for name, variable in subject.spec.variables.items():
        if name not in read and not _is_kept(variable.source):
            yield Hit(
                ("variables", name),
                f"nothing reads {name}: no prompt, no condition, no computation, no code",
                hint=("remove it, or expose it to the agent that needs it",),
                at_key=True,
            )


def _is_kept(source: Source) -> bool:
    if isinstance(source, ComputedSource):
        return source.persist_to is not None
    return isinstance(source, EntitySource)


def read_variables(subject: Subject) -> frozenset[str]:
    """Return what anything in the package reads; a misspelt name counts as what it means."""
    spec = subject.spec
    read = {name for listed in spec.exposure.values() for name in listed}
    read |= {use.name for use in insertions(subject)}
    for index, handoff in enumerate(spec.handoffs):
        if index in subject.conditions:
            read.update(names(subject.conditions[index]))
        elif handoff.condition:
            read |= words(handoff.condition)
    for agent in spec.agents:
        for part in agent.context:
            read.update(part.names if isinstance(part, VariablesIngredient) else ())
    for variable in spec.variables.values():
        read |= _read_by(variable.source)
    meant = {variable_meant(subject, name) for name in read}
    return frozenset(meant.union(*(quoted_words(text) for text in subject.code.values())))


def _read_by(source: Source) -> set[str]:
    match source:
        case ComputedSource():
            return {*source.inputs, source.persist_to or ""}
        case EntitySource(search_by=field):
            return {field}
        case DatabaseSource():
            texts = [text for _, text in texts_in(source.query_template, ())]
            inserted = {use.name for text in texts for use in references(text)}
            return {source.search_by or "", *inserted}
        case ExternalSource(url=url):
            return {use.name for use in references(url)}
        case _:
            return set()
