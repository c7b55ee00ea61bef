"""The verbs of `weft`, as a table: what a help page says without loading any of them."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb: its name, what is written after it, what it does, and how it is used."""

    name: str
    usage: str
    help: str
    examples: tuple[str, ...]

    @property
    def target(self) -> str:
        """Where the function stands that carries the verb out."""
        return f"weft.cli.verb_{self.name}:{self.name}{'_' if self.name == 'import' else ''}"


VERBS: Final = (
    Verb(
        "init",
        "[DIR] [OPTIONS]",
        "Make a workspace with two example packages.",
        ("weft init shop", "weft init shop --force      write the examples anew"),
    ),
    Verb(
        "new",
        "NAME [OPTIONS]",
        "Make a package from the template of a pattern.",
        ("weft new Returns --pattern 6", "weft new Returns --pattern FeedbackLoop"),
    ),
    Verb(
        "check",
        "[PATHS...] [OPTIONS]",
        "Check packages and say how to mend them.",
        (
            "weft check",
            "weft check Returns --fix",
            "weft check --select HAND,EXPO003 --format concise",
            "weft check --format sarif > weft.sarif",
        ),
    ),
    Verb(
        "explain",
        "[CODE] [OPTIONS]",
        "Explain a code: what it means, why it matters, how to mend it.",
        ("weft explain HAND001", "weft explain HAND", "weft explain --all --format markdown"),
    ),
    Verb(
        "diagram",
        "NAME [OPTIONS]",
        "Draw a workflow.",
        ("weft diagram Returns", "weft diagram Returns --kind sequence --format svg -o out.svg"),
    ),
    Verb(
        "migrate",
        "[PATHS...] [OPTIONS]",
        "Rewrite older spellings to the present one.",
        ("weft migrate --dry-run", "weft migrate Returns"),
    ),
    Verb(
        "schema",
        "[NAME] [OPTIONS]",
        "Print the JSON Schemas of package files.",
        ("weft schema", "weft schema agents", "weft schema --write schemas"),
    ),
    Verb(
        "export",
        "NAME [OPTIONS]",
        "Write a package to a zip file with a manifest of hashes.",
        ("weft export Returns", "weft export Returns -o returns.zip"),
    ),
    Verb(
        "import",
        "FILE [OPTIONS]",
        "Install or update a package from a zip file.",
        ("weft import returns.zip --dry-run", "weft import returns.zip"),
    ),
    Verb(
        "doctor",
        "[OPTIONS]",
        "Look at the setup and name the command that mends it.",
        ("weft doctor",),
    ),
    Verb(
        "completion",
        "SHELL",
        "Print a script that lets a shell complete weft commands.",
        (
            'eval "$(weft completion bash)"      in ~/.bashrc',
            'eval "$(weft completion zsh)"       in ~/.zshrc, after compinit',
            "weft completion fish > ~/.config/fish/completions/weft.fish",
            "weft completion powershell | Out-String | Invoke-Expression      in $PROFILE",
        ),
    ),
)

VERB_NAMES: Final = tuple(verb.name for verb in VERBS)
