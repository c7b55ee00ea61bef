"""Code files that nothing in the package refers to."""

from collections.abc import Iterator

from weft.check.code_facts import code_of, module_file, module_names
from weft.check.declared_code import AnyEntry, Folder, all_tool_entries, files_under, hook_entries
from weft.check.subject import Hit, Subject
from weft.check.trigger_places import placed_triggers
from weft.findings import Place
from weft.ids import FUNCTION_REF, nearest
from weft.spec.flow import FunctionStep
from weft.spec.sources import ComputedSource
from weft.spec.triggers import FunctionTrigger


def unused_files(subject: Subject, folder: Folder, file_of_declarations: str) -> Iterator[Hit]:
    """Report the files of a folder that are neither declared nor imported."""
    if code_of(subject).faults:
        return  # what a broken file imports is not known
    used = _files_in_use(subject)
    for name in files_under(subject, folder):
        file = f"{folder}/{name}"
        if file not in used and not name.endswith("__init__.py"):
            yield Hit(
                (),
                f"nothing refers to {file}",
                hint=(f"declare its function in {file_of_declarations}, or delete the file",),
                place=Place(file, 1, 1),
            )


def _files_in_use(subject: Subject) -> set[str]:
    entries = [*all_tool_entries(subject), *hook_entries(subject)]
    used = {file for entry in entries if (file := _file_meant(subject, entry))}
    modules = [reference.partition(":")[0] for reference in _references(subject)]
    used.update(file for name in modules if (file := _module_meant(subject, name)))
    for path, module in code_of(subject).modules.items():
        used |= module.imports - {path}
    return used


def _file_meant(subject: Subject, entry: AnyEntry) -> str | None:
    """Return the declared file; one that is misspelt stands for the one that was likely meant."""
    if entry.file in subject.code:
        return entry.file
    near = nearest(entry.declared.file, files_under(subject, entry.folder))
    return f"{entry.folder}/{near}" if near else None


def _module_meant(subject: Subject, name: str) -> str | None:
    near = name if module_file(subject, name) else nearest(name, module_names(subject))
    return module_file(subject, near) if near else None


def _references(subject: Subject) -> Iterator[str]:
    """Yield every `module:function` of the workflow."""
    for extension in subject.spec.orchestrator.runtime_extensions:
        yield extension.entrypoint
    for variable in subject.spec.variables.values():
        source = variable.source
        if isinstance(source, ComputedSource) and FUNCTION_REF.match(source.computation):
            yield source.computation
    for placed in placed_triggers(subject.spec):
        if isinstance(placed.trigger, FunctionTrigger):
            yield placed.trigger.function
    for step in subject.spec.flow.steps if subject.spec.flow else ():
        if isinstance(step, FunctionStep):
            yield step.function
