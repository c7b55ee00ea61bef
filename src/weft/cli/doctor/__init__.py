"""What `weft doctor` looks at."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What one check came to; `remedy` is the command or act that fixes it."""

    state: Literal["ok", "warn", "fail"]
    subject: str
    fact: str
    remedy: str = ""
