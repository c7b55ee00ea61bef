"""What an edit does to the data of a file: whether it fits, and what comes of it."""

from dataclasses import dataclass
from typing import TypeAlias, cast

from weft.errors import PackageError
from weft.findings import AppendItem, Edit, Path, Remove, RenameKey, SetValue
from weft.packages.text_index import Data, show


@dataclass(frozen=True, slots=True)
class Insert:
    """Add an entry or an item at the end of the container at `path`."""

    path: Path
    key: str | int
    value: Data


Step: TypeAlias = SetValue | RenameKey | Remove | Insert


def resolve(file: str, data: Data, edit: Edit) -> Step:
    """Check an edit against the data, and tell adding from replacing."""
    trail = _trail(data, edit.path)
    there, missing = trail[-1], edit.path[len(trail) - 1 :]
    parent = trail[-2] if len(trail) > 1 else None
    match edit:
        case AppendItem() if isinstance(there, list) and not missing:
            return Insert(edit.path, len(there), cast("Data", edit.value))
        case AppendItem() if there is None or missing:
            return resolve(file, data, SetValue(edit.path, [edit.value]))
        case SetValue() if not missing:
            return edit
        case SetValue() if step := _addition(there, edit, len(trail) - 1):
            return step
        case Remove() if parent and not missing:
            return edit
        case RenameKey() if isinstance(parent, dict) and not missing and edit.key not in parent:
            return edit
        case _:
            path = ".".join(str(part) for part in edit.path)
            what = f"{type(edit).__name__} does not fit what stands at {show(path)}"
            raise PackageError(f"{file} cannot be changed: {what}")


def _trail(data: Data, path: Path) -> list[Data]:
    """Return the values along a path, from the root as far as the path exists."""
    trail = [data]
    for part in path:
        here = trail[-1]
        in_list = isinstance(here, list) and isinstance(part, int) and 0 <= part < len(here)
        if not in_list and not (isinstance(here, dict) and part in here):
            break
        trail.append(_entries(here)[part])
    return trail


def _addition(there: Data, edit: SetValue, depth: int) -> Step | None:
    """Return the step that adds a missing entry, with the objects around it, if one can."""
    path, key, inner = edit.path[:depth], edit.path[depth], edit.path[depth + 1 :]
    value: Data = cast("Data", edit.value)
    for part in reversed(inner):
        value = {str(part): value}
    if any(isinstance(part, int) for part in inner):
        return None
    if (isinstance(there, list) and key == len(there)) or (
        isinstance(there, dict) and isinstance(key, str)
    ):
        return Insert(path, key, value)
    return SetValue(path, {key: value}) if there is None and isinstance(key, str) else None


def carried_out(data: Data, step: Step) -> Data:
    """Change the data as the text is to be changed."""
    if isinstance(step, Insert):
        container = _trail(data, step.path)[-1]
        if isinstance(container, list):
            container.append(step.value)
        else:
            _entries(container)[step.key] = step.value
        return data
    if not step.path:
        return cast("Data", step.value) if isinstance(step, SetValue) else data
    last, entries = step.path[-1], _entries(_trail(data, step.path)[-2])
    match step:
        case SetValue():
            entries[last] = cast("Data", step.value)
        case Remove():
            del entries[last]
        case _:
            renamed = {step.key if key == last else key: item for key, item in entries.items()}
            entries.clear()
            entries.update(renamed)
    return data


def _entries(container: Data) -> dict[str | int, Data]:
    """Treat a list like an object whose keys are its indexes, which reading and writing allow."""
    return cast("dict[str | int, Data]", container)
