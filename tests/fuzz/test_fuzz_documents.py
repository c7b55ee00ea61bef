"""Any bytes whatever give a document, soon and in bounded memory; nothing else happens."""

import json
import tracemalloc

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from support.effort import TIMES
from weft.findings import is_error
from weft.packages.text import yaml_text
from weft.packages.text.documents import MAX_BYTES, Document, dump, read
from weft.packages.text.index import MAX_DEPTH, MAX_NODES, children_of

# Time is no part of what is tested here, and other work may run beside the tests.
untimed = settings(deadline=None)

GOOD = [
    b'{"a": [1, -2.5e3, true, null, "x\\n\\u00e9\\ud83d\\ude00"], /* c */ "b": {"c": {}}, // d\n}',
    b"# c\na: &x [1, 'it''s', \"q\\x41\"]\nb: *x\nc: |\n  one\n\n  two\n? d\n: !!str 3\n",
    b"{e: f, 'g': [h: i]}",
    b"- a: b\n  c:\n  - d\n-\n  - 0x1F\n---\n",
]
PIECES = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    ": ",
    '"',
    "'",
    "\\",
    "\\u",
    "\\ud83d",
    "a",
    "1",
    "-",
    "- ",
    "\n",
]
PIECES += [
    "\n  ",
    "\t",
    " ",
    "#",
    "//",
    "/*",
    "*/",
    "&a",
    "*a",
    "!",
    "!!int ",
    "!!x",
    "|",
    ">",
    "|+",
    "? ",
]
PIECES += [
    "<<",
    "---",
    "...",
    "%YAML 1.2\n",
    "true",
    "~",
    "1e999",
    ".nan",
    "NaN",
    "\r",
    "\ufeff",
    "\x85",
]
PIECES += ["\x00", "\x7f", "\U0001f600", "0" * 30]


def depth(value):
    level, count = [value], 0
    while level := [child for one in level for child in children_of(one)]:
        count += 1
    return count


def check(document: Document) -> None:
    lines = document.text.split("\n")
    for finding in document.findings:
        line, column = finding.place.line or 1, finding.place.column or 1
        assert 1 <= line <= len(lines)
        assert 1 <= column <= len(lines[line - 1]) + 1
        assert finding.place.length == 1 or (
            1 < finding.place.length <= len(lines[line - 1]) + 1 - column
        )
        assert f"{finding.message} {finding.cause} {finding.hint}".encode()
        assert len(finding.message) < 200
        assert "\n" not in finding.message
    if any(is_error(finding) for finding in document.findings):
        assert document.data is None
    else:
        assert depth(document.data) <= MAX_DEPTH
        again = read(document.file, dump(document.data, document.format).encode())
        assert json.dumps(again.data) == json.dumps(document.data)
    assert document.place(("a", 0, "b"), offset=3).line


def check_both(raw: bytes) -> None:
    """Read as JSON and as YAML; PyYAML's parser in C is not built everywhere, so with both."""
    check(read("a.json", raw))
    for loader in (yaml.CSafeLoader, yaml.SafeLoader):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(yaml_text, "LOADER", loader)
            check(read("a.yaml", raw))


@settings(untimed, max_examples=60 * TIMES)
@given(st.binary() | st.text().map(str.encode))
@example(b"\xef\xbb\xbf")
@example(b"\xff\xfe{}")
@example(b"a: \xed\xa0\x80")
@example(b"%YAML " + b"9" * 5000 + b".1\n---\na")
@example(b"!%ed%a0%80 a")
@example(b'"\\UFFFFFFFF"')
@example(b"1" * 10_000)
@example(b"*" + b"a" * 10_000)
@example(b"x" * 10_000 + b": !" + b"y" * 10_000)
def test_any_bytes(raw):
    check_both(raw)


@settings(untimed, max_examples=100 * TIMES)
@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_any_sequence_of_signs(text):
    check_both(text.encode())


@settings(untimed, max_examples=60 * TIMES)
@given(st.sampled_from(GOOD), st.data())
def test_good_files_damaged(raw, draw):
    for _ in range(draw.draw(st.integers(1, 3))):
        start = draw.draw(st.integers(0, len(raw)))
        end = draw.draw(st.integers(start, min(start + 5, len(raw))))
        piece = draw.draw(st.binary(max_size=3) | st.sampled_from(PIECES).map(str.encode))
        raw = raw[:start] + piece + raw[end:]
    check_both(raw)


def filled(unit, before="", after=""):
    times = (MAX_BYTES - len(before) - len(after)) // len(unit)
    return (before + unit * times + after).encode()


HOSTILE = [
    ("a.json", filled("[")),
    ("a.json", filled("\\n", '"')),
    ("a.yaml", filled("- ")),
    ("a.yaml", filled("- *a\n", "- &a [1, 2, 3, 4, 5, 6, 7]\n")),
    ("a.yaml", filled("? ")),
    ("a.json", filled('{"a":')),
    ("a.json", filled("\\'", "'")),
    ("a.json", filled('"a":1,', "{", '"a":1}')),
    ("a.json", filled("/*", "[")),
    ("a.json", filled("\n", "[")),
    ("a.json", filled("a", "[")),
    ("a.yaml", filled("[")),
    ("a.yaml", filled("{a: ")),
    ("a.yaml", filled("!a ")),
    ("a.yaml", filled("\n", '"')),
    ("a.yaml", filled("&a ")),
]
#: Each takes seconds, because as many values are read as a file may have.
HOSTILE_AND_LARGE = [
    ("a.json", filled("{},", "[", "1]")),
    ("a.json", filled("1,", "[", "1]")),
    ("a.json", filled("[1,2],", "[", "[" * 200)),
    ("a.yaml", filled("- a\n")),
]


@pytest.mark.parametrize(("name", "raw"), [*HOSTILE, *HOSTILE_AND_LARGE] if TIMES > 1 else HOSTILE)
def test_hostile_files_stay_within_bounds(name, raw):
    tracemalloc.start()
    document = read(name, raw)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert not document.ok
    assert peak < 2 * MAX_BYTES + 400 * MAX_NODES
    check(document)
