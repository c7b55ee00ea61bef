"""Who may see a variable: the counterpart of `writes`."""

from collections.abc import Mapping

from weft.ids import BUILT_IN_VARIABLES
from weft.spec.variables import Variable


def may_read(variables: Mapping[str, Variable], name: str, agent: str) -> bool:
    """Tell whether an agent may see a variable; what nobody declared is hidden."""
    variable = variables.get(name)
    if variable is None:
        return name in BUILT_IN_VARIABLES
    return variable.readers is None or agent in variable.readers
