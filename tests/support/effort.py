"""How long tests may take that could go on for ever: `make torture` lets them go on for longer."""

import os

#: 1 in the suite; tests that draw examples or kill processes do so this many times as often.
TIMES = int(os.environ.get("WEFT_TORTURE", "1"))
