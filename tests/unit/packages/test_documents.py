import codecs

import pytest

from weft.findings import Place
from weft.packages.text.documents import (
    MAX_BYTES,
    decode,
    format_of,
    read,
    read_text,
    too_large,
)

JSON = '{\n  "agents": [\n    {"name": "A", "say": "x\\n\\u00e9\\ud83d\\ude00!"}\n  ]\n}\n'
YAML = "agents:\n  - name: A\n    say: hello {you}\n"


def at(document, path, **options):
    place = document.place(path, **options)
    assert place.file == document.file
    return place.line, place.column


def test_bytes_become_data():
    assert read("a.json", JSON.encode()).data == {
        "agents": [{"name": "A", "say": "x\n\u00e9\U0001f600!"}]
    }
    assert read("a.yml", YAML.encode()).data == {"agents": [{"name": "A", "say": "hello {you}"}]}


def test_the_name_decides_the_format():
    assert [format_of(name) for name in ("a.json", "A.JSON", "a.yaml", "a.yml")] == [
        "json",
        "json",
        "yaml",
        "yaml",
    ]


def test_size_is_judged_before_reading():
    assert too_large("a.json", MAX_BYTES) is None
    finding = too_large("a.json", 100_000_000)
    assert finding is not None
    assert (finding.code, finding.severity, finding.place) == (
        "SCHEMA001",
        "error",
        Place("a.json", 1, 1),
    )
    assert "100,000,000 bytes" in finding.message


def test_too_many_bytes_are_refused_when_read_all_the_same():
    document = read("a.json", b" " * (MAX_BYTES + 1))
    assert not document.ok
    assert document.findings == (too_large("a.json", MAX_BYTES + 1),)
    assert document.data is None


def test_a_byte_order_mark_is_skipped():
    assert decode(codecs.BOM_UTF8 + b"{}") == ("{}", None)
    assert at(read("a.json", codecs.BOM_UTF8 + b'{"a": 1}'), ("a",)) == (1, 7)


@pytest.mark.parametrize(
    ("raw", "line", "column", "message"),
    [
        ('{"a": 1}'.encode("utf-16"), 1, 1, "the file is saved as UTF-16, not as UTF-8"),
        (codecs.BOM_UTF16_BE, 1, 1, "the file is saved as UTF-16, not as UTF-8"),
        (b'{\n "\xc3\xa9": "\xff"}', 2, 8, "byte 0xff at offset 10 is not UTF-8"),
        (codecs.BOM_UTF8 + b"ab\xe9", 1, 3, "byte 0xe9 at offset 5 is not UTF-8"),
        (b'{"a":\n "\x00"}', 2, 3, "the control character '\\x00' is not allowed in a file"),
        (b"\x1b[0m", 1, 1, "the control character '\\x1b' is not allowed in a file"),
    ],
)
def test_bytes_that_are_not_text(raw, line, column, message):
    for name in ("a.json", "a.yaml"):
        document = read(name, raw)
        (finding,) = document.findings
        assert (finding.code, finding.place) == ("SCHEMA001", Place(name, line, column))
        assert finding.message == message
        assert document.data is None
        assert not document.ok


def test_a_warning_leaves_the_document_good():
    document = read_text("a.json", "[1,]")
    assert document.ok
    assert document.data == [1]
    assert [finding.severity for finding in document.findings] == ["warning"]


def test_faults_become_findings_with_place_and_length():
    (finding,) = read_text("a.json", '{"a": 1,\n "a": 2}').findings
    assert (finding.code, finding.severity) == ("SCHEMA003", "error")
    assert finding.place == Place("a.json", 2, 2, length=3)
    assert str(finding.place) == "a.json:2:2"
    assert finding.cause == ("the first one is on line 1, column 2",)
    assert finding.hint


@pytest.mark.parametrize("name", ["a.json", "a.yaml"])
def test_places_in_json_text_are_the_same_in_both_formats(name):
    document = read_text(name, '{\n  "a": [1, {"b": "xyz"}]\n}')
    assert at(document, ()) == (1, 1)
    assert at(document, ("a",)) == (2, 8)
    assert at(document, ("a",), key=True) == (2, 3)
    assert at(document, ("a", 1, "b")) == (2, 18)
    assert at(document, ("a", 1, "b"), key=True) == (2, 13)
    assert at(document, ("a", 1, "b"), offset=2) == (2, 21)
    assert at(document, ("a", 0), key=True) == (2, 9)
    assert at(document, ("a", 0), offset=5) == (2, 10)
    assert at(document, ("a",), offset=5) == (2, 8)


def test_a_missing_path_gives_its_deepest_known_part():
    document = read_text("a.json", JSON)
    assert at(document, ("agents", 0, "tools", 3), key=True) == (3, 5)
    assert at(document, ("agents", 7), offset=3) == (2, 13)
    assert at(document, ("agents", 0, "name", "x")) == (3, 14)
    assert at(document, ("nothing",)) == (1, 1)


def test_offsets_step_over_escapes():
    document = read_text("a.json", JSON)
    start = JSON.splitlines()[2].index('"x\\n') + 1
    path = ("agents", 0, "say")
    columns = [at(document, path, offset=offset)[1] - start for offset in range(7)]
    assert columns == [1, 2, 4, 10, 22, 23, 23]


def test_offsets_in_yaml_scalars():
    document = read_text(
        "a.yaml",
        "plain: abc # no\ntag: !!str &x abc\nsingle: 'it''s'\ndouble: \"\\x41\\u00e9\\tb\"\n"
        'split: "a\n  b"\nalias: *x\nempty:\n',
    )
    assert at(document, ("plain",), offset=2) == (1, 10)
    assert at(document, ("plain",), offset=9) == (1, 11)
    assert at(document, ("tag",)) == (2, 6)
    assert at(document, ("tag",), offset=1) == (2, 16)
    assert at(document, ("single",), offset=3) == (3, 14)
    assert at(document, ("double",), offset=3) == (4, 22)
    assert at(document, ("split",), offset=2) == (5, 8)
    assert at(document, ("alias",), offset=2) == (7, 8)
    assert at(document, ("empty",), offset=2) == (8, 7)


def test_offsets_in_literal_blocks():
    text = "a:\n  say: |  # why\n\n    one\n      two\n\n    three\n  b: 1\n"
    for newline in ("\n", "\r\n"):
        document = read_text("a.yaml", text.replace("\n", newline))
        say = document.data["a"]["say"]
        for word, line, column in (("one", 4, 5), ("two", 5, 7), ("three", 7, 5)):
            assert at(document, ("a", "say"), offset=say.index(word)) == (line, column)
        assert at(document, ("a", "say"), offset=say.index("\n\nthree") + 1) == (6, 1)
        assert at(document, ("a", "say"), offset=99) == (7, 10)


def test_offsets_in_folded_blocks_give_the_start():
    document = read_text("a.yaml", "a: >\n  one\n  two\n")
    assert at(document, ("a",), offset=5) == (1, 4)


def test_a_place_is_as_long_as_the_first_line_of_its_value():
    text = '{"key": "value",\r\n "list": [ \r\n  1\r\n ]}'
    for document in (read_text("a.json", text), read_text("a.yaml", text)):
        assert document.place(("key",)).length == 7
        assert document.place(("key",), key=True).length == 5
        assert document.place(("list",)).length == 1
        assert document.place(("list", 0), key=True).length == 1
        assert document.place(()).length == len('{"key": "value",')
    assert read_text("a.yaml", "a:").place(("a",)).length == 1


def test_a_place_inside_a_value_is_one_character_long():
    document = read_text("a.json", '{"key": "value"}')
    assert document.place(("key",), offset=2) == Place("a.json", 1, 12, length=1)
    assert document.place(("key",), offset=0) == Place("a.json", 1, 10, length=1)


def test_where_a_path_ends_early_the_mark_belongs_to_what_is_there():
    document = read_text("a.json", '{"key": "value"}')
    for options in ({}, {"key": True}, {"offset": 3}):
        assert document.place(("key", "x"), **options) == Place("a.json", 1, 9, length=7)


def test_the_mark_of_a_fault_stays_on_its_line():
    (finding,) = read_text("a.json", '{"a": 1\n     "b": 2}').findings
    assert finding.place == Place("a.json", 1, 8, length=1)


def test_places_of_an_unreadable_file_do_not_fail():
    assert at(read("a.json", b"\xff"), ("a",)) == (1, 1)
    assert at(read_text("a.yaml", "["), ("a",)) == (1, 1)


def test_every_container_has_its_path():
    document = read_text("a.json", '{"a": [{"b": {}}, 1, []], "c": "x"}')
    data = document.data
    assert document.origin == {
        id(data): (),
        id(data["a"]): ("a",),
        id(data["a"][0]): ("a", 0),
        id(data["a"][0]["b"]): ("a", 0, "b"),
        id(data["a"][2]): ("a", 2),
    }
    assert read_text("a.json", '"x"').origin == {}


def test_origin_outlives_changes_to_the_data():
    document = read_text("a.json", JSON)
    assert document.origin[id(document.data)] == ()
    agent = document.data["agents"].pop()
    document.data["moved"] = {"here": agent}
    assert document.origin[id(agent)] == ("agents", 0)
    assert id(document.data["moved"]) not in document.origin


def test_origin_keeps_what_it_names_alive():
    document = read_text("a.json", JSON)
    gone = set(document.origin)
    document.data.clear()
    fresh = [{} for _ in range(1000)]
    assert gone.isdisjoint(id(one) for one in fresh)
