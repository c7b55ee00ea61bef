"""The code of computed values: numbers worked out from a document that the workflow keeps."""

from typing import Final

from weft.generator.code.python_text import Piece, docstring, module
from weft.generator.quantities import AMOUNTS, Quantity, computation_of, quantity_of
from weft.spec.variables import ComputedSource
from weft.spec.workflow import WorkflowSpec

_TYPES: Final[dict[Quantity, str]] = {"total": "float", "average": "float", "count": "int"}
_RESULTS: Final[dict[Quantity, str]] = {
    "total": "float(sum(amounts))",
    "average": "sum(amounts) / len(amounts) if amounts else 0.0",
    "count": "len(amounts)",
}


def computed_files(spec: WorkflowSpec) -> dict[str, str]:
    """Return the files of the functions that compute variables, by path."""
    files: dict[str, str] = {}
    for name, variable in spec.variables.items():
        source, quantity = variable.source, quantity_of(name)
        if (
            quantity
            and isinstance(source, ComputedSource)
            and source.computation == computation_of(name)
        ):
            (document,) = source.inputs
            doc = docstring(variable.description, f"Work out {name}.")
            text = (
                f"def {name}({document}: dict | None) -> {_TYPES[quantity]}:\n{doc}"
                f'    amounts = ({document} or {{}}).get("{AMOUNTS}") or []\n'
                f"    return {_RESULTS[quantity]}\n"
            )
            files[f"tools/{name}.py"] = module(variable.description, [Piece(text)])
    return files
