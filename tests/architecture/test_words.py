"""Replaced words do not return, and pages use conventional expressions."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: What people read: sources with their messages, guides, packages and what is generated from them.
PLACES = ("src", "docs", "workflows", "schemas", "README.md", "CONTRIBUTING.md")
ENDINGS = {".py", ".md", ".json", ".yaml", ".toml"}

#: A word that is not used any more, and the one to use.
WORDS = {
    r"\b(?:get|give|pass|keep|take|has|have|had|got|gave|given|passed|kept|took)s?"
    r"(?:es)? the word\b": "takes its turn, hands off to",
    r"\b[Mm]end(?:s|ed|ing|able)?\b": "fix",
    r"[Rr]ulebook|write_rulebook": "CompiledWorkflow, compile_workflow",
    r"\b[Bb]ookcase\b|\bShelf\b": "WorkspaceWorkflows, WorkflowCache",
    r"\bweft\.opening\b|\bweft/opening\b": "weft.app",
    r"\bStoryteller\b": "TerminalView",
    r"\bgoing_along\b": "follow_run",
    r"\bthere (?:is|are): ": "available: ",
    r"\bcut at its longest\b": "truncated (token limit)",
    r"\bcould not go on\b": "stopped: ... After fixing this, continue with",
    # Every way a conversation can go is looked at, as far as there are not too many.
    r"\b[Pp]ro(?:ven|ves|ved|of)\b|\bprov(?:e|ing)\b": "explores, checks, tests",
    r"\brefuse_no_(?:scope|text)\b|\brefuse_nobody\b": "require_scope, require_text, require_user",
    r"\b_(?:forsake|taker|take_in|let_go)\b": "_fail_waiters, _drain_task, _drain_inbox, _evict",
}


#: Pages that people read first; findings.md is generated from the catalogue.
PAGES = (
    "docs",
    "examples/board",
    "examples/flows",
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
)

#: An unusual expression, and the conventional one.
PAGE_WORDS = {
    r"\b[Ww]hoever\b": "the person who, or the subject of the sentence",
    r"\b[Nn]obody\b": "no one is needed in a sentence with a subject",
    r"\bcame? of\b": "the result of",
    r"\b(?:is|are|was|were) told\b": "receives, sees",
    r"\banew\b": "again",
    r"\bside by side\b": "in parallel",
}


def texts(places: Sequence[str] = PLACES) -> Iterator[tuple[str, str]]:
    for place in places:
        path = ROOT / place
        files = [path] if path.is_file() else sorted(path.rglob("*"))
        for file in files:
            if file.suffix in ENDINGS and "__pycache__" not in file.parts:
                yield str(file.relative_to(ROOT)), file.read_text(encoding="utf-8")


@pytest.mark.parametrize("pattern", WORDS, ids=WORDS.values())
def test_replaced_words_are_not_used(pattern: str):
    found = [
        f"{name}:{text.count(chr(10), 0, found_word.start()) + 1}: {found_word[0]!r}"
        for name, text in texts()
        for found_word in re.finditer(pattern, text)
    ]
    assert not found, f"say instead: {WORDS[pattern]}"


@pytest.mark.parametrize("pattern", PAGE_WORDS, ids=PAGE_WORDS.values())
def test_pages_use_conventional_expressions(pattern: str):
    found = [
        f"{name}: {match[0]!r}"
        for name, text in texts(PAGES)
        if name != "docs/findings.md"
        for match in re.finditer(pattern, text)
    ]
    assert not found, f"write instead: {PAGE_WORDS[pattern]}"


#: Source folders whose docstrings, comments and messages use conventional expressions.
PLAIN_FOLDERS = tuple(
    sorted(
        path.name
        for path in (ROOT / "src" / "weft").iterdir()
        if (path / "__init__.py").exists() and path.name != "generator"
    )
)
SIDE_BY_SIDE = r"\bside by side\b"


@pytest.mark.parametrize("pattern", [word for word in PAGE_WORDS if word != SIDE_BY_SIDE])
def test_sources_use_conventional_expressions(pattern: str):
    found = [
        f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]!r}"
        for name, text in texts([f"src/weft/{folder}" for folder in PLAIN_FOLDERS])
        for match in re.finditer(pattern, text)
    ]
    assert not found, f"write instead: {PAGE_WORDS[pattern]}"


def test_names_of_tests_read_as_facts():
    riddle = re.compile(r"def (test_\w*(?:nobody|whoever|came_of|_(?:is|are)_told|_told_that)\w*)")
    names = [match[1] for _, text in texts(["tests"]) for match in riddle.finditer(text)]
    assert not names, "name the fact: test_second_answer_is_refused"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("A gets the word, B passes the word, C has had the word", 3),
        ("the word ACCEPT; a word given; get the words", 0),
        ("mend, mended, amend, recommended, mendable", 3),
        ("a proof that is proven; improved, proved, waterproof, provider", 3),
        ("no such thing; there are: a, b", 1),
    ],
)
def test_patterns_match_only_replaced_words(text: str, number: int):
    assert sum(len(re.findall(pattern, text)) for pattern in WORDS) == number


def test_every_place_exists():
    names = [name for name, _ in texts()]
    assert all(any(name.startswith(place) for name in names) for place in PLACES)
