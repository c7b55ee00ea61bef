"""The catalogue as a page: docs/findings.md is this text."""

import re
from collections.abc import Iterator
from typing import Final

from weft.cli.codes import FAMILIES
from weft.findings import Rule

_ABOUT: Final = {
    "SCHEMA": "Whether a file can be read, and whether what it holds has the right shape.",
    "NAME": "Whether names are well formed and stand for one thing each.",
    "TOOL": "Whether every tool has code and the code fits.",
    "BIND": "Whether the files agree on who the agents are.",
    "HAND": "Whether turns can be handed off as declared.",
    "EXPO": "Whether agents see the variables their prompts speak of.",
    "VAR": "Whether variables are declared so that they can have a value.",
    "STATE": "Whether state machines can move as declared.",
    "BOARD": "Boards: artifacts, who is woken by them, and what agents are shown.",
    "FLOW": "Flows: the order of steps, what they read and set, and who does them.",
    "HOOK": "Whether hooks have code and the code fits.",
    "OUT": "Whether the shapes of replies are declared and used.",
    "UI": "Whether questions to people can be shown and answered.",
    "ENV": "Whether the workflow works where some variables are suppressed.",
    "PACK": "Whether the packages of a workspace fit together.",
    "LINK": "Whether the code of a package can be loaded, found when a run is to begin.",
    "GEN": "Whether a generated package may be offered, found by simulated runs.",
    "CLI": "What the command line says when a command cannot be carried out.",
}

_INTRODUCTION: Final = """\
# Findings

Every code Weft prints, in families. `weft explain CODE` shows an entry in the terminal. An error
keeps the workflow from running. A warning does not; `weft check --strict` fails on both.

This page is generated from the catalogue: `make generate` writes it anew.
"""


def findings_page() -> str:
    """Return the page of all codes as Markdown."""
    parts = [_INTRODUCTION, *_contents(), ""]
    for family, rules in FAMILIES.items():
        parts += [f"## {family}", "", about(family), ""]
        for entry in rules:
            parts += [*_section(entry), ""]
    return "\n".join(parts).rstrip() + "\n"


def about(family: str) -> str:
    """Return what the codes of a family are about, in one sentence."""
    return _ABOUT[family]


def _contents() -> Iterator[str]:
    yield "| family | codes | about |"
    yield "|---|---|---|"
    for family, rules in FAMILIES.items():
        yield f"| [{family}](#{family.lower()}) | {len(rules)} | {about(family)} |"


def _section(entry: Rule) -> Iterator[str]:
    yield f"### {entry.code}"
    yield ""
    yield f"**{_escaped(entry.title)}** ({entry.severity})"
    yield ""
    yield _escaped(entry.why)
    yield ""
    yield f"To fix it: {_escaped(entry.fix)}"
    yield ""
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`+", entry.example) or [""]))
    yield f"{fence}text"
    yield entry.example
    yield fence


def _escaped(text: str) -> str:
    """Keep signs of HTML and emphasis from meaning something outside of code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if part.startswith("`") else re.sub(r"([<>*_\[\]\\])", r"\\\1", part) for part in parts
    )
