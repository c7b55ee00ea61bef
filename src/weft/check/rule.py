"""A rule: one function, one code. The catalogue says what the code means."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import TypeAlias

from weft.check.subject import Hit, Subject

Check: TypeAlias = Callable[[Subject], Iterable[Hit]]


@dataclass(frozen=True, slots=True)
class CheckRule:
    """A rule of the checker, and the parts of the spec it reads.

    A rule is passed over when a file it reads from could not be read: what it would say about the
    rest would only repeat that fault in other words.
    """

    code: str
    reads: frozenset[str]
    check: Check


def rule(code: str, *reads: str) -> Callable[[Check], CheckRule]:
    """Make a function a rule; `reads` names fields of WorkflowSpec, or "code"."""

    def bind(check: Check) -> CheckRule:
        return CheckRule(code, frozenset(reads), check)

    return bind


def rules_of(*modules: ModuleType) -> tuple[CheckRule, ...]:
    """Collect the rules of modules, so that none can be forgotten in a list."""
    found = [value for module in modules for value in vars(module).values()]
    return tuple(value for value in found if isinstance(value, CheckRule))
