"""The scripts in `examples` run and print what they are meant to show."""

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"

#: Lines that each script must print, in this order; other lines may come between them.
EXPECTED = {
    "board/pep_talk.py": [
        "pep_talk_lead: [sample] tagline, [sample] closer",
        "  turn pep_talk_lead",
        "  provider RecentWinsProvider",
        "  model sample",
    ],
    "board/newsroom.py": [
        "  Tip     user:me              {'place': 'the mill', 'words': 3}",
        "  Lead    researcher  rumour   {'about': 'the harbour, part 1', 'strength': 1}",
        "  Lead    researcher  checked  {'about': 'the harbour, part 3', 'strength': 3}",
        "  10 artifacts",
        f"  researcher{', lawyer' * 3}, writer, writer, archive, archive, editor, printer, archive",
    ],
    "board/orders.py": [
        "Three orders wait for their payments. The board is closed.",
        "  Paid     {'number': 1, 'item': 'loom', 'euros': 90}",
        "  Paid     {'number': 2, 'item': 'yarn', 'euros': 10}",
        "  Shipment {'items': ['loom', 'yarn']}",
        "  cashier.0 missed id-0009: the others did not arrive in time",
        "  Total    {'orders': 2, 'euros': 100}",
    ],
    "board/confidential.py": [
        "How is she? This is what they are shown:",
        "    nurse      Note      {'text': 'Arrived.', 'patient': 'A.'}",
        "    surgeon    Note      {'text': 'Arrived.', 'patient': 'Ada', 'diagnosis': 'arthritis'}",
        "    surgeon    Answer    {'text': 'nurse knows of 1'}",
        "    pharmacist Note      {'text': 'Arrived.', 'patient': 'Ada', 'diagnosis': 'arthritis'}",
        "    Is afraid.        it is private to surgeon",
        "    Left knee.        nurse lacks the label theatre",
        "    Blood test: fine. it is visible only in 3600 seconds",
        "    Moved here.       it is for the tenant another-hospital",
        "An hour later: which dose? This is what they are shown:",
        "    nurse      Note      {'text': 'Blood test: fine.', 'patient': 'A.'}",
        "    pharmacist Guideline {'text': 'at most 40 mg a day'}",
        "The last question has woken nurse, surgeon, pharmacist",
    ],
    "flows/orders.py": [
        "  paid at attempt 1",
        "  order 1 completed",
        "  paid at attempt 3",
        "  order 2 completed",
        "  support told: ValueError, attempt 3",
        "  nothing to refund",
        "  reservation released",
        "  apologised",
        "  order 3 failed",
        "  paid at attempt 1",
        "  refunded 40",
        "  reservation released",
        "  order 4 failed",
        "  support told: StateError, attempt 1",
        "  order 5 failed",
        "  refund tried: 0 euros",
        "  order 6 failed",
        "The bank has 110 euros for 2 orders",
    ],
    "flows/documents.py": [
        "With the adapter of the test kit:",
        "  user: Context:",
        "    A towel that outlives its owner.",
        "    Linen is stronger when it is wet.",
        "    ---",
        "    Wool is weaker when it is wet.",
        "    Always cite sources.",
        "  user: Answer from the context: linen stronger when wet",
        "  reply: 2 passages, 25 words of context; sources: fibres.pdf, fibres.pdf#2",
        "With another one, and the same flow:",
        "  reply: 1 passages, 17 words of context; sources: fibres.pdf",
    ],
    "flows/content.py": [
        "  draft critique improve critique check_length check_links skip_links sum_up ask publish",
        "  completed: front page, publish",
        "  completed: archive, drop",
        "  completed: archive, no decision",
    ],
}


@cache
def run(name: str) -> str:
    # Python 3.12.0 to 3.12.3 warn about numbered SQL parameters by mistake.
    warnings = ("-W", "error", "-W", "ignore:Binding:DeprecationWarning")
    command = [sys.executable, *warnings, str(FOLDER / name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("name", EXPECTED)
def test_example_prints_the_expected_lines(name):
    lines = iter(run(name).splitlines())
    missing = [wanted for wanted in EXPECTED[name] if wanted not in lines]
    assert missing == []


def test_hidden_notes_are_not_shown():
    shown = run("board/confidential.py").partition("Why")[0]
    nurse = [line for line in shown.splitlines() if line.startswith("    nurse")]
    assert nurse == ["    nurse      Note      {'text': 'Arrived.', 'patient': 'A.'}"]


def test_every_example_is_run():
    scripts = {path for path in FOLDER.rglob("*.py") if "workflows" not in path.parts}
    assert {path.relative_to(FOLDER).as_posix() for path in scripts} == EXPECTED.keys()
