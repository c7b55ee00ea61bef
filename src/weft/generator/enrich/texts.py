"""Whether words that a model wrote may take the place of the plain ones.

The rules are about form: how long, what can be seen, which variables are put in, no secrets. What
the words ask an agent to do is not judged here: routing and rights rest on declarations, which no
words change, and a person approves the package.
"""

from collections.abc import Collection
from typing import Final

from weft.check.secrets import secret_in
from weft.ids import BUILT_IN_VARIABLES
from weft.spec.templates import references

PROMPT: Final = 4_000
#: As the checker has it for tools; other descriptions may say a little more.
TOOL: Final = 140
DESCRIPTION: Final = 300
MESSAGE: Final = 1_000


def text_faults(text: str, variables: Collection[str], longest: int = PROMPT) -> list[str]:
    """Say why a text cannot be taken; nothing if it can. `variables` may be put into it."""
    if not text.strip():
        return ["it says nothing"]
    if len(text) > longest:
        return [f"it has {len(text):,} characters, {longest:,} are the limit"]
    if fault := unseen(text):
        return [fault]
    named = {it.name for it in references(text)} - {*variables, *BUILT_IN_VARIABLES}
    faults = [f"it puts in {name[:40]}, which is not shown here" for name in sorted(named)]
    secret = secret_in("text", text)
    return [*faults, f"it seems to hold a secret, {secret}"] if secret else faults


def unseen(text: str) -> str | None:
    """Say that a text has signs which nobody sees, such as those that turn it around."""
    strange = next((it for it in text if not it.isprintable() and it not in "\n\t"), None)
    return f"it has the invisible sign U+{ord(strange):04X}" if strange else None
