"""The commands about generations and their plans, as a table."""

from typing import Final

from weft.cli.commands.command import Command

GENERATE: Final = Command(
    "generate",
    "[BRIEF] [OPTIONS]",
    "Design a workflow with you, and write its package when you approve the plan.\n\n"
    "It is a run of the package Generator: an interview, a plan, your approval, the files, a "
    "check with simulated runs, your approval. Without a language model stated rules design it. A "
    "package that was generated from this brief or plan before is updated, and what you have "
    "changed in it stays. Exits with 4 where a question is open and stdin is not a "
    "terminal, with 7 where a package is in the way or the same lines were changed.",
    (
        "weft generate 'Route questions of customers to billing or tech' --approve",
        "weft generate --from brief.txt --model designer --approve -o workflows",
        "weft generate --from brief.txt --answers answers.yaml --until plan",
        "weft generate --run last      continues one that waits or was interrupted",
        "weft generate --from workflows/Returns/action_plan.json      after changing the plan",
    ),
)

PLAN: Final = (
    Command(
        "show",
        "RUN [OPTIONS]",
        "Show the plan of a generation, its drawing, and what was decided.",
        ("weft plan show last", "weft plan show last --round 1", "weft plan show last --mermaid"),
        "plan:show",
    ),
    Command(
        "diff",
        "RUN [ROUND] [ROUND] [OPTIONS]",
        "Compare two rounds of a plan: the last two, or those named.",
        ("weft plan diff last", "weft plan diff last 1 3"),
        "plan:diff",
    ),
    Command(
        "approve",
        "RUN [OPTIONS]",
        "Approve the plan a generation waits with, and go on with it.",
        ("weft plan approve last", "weft plan approve last --hash 3f9c2a1b7d40"),
        "plan:approve",
    ),
    Command(
        "comment",
        "RUN TEXT [OPTIONS]",
        "Say what shall be different in a plan, and go on until the next one is there.",
        (
            "weft plan comment last 'add specialist Reviewer'",
            "weft plan comment last 'pattern: Star'",
        ),
        "plan:comment",
    ),
)
