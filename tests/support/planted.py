"""Good packages written by hand, as a model could generate them, and mistakes planted in them."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[1] / "generated"


@cache
def good_package(name: str) -> Mapping[str, str]:
    """Return the files of a good package, with its plan."""
    folder = FOLDER / "packages" / name
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in paths}


GOOD = sorted(path.name for path in (FOLDER / "packages").iterdir())
MISTAKES: list[dict[str, Any]] = yaml.safe_load((FOLDER / "planted.yaml").read_text("utf-8"))


def with_mistake(mistake: Mapping[str, Any]) -> dict[str, str]:
    """Return the files of a package with a mistake planted in it."""
    files = dict(good_package(mistake["package"]))
    for edit in mistake["edits"]:
        match edit:
            case {"delete": file}:
                del files[file]
            case {"in": file, "old": old, "new": new}:
                assert files[file].count(old) == 1, f"{old!r} must occur once in {file}"
                files[file] = files[file].replace(old, new)
            case {"in": file, "at": path, **change}:
                data = json.loads(files[file])
                _change(data, path, change)
                files[file] = json.dumps(data, indent=2) + "\n"
            case _:
                raise AssertionError(f"no such edit: {edit}")
    return files


def _change(data: Any, path: list[Any], change: Mapping[str, Any]) -> None:
    *outer, last = path
    for step in outer:
        data = data[_place(data, step)]
    place = _place(data, last)
    if change == {"drop": True}:
        del data[place]
    else:
        data[place] = change["set"]


def _place(data: Any, step: Any) -> Any:
    """Return the key of a step; a mapping selects the one entry of a list that has its items."""
    if not isinstance(step, dict):
        return step
    (place,) = (at for at, entry in enumerate(data) if step.items() <= entry.items())
    return place
