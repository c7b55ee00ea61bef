"""Regular expressions: whether one can be used at all, and in bounded time."""

import re
import warnings
from dataclasses import dataclass
from typing import Final

from weft.check.regex_ways import Slow, look_for_slow_parts

#: A pattern beyond this is no text to look for, and the time to prepare it grows without use.
MAX_LENGTH: Final = 1000


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a pattern, where, and what to do."""

    fact: str
    hint: str
    offset: int = 0


def regex_fault(pattern: str) -> Fault | None:
    """Say why a pattern must not be used, or None if it may."""
    if len(pattern) > MAX_LENGTH:
        hint = "look for a shorter text, or use several triggers"
        return Fault(f"it is longer than {MAX_LENGTH} characters", hint, MAX_LENGTH)
    try:
        with warnings.catch_warnings():
            # What Python warns of today it will read differently tomorrow.
            warnings.simplefilter("error")
            re.compile(pattern)
        look_for_slow_parts(pattern)
    except re.error as error:
        hint = "correct the pattern; write a backslash before a sign that is meant literally"
        return Fault(f"it does not compile: {error.msg}", hint, error.pos or 0)
    except Slow as slow:
        return Fault(slow.fact, slow.hint, slow.offset)
    except RecursionError:
        return Fault("it is nested too deeply", "write the pattern more simply")
    except (Warning, OverflowError) as error:
        return Fault(f"it cannot be used: {error}", "write the pattern more simply")
    return None
