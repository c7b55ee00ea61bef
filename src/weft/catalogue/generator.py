"""Family GEN: what keeps a generated package from being offered."""

from typing import Final

from weft.findings import Rule

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        code="GEN001",
        severity="error",
        title="A simulated run does not come to a good end",
        why=(
            "Every generated package is run with a model and with people that are made up. One of "
            "these runs failed, did not end within its turns or hung, or a tool failed in it, so "
            "real ones would too."
        ),
        fix="Correct what the finding names: a handoff that leads nowhere, or a tool that fails.",
        example="a run did not end within its 20 turns",
    ),
    Rule(
        code="GEN002",
        severity="error",
        title="No simulated run comes to something that is declared",
        why=(
            "The explorer says that runs can come there, and many simulated runs that were steered "
            "there did not: what a condition waits for never happens. It is a warning where a "
            "workflow is so large that there were not enough runs to tell."
        ),
        fix="Correct the trigger of the variable that the condition tests, or remove the rule.",
        example="no simulated run took WriterAgent -> EditorAgent when draft_ready",
    ),
    Rule(
        code="GEN003",
        severity="warning",
        title="A library that the package needs is not installed",
        why="Its tools import the library, so the package runs only where it is installed.",
        fix="Install it where Weft runs: pip install -r requirements.txt",
        example="requirements.txt: stripe",
    ),
    Rule(
        code="GEN004",
        severity="error",
        title="A generated tool has its code outside of the package",
        why=(
            "What a model writes is not executed while a package is generated. Code that is "
            "installed would be, and nobody has looked at what it does."
        ),
        fix="Write the tool as a file of the package.",
        example='{"agent": "Clerk", "file": "python:shutil", "function": "rmtree"}',
    ),
)
