"""How much tests do that draw examples at random or kill processes: a sample, or `make torture`."""

import os

#: 1 in the suite and 10 in `make torture`: the factor of all examples, kills and hostile files.
TIMES = int(os.environ.get("WEFT_TORTURE", "1"))
