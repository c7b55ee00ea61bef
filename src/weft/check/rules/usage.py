"""NAME003 and VAR011: variables that nothing reads, and variables that nothing sets."""

from collections.abc import Iterator
from typing import Final

from weft.check.code.facts import code_of, function_named, module_file, module_names
from weft.check.code.modules import Definition
from weft.check.code.references import REFERENCES, code_references
from weft.check.declarations import comes_with_start, has_trigger, placed_triggers
from weft.check.parts import parts_of
from weft.check.rules.code import AnyEntry, Folder, all_entries, files_under
from weft.check.rules.references import named_variables
from weft.check.rules.sources import needs
from weft.check.spelling import variable_meant
from weft.check.subject import Hit, Subject, rule
from weft.check.texts import (
    FLOW_TESTS,
    inserted,
    quoted_words,
    routing_conditions,
    tested,
    words,
)
from weft.engine.variables.access import may_read
from weft.findings import Place
from weft.ids import nearest
from weft.spec.agents import Handoff, VariablesIngredient
from weft.spec.part import Part
from weft.spec.tools import is_built_in
from weft.spec.triggers import FunctionTrigger
from weft.spec.variables import ComputedSource, DerivedSource, EntitySource, Source

#: Where a variable may be set or read.
_READS: Final = (
    "variables", "agents", "exposure", "handoffs", "tools", "lifecycle_tools", "hooks", "code",
    "mcp_servers", "flow",
)  # fmt: skip


@rule("VAR011", *_READS)
def something_sets_it(subject: Subject) -> Iterator[Hit]:
    if subject.spec.flow:
        return  # any step can set any field of the state
    variables = subject.spec.variables
    still = {
        name: source.default
        for name, source in subject.sources(DerivedSource)
        if not has_trigger(source)
        and not variables[name].writers
        and not comes_with_start(subject, name)
    }
    if not still:
        return
    written = _set_by_code(subject)
    # A variable that nothing reads is reported by NAME003 only.
    read = subject.once(read_variables)
    for name, default in still.items():
        if written is not None and name not in written and name in read:
            yield Hit(
                ("variables", name, "source"),
                f"{name} is never set: it "
                + ("is always null" if default is None else "keeps its default"),
                hint=("add a trigger, or list its writers", "or make it static"),
            )


def _lacks_code(subject: Subject) -> bool:
    """Return whether declared code is missing, so that its reads and writes are unknown."""
    return any(entry.file not in subject.code for entry in all_entries(subject))


def _definitions(subject: Subject) -> list[Definition]:
    modules = code_of(subject).modules.values()
    return [definition for module in modules for definition in module.definitions.values()]


def _set_by_code(subject: Subject) -> frozenset[str] | None:
    """Return the variables that code sets; None if it may set any."""
    code = code_of(subject)
    if code.faults or _lacks_code(subject):
        return None
    definitions = _definitions(subject)
    found = {write.variable for definition in definitions for write in definition.writes}
    # A misspelt name is reported by VAR021, and counts as what it means.
    return (
        None
        if None in found
        else frozenset(variable_meant(subject, name) for name in found if name)
    )


@rule("NAME003", *_READS)
def something_reads_it(subject: Subject) -> Iterator[Hit]:
    if _lacks_code(subject):
        return
    read = subject.once(read_variables)
    for name, variable in subject.spec.variables.items():
        if name not in read and not _is_kept(variable.source):
            yield Hit(
                ("variables", name),
                f"the variable {name} is never used: no prompt, condition or code reads it",
                hint=("remove it, or expose it to the agent that needs it",),
                at_key=True,
            )


def _is_kept(source: Source) -> bool:
    if isinstance(source, ComputedSource):
        return source.persist_to is not None
    return isinstance(source, EntitySource)


def read_variables(subject: Subject) -> frozenset[str]:
    """Return all variables that are read; a misspelt name counts as what it means."""
    variables = subject.spec.variables
    read = {*named_variables(subject), *(need.name for need in needs(subject))}
    read |= {mention.name for mention in inserted(subject, Part)}
    tests = tested(subject, Handoff, *FLOW_TESTS)
    read |= {mention.name.partition(".")[0] for mention in tests}
    for index, handoff in enumerate(subject.spec.handoffs):
        if handoff.condition and index not in routing_conditions(subject):
            read |= words(handoff.condition)
    for _, ingredient in parts_of(subject, VariablesIngredient):
        read.update(ingredient.names)
    for tool in subject.spec.tools:
        if is_built_in(tool):  # it is a summary of all variables that its agent reads
            read |= {name for name in variables if may_read(variables, name, tool.agent)}
    if subject.spec.flow:  # every step receives the whole state
        read |= {name for name, _ in subject.sources(DerivedSource)}
    read |= set(_taken_by_functions(subject))
    # A misspelt name in the code is reported by NAME001, and counts as what it means.
    read |= {use.variable for definition in _definitions(subject) for use in definition.reads}
    meant = {variable_meant(subject, name) for name in read}
    return frozenset(meant.union(*(quoted_words(text) for text in subject.code.values())))


def _taken_by_functions(subject: Subject) -> Iterator[str]:
    """Yield the variables that functions of triggers receive as parameters."""
    for placed in placed_triggers(subject):
        if isinstance(placed.trigger, FunctionTrigger):
            found = function_named(subject, placed.trigger.function)
            yield from (parameter.name for parameter in found[1].parameters) if found else ()


# -- NAME003: files that nothing uses


@rule(
    "NAME003", "tools", "lifecycle_tools", "hooks", "variables", "orchestrator", "flow", "board",
    "code",
)  # fmt: skip
def file_is_used(subject: Subject) -> Iterator[Hit]:
    if code_of(subject).faults:
        return  # what a broken file imports is not known
    used = _files_in_use(subject)
    folders: tuple[Folder, ...] = ("tools", "hooks")
    for folder in folders:
        for name in files_under(subject, folder):
            file = f"{folder}/{name}"
            if file not in used and not name.endswith("__init__.py"):
                yield Hit(
                    (),
                    f"{file} is never used",
                    hint=(f"declare its function in {folder}.json, or delete the file",),
                    place=Place(file, 1, 1),
                )


def _files_in_use(subject: Subject) -> set[str]:
    used = {file for entry in all_entries(subject) if (file := _file_meant(subject, entry))}
    references = (
        named.reference for root in REFERENCES for named in code_references(root, subject)
    )
    modules = [reference.partition(":")[0] for reference in references]
    used.update(file for name in modules if (file := _module_meant(subject, name)))
    for path, module in code_of(subject).modules.items():
        used |= module.imports - {path}
    return used


def _file_meant(subject: Subject, entry: AnyEntry) -> str | None:
    """Return the declared file, or the file that was probably meant."""
    if entry.file in subject.code:
        return entry.file
    near = nearest(entry.declared.file, files_under(subject, entry.folder))
    return f"{entry.folder}/{near}" if near else None


def _module_meant(subject: Subject, name: str) -> str | None:
    near = name if module_file(subject, name) else nearest(name, module_names(subject))
    return module_file(subject, near) if near else None
