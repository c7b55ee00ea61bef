"""NAME003 and VAR011: variables that nothing reads, and variables that nothing sets."""

from collections.abc import Iterator
from typing import Final

from weft.check.code.facts import code_of, function_named, module_file, module_names
from weft.check.code.modules import Definition
from weft.check.declarations import insertions, placed_triggers, quoted_words, words
from weft.check.flow_parts import sources, tested
from weft.check.flow_parts import texts as flow_texts
from weft.check.rules.code import REFERENCES, AnyEntry, Folder, all_entries, files_under
from weft.check.rules.sources import needs_of
from weft.check.spelling import variable_meant
from weft.check.subject import Hit, Subject, rule
from weft.engine.variables.access import may_read
from weft.errors import ExpressionError
from weft.findings import Place
from weft.ids import nearest
from weft.spec.agents import VariablesIngredient
from weft.spec.conditions import names
from weft.spec.flow import VariableIngredient
from weft.spec.orchestrator import DatabaseStart, FormStart, WebhookStart
from weft.spec.templates import references
from weft.spec.tools import UiTool, is_built_in
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
        return  # any step may set any field of the state
    variables = subject.spec.variables
    still = [
        name
        for name, source in subject.sources(DerivedSource)
        if not _has_trigger(source) and not variables[name].writers
    ]
    still = [name for name in still if not _comes_with_start(subject, name)]
    if not still:
        return
    written = _set_by_code(subject)
    # A variable that nothing reads is reported for that alone.
    read = subject.once(read_variables)
    for name in still:
        if written is not None and name not in written and name in read:
            yield Hit(
                ("variables", name, "source"),
                f"{name} is never set: it keeps its default",
                hint=("add a trigger, or list its writers", "or make it static"),
            )


def _comes_with_start(subject: Subject, name: str) -> bool:
    """Tell whether a variable may begin with a field of what starts the run."""
    start = subject.spec.orchestrator.trigger
    if isinstance(start, FormStart) and start.form:
        return name in subject.models.get(start.form, {})
    return isinstance(start, FormStart | WebhookStart | DatabaseStart)


def _lacks_code(subject: Subject) -> bool:
    """Tell whether declared code is not there: what it would set and read is not known."""
    return any(entry.file not in subject.code for entry in all_entries(subject))


def _has_trigger(source: DerivedSource) -> bool:
    return bool(source.triggers) or any(step.trigger for step in source.transitions)


def _definitions(subject: Subject) -> list[Definition]:
    modules = code_of(subject).modules.values()
    return [definition for module in modules for definition in module.definitions.values()]


def _set_by_code(subject: Subject) -> frozenset[str] | None:
    """Return the variables that code sets; None if it may be any."""
    code = code_of(subject)
    if code.faults or _lacks_code(subject):
        return None
    definitions = _definitions(subject)
    found = {write.variable for definition in definitions for write in definition.writes}
    # A misspelt name is reported by VAR021, and counts as what it means.
    return None if None in found else frozenset(variable_meant(subject, it) for it in found if it)


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
    for tool in spec.tools:
        if isinstance(tool, UiTool):
            read.update(it.name for it in references(tool.for_ or ""))
        elif is_built_in(tool):  # a digest of all that its agent may read
            read |= {name for name in spec.variables if may_read(spec.variables, name, tool.agent)}
    for server in spec.mcp_servers:
        read.update(it.name for it in references(server.for_ or ""))
    read |= set(_taken_by_functions(subject))
    # A misspelt name in the code is reported by NAME001, and counts as what it means.
    read |= {it.variable for definition in _definitions(subject) for it in definition.reads}
    read |= set(_read_by_steps(subject))
    meant = {variable_meant(subject, name) for name in read}
    return frozenset(meant.union(*(quoted_words(text) for text in subject.code.values())))


def _read_by(source: Source) -> set[str]:
    if isinstance(source, ComputedSource):
        return {*source.inputs, source.persist_to or ""}
    return {need.name for need in needs_of(source)}


def _read_by_steps(subject: Subject) -> Iterator[str]:
    """Yield what a flow reads: its state is given to every step, and the rest is asked for."""
    if subject.spec.flow:
        yield from (name for name, _ in subject.sources(DerivedSource))
        for _, _, it in sources(subject):
            if isinstance(it, VariableIngredient):
                yield it.name
        for it in tested(subject):
            if not isinstance(it.condition, ExpressionError):
                yield from (name.partition(".")[0] for name in names(it.condition))
        for _, text in flow_texts(subject):
            yield from (it.name for it in references(text))


def _taken_by_functions(subject: Subject) -> Iterator[str]:
    """Yield what functions of triggers take: they are given each variable by its name."""
    for placed in placed_triggers(subject):
        if isinstance(placed.trigger, FunctionTrigger):
            found = function_named(subject, placed.trigger.function)
            yield from (it.name for it in found[1].parameters) if found else ()


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
    references = (it.reference for find in REFERENCES.values() for it in find(subject))
    modules = [reference.partition(":")[0] for reference in references]
    used.update(file for name in modules if (file := _module_meant(subject, name)))
    for path, module in code_of(subject).modules.items():
        used |= module.imports - {path}
    return used


def _file_meant(subject: Subject, entry: AnyEntry) -> str | None:
    """Return the declared file; a misspelt one stands for the file that was probably meant."""
    if entry.file in subject.code:
        return entry.file
    near = nearest(entry.declared.file, files_under(subject, entry.folder))
    return f"{entry.folder}/{near}" if near else None


def _module_meant(subject: Subject, name: str) -> str | None:
    near = name if module_file(subject, name) else nearest(name, module_names(subject))
    return module_file(subject, near) if near else None
