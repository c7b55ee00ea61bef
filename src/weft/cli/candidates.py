"""What a shell may offer for a word that is not typed out yet.

A person waits for the answer after pressing a key: nothing here loads the models of packages.
"""

from pathlib import Path
from typing import Final, Protocol

from weft.cli.codes import CODES, FAMILIES
from weft.cli.settings import PACKAGES, nearest_workspace

#: The kinds of files `weft schema` knows, written out because asking for them loads every model.
SCHEMAS: Final = (
    "orchestrator",
    "agents",
    "context_variables",
    "handoffs",
    "tools",
    "hooks",
    "structured_outputs",
    "flow",
    "board",
    "pack",
    "action_plan",
)


class Given(Protocol):
    """The value of an option that stands before the cursor."""

    @property
    def raw(self) -> str | None:
        """The value as typed, or None if there is none."""
        ...


class Question(Protocol):
    """What is known when a word is to be completed."""

    @property
    def incomplete(self) -> str:
        """The word so far."""
        ...

    def get(self, name: str) -> Given | None:
        """Return what was given for another option."""
        ...


def package_names(question: Question) -> dict[str, str]:
    """Offer the packages of the workspace by name; they are not read."""
    given = question.get("--workspace")
    workspace = Path(given.raw) if given and given.raw else nearest_workspace(Path.cwd())
    folder = workspace / PACKAGES
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    return {it.name: "" for it in found if it.name[0] != "." and it.is_dir()}


def codes(question: Question) -> dict[str, str]:  # noqa: ARG001 - the signature of all of these
    """Offer every code with its title, and the families."""
    return {**dict.fromkeys(FAMILIES, "family"), **{it.code: it.title for it in CODES.values()}}


def code_lists(question: Question) -> dict[str, str]:
    """Offer codes to go on with a list that has commas between them."""
    before, comma, _ = question.incomplete.rpartition(",")
    return {f"{before}{comma}{code}": title for code, title in codes(question).items()}


def patterns(question: Question) -> dict[str, str]:  # noqa: ARG001
    """Offer the patterns by number and by name."""
    # Deferred: the other candidates do without it.
    from weft.spec.patterns import PATTERNS  # noqa: PLC0415

    numbers = {str(it.id): it.title for it in PATTERNS}
    return {**numbers, **{it.name: it.summary for it in PATTERNS}}


def schemas(question: Question) -> dict[str, str]:  # noqa: ARG001
    """Offer the kinds of files that have a schema."""
    return dict.fromkeys(SCHEMAS, "")
