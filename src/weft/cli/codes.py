"""The codes of the command line's own messages, one for each way in which a command can fail.

They stand beside the catalogue and not in it: no rule raises them and no package causes them. The
number of a code is the exit code that goes with it.
"""

from typing import Final

from weft.catalogue import CATALOGUE
from weft.catalogue import FAMILIES as CHECKED
from weft.findings import Rule
from weft.ids import nearest

_RULES: Final = (
    Rule(
        code="CLI001",
        severity="error",
        title="What the command is about is not in order",
        why=(
            "A package cannot be read or has errors, a run did not come to its end, or a replay "
            "differs from what was recorded. Going on would give a result that looks complete and "
            "is not. Packages are left as they were, and what happened in a run is kept."
        ),
        fix=(
            "Fix what the findings above the message name, then give the command again. What "
            "happened in a run is shown by `weft inspect RUN`."
        ),
        example="weft diagram Support        while agents.json lacks a comma",
    ),
    Rule(
        code="CLI002",
        severity="error",
        title="The command was not understood",
        why="An unknown word, option or value is refused: what was meant would be a guess.",
        fix="Correct it as the hint says. `weft --help` lists the commands, `weft check --help` "
        "the options of one.",
        example="weft chekc        the command is called check",
    ),
    Rule(
        code="CLI003",
        severity="error",
        title="Something about this machine is in the way",
        why=(
            "A folder cannot be read or written, the disk is full, or an optional part is not "
            "installed. The request itself is in order."
        ),
        fix="Do what the hint says, or run `weft doctor`, which looks at the whole setup.",
        example="weft check --watch        without the optional part that watches files",
    ),
    Rule(
        code="CLI004",
        severity="error",
        title="The run waits for a person",
        why=(
            "A question is open and there is no person to ask: stdin is not a terminal, or the "
            "output is for a program. The run is kept and waits, for as long as it takes."
        ),
        fix="Answer with the command the message names, or in a chat: `weft chat --run RUN`.",
        example="weft run Support </dev/null        while an agent asks the customer something",
    ),
    Rule(
        code="CLI006",
        severity="error",
        title="What the command names is not there",
        why="The name or path leads to nothing, so there is nothing to work on.",
        fix=(
            "Look at the spelling, which the hint may correct, and at the folder you are in: names "
            "of packages are looked up in the nearest folder upward that contains `workflows`, or "
            "in the one `--workspace` names."
        ),
        example="weft diagram Suport        the package is called Support",
    ),
    Rule(
        code="CLI007",
        severity="error",
        title="Something else is already there",
        why="Carrying out the command would overwrite what may still be needed.",
        fix=(
            "Choose another name, or remove what is there if it is no longer needed. "
            "`weft import` replaces files you have changed with `--force` and keeps a backup."
        ),
        example="weft new Support        when workflows/Support exists",
    ),
    Rule(
        code="CLI070",
        severity="error",
        title="An error in Weft",
        why="Something happened that the authors did not foresee. Your files are not the cause.",
        fix=(
            "Please report it and attach the file the message names. It holds the place in Weft "
            "where it happened, the version, and the command without its values."
        ),
        example="error[CLI070]: Weft stopped because of an error of its own",
    ),
)

#: All families with their codes: those of the checker, and that of the command line.
FAMILIES: Final[dict[str, tuple[Rule, ...]]] = {**CHECKED, "CLI": _RULES}

#: Every code `weft explain` knows.
CODES: Final[dict[str, Rule]] = {**CATALOGUE, **{entry.code: entry for entry in _RULES}}

_MOST_DIGITS: Final = 9


def meant_by(word: str) -> str | None:
    """Say which code or family was most likely meant by a word that is none.

    Within a family numbers are compared and not letters: HAND01 is HAND001 or HAND010.
    """
    wanted = word.upper()
    letters = wanted.rstrip("0123456789")
    # No number is that long, and reading one that is without end would fail.
    digits = wanted.removeprefix(letters)[:_MOST_DIGITS]
    family = letters if letters in FAMILIES else nearest(letters, FAMILIES)
    if family is None or not digits:
        return family or nearest(wanted, CODES)
    known = [(entry.code, entry.code.removeprefix(family)) for entry in FAMILIES[family]]
    same = [code for code, number in known if int(number) == int(digits)]
    longer = [code for code, number in known if number.startswith(digits)]
    closest = min(known, key=lambda it: abs(int(it[1]) - int(digits)))[0]
    return " or ".join(dict.fromkeys([*same[:1], *longer[:1]])) or closest
