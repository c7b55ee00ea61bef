"""The codes of the command line's own messages and of servers, and the page of all codes.

These codes are not in the catalogue, because no rule reports them. The number of a code is the exit
code of the command, or the HTTP status.
"""

import re
from collections.abc import Iterator
from functools import partial
from typing import Final

from weft.catalogue import CATALOGUE
from weft.catalogue import FAMILIES as CHECKED
from weft.findings import Rule
from weft.ids import nearest
from weft.server.codes import HTTP_RULES

_error: Final = partial(Rule, severity="error")

_RULES: Final = (
    _error(
        code="CLI001",
        title="The package or run has errors",
        why=(
            "A package cannot be read or has errors, a run failed, or a replay differs from the "
            "recorded run. Packages are not changed, and everything recorded of a run is kept."
        ),
        fix=(
            "Fix the findings printed above the message, then repeat the command. "
            "`weft inspect RUN` shows what happened in a run."
        ),
        example="weft diagram Support        while agents.json lacks a comma",
    ),
    _error(
        code="CLI002",
        title="Invalid command line",
        why="The command line has an unknown command, option or value. Weft does not guess.",
        fix="Correct it as the hint says. `weft --help` lists the commands, `weft check --help` "
        "the options of one.",
        example="weft chekc        the command is called check",
    ),
    _error(
        code="CLI003",
        title="Problem with the setup",
        why=(
            "A folder cannot be read or written, the disk is full, or an optional dependency is "
            "not installed."
        ),
        fix="Do what the hint says, or run `weft doctor`, which checks the whole setup.",
        example="weft check --watch        without the optional dependency watchfiles",
    ),
    _error(
        code="CLI004",
        title="The run waits for a person",
        why=(
            "A request is open and Weft cannot ask: stdin is not a terminal, or the output is "
            "JSON. The run is kept and waits."
        ),
        fix="Answer with the command in the message, or in a chat: `weft chat --run RUN`.",
        example="weft run Support </dev/null        while an agent asks the customer something",
    ),
    _error(
        code="CLI006",
        title="Not found",
        why="The name or path does not exist.",
        fix=(
            "Check the spelling and the current folder: packages are looked up in the nearest "
            "folder upward that contains `workflows`, or in the one `--workspace` names."
        ),
        example="weft diagram Suport        the package is called Support",
    ),
    _error(
        code="CLI007",
        title="The target already exists",
        why="The command would overwrite files that may still be needed.",
        fix=(
            "Choose another name, or remove the existing files. `weft import --force` replaces "
            "files you have changed and keeps a backup."
        ),
        example="weft new Support        when workflows/Support exists",
    ),
    _error(
        code="CLI070",
        title="Bug in Weft",
        why="Weft failed unexpectedly. Your files are not the cause.",
        fix=(
            "Please report it and attach the file named in the message. It contains the traceback, "
            "the version, and the command without its values."
        ),
        example="error[CLI070]: Weft failed unexpectedly",
    ),
)

#: All families with their codes: those of the checker, CLI and HTTP.
FAMILIES: Final[dict[str, tuple[Rule, ...]]] = {**CHECKED, "CLI": _RULES, "HTTP": HTTP_RULES}

#: Every code `weft explain` knows.
CODES: Final[dict[str, Rule]] = {
    **CATALOGUE,
    **{entry.code: entry for entry in (*_RULES, *HTTP_RULES)},
}

_MAX_DIGITS: Final = 9


def nearest_code(word: str) -> str | None:
    """Return the code or family that an unknown word most likely means.

    Within a family, numbers are compared, not letters: NAME01 is NAME001.
    """
    wanted = word.upper()
    letters = wanted.rstrip("0123456789")
    # Limited, because converting a very long number fails.
    digits = wanted.removeprefix(letters)[:_MAX_DIGITS]
    family = letters if letters in FAMILIES else nearest(letters, FAMILIES)
    if family is None or not digits:
        return family or nearest(wanted, CODES)
    known = [(entry.code, entry.code.removeprefix(family)) for entry in FAMILIES[family]]
    same = [code for code, number in known if int(number) == int(digits)]
    longer = [code for code, number in known if number.startswith(digits)]
    closest = min(known, key=lambda entry: abs(int(entry[1]) - int(digits)))[0]
    return " or ".join(dict.fromkeys([*same[:1], *longer[:1]])) or closest


_ABOUT: Final = {
    "SCHEMA": "Files: whether they can be read, and whether their content has the right shape.",
    "PACK": "Workspaces: workflows that require each other, and packs of workflows.",
    "LINK": "Code and features that are missing where a run starts.",
    "TEST": "What a run of a scenario shows, in `weft test`.",
    "GEN": "Generated packages: what simulated runs have shown.",
    "NAME": "Names: unknown, duplicate, unused, misspelt or reserved, wherever they are written.",
    "COND": "Conditions of handoffs, computed variables, boards and flows.",
    "CODE": "Functions and classes in code, wherever a declaration names them.",
    "HAND": "Handoffs and groups of agents.",
    "BIND": "Agents, models and extensions that a run needs.",
    "TOOL": "Tools and tool servers.",
    "UI": "Forms and components that people answer.",
    "VAR": "Variables: where their values come from and what sets them.",
    "EXPO": "Variables that agents are shown.",
    "STATE": "Variables with transitions.",
    "ENV": "Variables that do not exist where the workflow runs.",
    "OUT": "Models of structured outputs.",
    "BOARD": "Boards: artifacts, subscriptions and providers.",
    "FLOW": "Flows: steps, branches, approvals and context.",
    "CLI": "Messages of the command line when a command fails.",
    "HTTP": "Answers of a server to requests that it refuses; the number is the HTTP status.",
}

_INTRODUCTION: Final = """\
# Findings

Every code Weft prints, in families. `weft explain CODE` shows an entry in the terminal. An error
prevents the workflow from running. A warning does not; `weft check --strict` fails on both.

This page is generated from the catalogue: `make generate` writes it.
"""


def findings_page() -> str:
    """Return the page of all codes as Markdown."""
    parts = [_INTRODUCTION, *_contents(), ""]
    for family, rules in FAMILIES.items():
        parts += [f"## {family}", "", about(family), ""]
        for entry in rules:
            parts += [_section(entry), ""]
    return "\n".join(parts).rstrip() + "\n"


def about(family: str) -> str:
    """Return what the codes of a family are about, in one sentence."""
    return _ABOUT[family]


def _contents() -> Iterator[str]:
    yield "| family | codes | about |"
    yield "|---|---|---|"
    for family, rules in FAMILIES.items():
        yield f"| [{family}](#{family.lower()}) | {len(rules)} | {about(family)} |"


def _section(entry: Rule) -> str:
    fence = "`" * max(3, *(len(ticks) + 1 for ticks in re.findall(r"`+", entry.example) or [""]))
    paragraphs = [
        f"### {entry.code}",
        f"**{_escaped(entry.title)}** ({entry.severity})",
        _escaped(entry.why),
        f"To fix it: {_escaped(entry.fix)}",
        f"{fence}text\n{entry.example}\n{fence}",
    ]
    return "\n\n".join(paragraphs)


def _escaped(text: str) -> str:
    """Escape HTML and emphasis outside of code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if part.startswith("`") else re.sub(r"([<>*_\[\]\\])", r"\\\1", part) for part in parts
    )
