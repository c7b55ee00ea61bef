"""`python -m weft`: the command line."""

import sys

from weft.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
