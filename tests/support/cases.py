"""Tables of cases in YAML files: what goes in, what comes out, and scenarios of commands."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml


def read_cases(test_file: str) -> dict[str, list[Any]]:
    """Return the tables of a test file by the names of its tests: `cases/NAME.yaml` beside it."""
    file = Path(test_file)
    text = (file.parent / "cases" / f"{file.stem}.yaml").read_text("utf-8")
    return yaml.load(text, Loader=yaml.CSafeLoader)


def scenario_tests(test_file: str) -> Callable[..., None]:
    """Return a test for each of the `scenarios` in the cases of a test file.

    A scenario names the fixtures of its world, then its steps in order: a preparation, or words for
    `weft` with the expected exit code, out and err (equal, or what each has, lacks, starts or ends
    with) and values in the JSON document (`data a.b`).
    """
    scenarios = read_cases(test_file)["scenarios"]

    @pytest.mark.parametrize("case", scenarios, ids=[case["name"] for case in scenarios])
    def play(request: pytest.FixtureRequest, weft: Callable[..., Any], case: Any) -> None:
        for name in case.get("world", ()):
            request.getfixturevalue(name)
        for step in case["steps"]:
            if "weft" in step:
                words = step["weft"]
                _check(step, weft(*(words.split() if isinstance(words, str) else words)))
            else:
                _prepare(request, step)

    return play


def _prepare(request: pytest.FixtureRequest, step: dict[str, Any]) -> None:
    """Type lines, write a file, a folder or a package, or set a variable of the environment."""
    fixture = request.getfixturevalue
    match step:
        case {"typed": lines}:
            fixture("typed")(*lines)
        case {"file": [path, content]}:
            text = content if isinstance(content, str) else json.dumps(content)
            Path(path).write_text(text, encoding="utf-8")
        case {"folder": path}:
            Path(path).mkdir()
        case {"package": [path, changes]}:
            fixture("make_package")(Path(path), **changes)
        case {"cd": name}:
            fixture("monkeypatch").chdir(fixture(name))
        case {"env": changes}:
            for name, value in changes.items():
                fixture("monkeypatch").setenv(name, value or "")
                if value is None:
                    fixture("monkeypatch").delenv(name)


def _check(step: dict[str, Any], outcome: Any) -> None:
    shown = f"{step['weft']} exits with {outcome.code}\n{outcome.out}{outcome.err}"
    for key, expected in step.items():
        stream, _, how = key.partition(" ")
        if stream == "weft":
            continue
        found = getattr(outcome, stream)
        if stream == "data":
            path, _, how = how.partition(" ")
            found = _value_at(found, path)
        several = isinstance(expected, list) and how != ""
        for part in expected if several else [expected]:
            assert _HOLDS[how](found, part), f"{key} {part!r}: {shown}"


_HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    "": lambda found, part: found == part,
    "has": lambda found, part: part in found,
    "lacks": lambda found, part: part not in found,
    "starts with": lambda found, part: found.startswith(part),
    "ends with": lambda found, part: found.endswith(part),
}


def _value_at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = value[int(name) if isinstance(value, list) else name]
    return value
