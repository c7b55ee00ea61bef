"""Objects in code that a board or a flow refers to: whether they are there, in a package too."""

from collections.abc import Iterable, Iterator
from typing import Final

from weft.check.board_parts import LOCAL
from weft.check.code.facts import Missing, missing_function, module_file, module_names
from weft.check.subject import Hit, Subject
from weft.findings import Path
from weft.ids import nearest

#: Folders of a package: a module in one of them is none that is installed.
_OWN: Final = frozenset({"tools", "hooks", "workflows"})

#: Where a reference stands, and what it says.
Placed = tuple[Path, str]


def unfound(subject: Subject, references: Iterable[Placed]) -> Iterator[Hit]:
    """Yield what can be found neither in the package nor as a module that is installed."""
    for path, reference in references:
        missing = _missing(subject, reference)
        if missing:
            fact = f"{reference} cannot be found: {missing.fact}"
            yield Hit(path, fact, hint=missing.hint, severity=missing.severity)


def only_in_code(subject: Subject, references: Iterable[Placed]) -> Iterator[Hit]:
    """Yield what a package refers to although only the program has it that defines it."""
    if not subject.folder:
        return  # the workflow is defined in code, which alone may say it
    for path, reference in references:
        if reference.startswith(LOCAL):
            name = reference.removeprefix(LOCAL)
            fact = f"{reference} is only there in a program that defines it, not in a package"
            hint = f"write {name} into a file of the package: tools.code:{name}"
            yield Hit(path, fact, hint=(hint,))


def _missing(subject: Subject, reference: str) -> Missing | None:
    """Say why an object cannot be found."""
    module, _, name = reference.partition(":")
    if reference.startswith(LOCAL):
        return None
    if not _is_own(subject, module):
        return _not_installed(subject, module)
    return missing_function(subject, f"{module}:{name.partition('.')[0]}")


def _not_installed(subject: Subject, module: str) -> Missing | None:
    """Say that a module is nowhere here; it may be where the package is to run."""
    if not subject.folder or subject.is_installed is None or subject.is_installed(module):
        return None
    fact = f"{module} is no file of the package, and is not installed here"
    hint = f"copy {module.replace('.', '/')}.py into the package, or install {module} where it runs"
    return Missing(fact, (hint,), "warning")


def _is_own(subject: Subject, module: str) -> bool:
    """Tell whether a module is meant to be a file of the package."""
    if module_file(subject, module) or nearest(module, module_names(subject)):
        return True
    return bool(subject.folder) and module.partition(".")[0] in _OWN
