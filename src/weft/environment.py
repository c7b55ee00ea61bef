"""The environment of the process: read here and nowhere else."""

import os
from collections.abc import Mapping


def read_environment() -> Mapping[str, str]:
    """Return the environment variables as they are now."""
    return dict(os.environ)
