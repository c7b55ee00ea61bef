"""Tools that come with Weft: a package binds one with `"file": "weft"` and its name."""

from weft.findings import Json
from weft.runtime.tools.context_variables import Context


def context_summary(context_variables: Context) -> dict[str, Json]:
    """Get a summary of the variables you may read: type, source and shortened value of each."""
    return context_variables.summary()
