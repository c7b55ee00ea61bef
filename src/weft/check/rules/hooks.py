"""Family HOOK: every declared hook has code that can be called at its moment."""

from collections.abc import Iterator

from weft.check.rules.declared import (
    hook_entries,
    misfits_at,
    missing_files,
    missing_functions,
    paths_outside,
    unused_files,
    with_code,
)
from weft.check.subject import Hit, Subject, rule


@rule("HOOK001", "hooks", "code")
def file_exists(subject: Subject) -> Iterator[Hit]:
    return missing_files(subject, hook_entries(subject))


@rule("HOOK002", "hooks", "code")
def function_exists(subject: Subject) -> Iterator[Hit]:
    return missing_functions(hook_entries(subject))


@rule("HOOK003", "hooks", "code")
def signature_fits(subject: Subject) -> Iterator[Hit]:
    for entry, module, function in with_code(hook_entries(subject)):
        yield from misfits_at(entry, module, function, entry.declared.hook_type)


@rule(
    "HOOK004",
    "tools",
    "lifecycle_tools",
    "hooks",
    "variables",
    "orchestrator",
    "flow",
    "board",
    "code",
)
def file_is_used(subject: Subject) -> Iterator[Hit]:
    return unused_files(subject, "hooks", "hooks.json")


@rule("HOOK005", "hooks")
def file_is_inside(subject: Subject) -> Iterator[Hit]:
    return paths_outside(subject, hook_entries(subject))
