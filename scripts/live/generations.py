"""Generations with a weak model: each ends with a report that says what is not by the model."""
# ruff: noqa: INP001, S603 - part of a program, not of a package; it starts only Weft itself

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
WEFT: Final = Path(sys.executable).with_name("weft")

#: One that names steps, one whose pattern wins by its words, and one that says next to nothing.
BRIEFS: Final = ("06-onboarding", "17-it-escalation", "24-vague")

#: A model as small as this finds no end where a text or a list has none, and says the same again
#: and again: what is not done by then will not be. Penalties are the server's own words.
SETTINGS: Final = {"max_tokens": 240, "extra_body": {"repeat_penalty": 1.15, "repeat_last_n": 256}}

#: Seconds for one generation: three to five minutes are usual, more where others work, too.
MOST_SECONDS: Final = 1200.0

#: How much of a reason is shown.
_LONGEST: Final = 200


def generations(model: str, workspace: Path, say: Callable[[str], None]) -> list[str]:
    """Let a model take part in three generations, report each, and return what is missing.

    The Generator is the shipped one with other settings, which every workspace may have.
    """
    package = workspace / "workflows" / "Generator"
    shutil.copytree(ROOT / "workflows" / "Generator", package)
    settings = package / "orchestrator.json"
    declared = json.loads(settings.read_text("utf-8"))
    settings.write_text(json.dumps({**declared, "model_settings": SETTINGS}), "utf-8")
    missing: list[str] = []
    for brief in BRIEFS:
        say(f"\nGenerator, brief {brief}\n")
        missing += [f"{brief}: {problem}" for problem in _generation(brief, model, workspace, say)]
    return missing


def _generation(
    brief: str, model: str, workspace: Path, say: Callable[[str], None]
) -> Iterator[str]:
    """Generate from one brief without a person, and check the report."""
    file = ROOT / "examples" / "briefs" / f"{brief}.txt"
    command = ["generate", "--from", file, "--approve", "--skeleton", "--model", model, "--json"]
    begun = time.monotonic()
    try:
        done = _weft(workspace, *command)
    except subprocess.TimeoutExpired:
        yield f"an end within {MOST_SECONDS:.0f} s"
        return
    seconds = time.monotonic() - begun
    if done.returncode not in (0, 1):
        say(f"{done.stdout}{done.stderr}\n")
        yield "a generation that ends with a report"
        return
    made = json.loads(done.stdout)
    run = made["run"]
    say(
        f"  {run['calls']} model calls, {run['input_tokens']} tokens in, "
        f"{run['output_tokens']} out, {seconds:.0f} s, {run['outcome']}\n"
    )
    for line in _report(made):
        say(f"  {line}\n")
    yield from _faults(made, workspace)


def _faults(made: dict[str, Any], workspace: Path) -> Iterator[str]:
    """Yield what must not be so: findings, or parts and skeletons without a reason."""
    if bool(made["packages"]) != made["promotable"]:
        yield "a package if and only if it is promotable"
    for package in made["packages"]:
        checked = _weft(workspace, "check", package["folder"])
        if checked.returncode != 0 or "No findings" not in checked.stdout:
            yield f"{package['name']} checks clean"
    replaced = [part for part in made["parts"] if part["answerer"] != "model"]
    if any(not part["instead_of"] for part in replaced):
        yield "a reason for each part that is not by the model"
    if replaced and not made["skeleton"]:
        yield "a label that it is a skeleton"


def _weft(workspace: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [WEFT, *command],
        cwd=workspace,
        capture_output=True,
        encoding="utf-8",
        timeout=MOST_SECONDS,
        check=False,
    )


def _report(made: dict[str, Any]) -> Iterator[str]:
    """Yield who made each part, what is open, and what was left out."""
    for part in made["parts"]:
        why = part["instead_of"].partition(", which ")[2]
        by = f"the designer; the model {_short(why)}" if why else "the model"
        yield f"{part['agent']}: by {by}"
    yield from (f"skeleton: {_short(reason)}" for reason in made["skeleton"])
    yield from (f"left out: {piece['file']}: {piece['reason']}" for piece in made["left_out"])
    yield from (f"error: {_short(error)}" for error in made["errors"] or ())
    yield f"repaired {made['repairs']} times; promoted: {len(made['packages'])}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
