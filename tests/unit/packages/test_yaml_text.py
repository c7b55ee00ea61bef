import pytest
import yaml

from support.cases import read_cases
from weft.packages.text import yaml_text
from weft.packages.text.index import MAX_DEPTH, MAX_ERRORS, line_column
from weft.packages.text.yaml_text import parse

CASES = read_cases(__file__)


@pytest.fixture(params=["c", "python"])
def loader(request, monkeypatch):
    """Run a test with both of PyYAML's parsers: the one in C is not built everywhere."""
    monkeypatch.setattr(
        yaml_text, "LOADER", {"c": yaml.CSafeLoader, "python": yaml.SafeLoader}[request.param]
    )


pytestmark = pytest.mark.usefixtures("loader")


def faults(text):
    return [
        (fault.code, *line_column(text, fault.start), fault.message) for fault in parse(text).errors
    ]


def only(text):
    (fault,) = faults(text)
    return fault


def value(text):
    parsed = parse(text)
    assert parsed.errors == ()
    return parsed.data


@pytest.mark.parametrize(("text", "expected"), CASES["test_scalars_follow_yaml_1_2"])
def test_scalars_follow_yaml_1_2(text, expected):
    found = value(text)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(("text", "expected"), CASES["test_core_tags_are_understood"])
def test_core_tags_are_understood(text, expected):
    found = value(text)
    assert found == expected
    assert type(found) is type(expected)


def test_keys_that_yaml_1_1_would_change_stay_text():
    assert value("on: 1\nno: 2\n'1': 3\n'<<': 4\n") == {"on": 1, "no": 2, "1": 3, "<<": 4}


def test_a_whole_file():
    text = "# head\nagents:\n- name: A\n  tools: [x, {y: z}]\n-\nempty:\nsay: |\n  one\n\n  two\n"
    assert value(text) == {
        "agents": [{"name": "A", "tools": ["x", {"y": "z"}]}, None],
        "empty": None,
        "say": "one\n\ntwo\n",
    }


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("", 1, 1, "the file is empty"),
        ("# nothing\n", 1, 1, "the file is empty"),
        ("a: b: c", 1, 5, "unexpected ':'"),
        ("a: 1\n b: 2", 2, 3, "unexpected ':'"),
        ("a:\n\t- b", 2, 1, "this line is indented with a tab"),
        ("a: @x", 1, 4, "this character cannot begin a value"),
        ("a: 'x", 1, 6, "a quoted text is not closed"),
        ("{a: b", 1, 6, "a comma or a closing bracket is missing"),
        ("[1,", 1, 4, "a value is missing"),
        ("a: 1\nb\nc: 2", 3, 1, "the ':' after a key is missing"),
        (" a: 1\nb: 2", 2, 1, "this does not continue the lines above it; check the indentation"),
        ("- a\nb: 1", 2, 1, "this does not continue the lines above it; check the indentation"),
        ("a: 'b' c", 1, 8, "this does not continue the lines above it; check the indentation"),
        ("a: - b", 1, 4, "this does not continue the lines above it; check the indentation"),
        ("a: *b", 1, 4, "the alias 'b' has no anchor before it"),
        ("a: \x7f", 1, 4, "the character '\\x7f' is not allowed in YAML"),
        ("a: \ufeff", 1, 4, "the character '\\ufeff' is not allowed in YAML"),
        ("a: \ud800", 1, 4, "the character '\\ud800' is not allowed in YAML"),
    ],
)
def test_syntax_faults_in_plain_words(text, line, column, message):
    assert only(text) == ("SCHEMA002", line, column, message)
    assert parse(text).data is None


def test_unknown_library_message_keeps_its_place():
    code, line, column, message = only("a: 1\nb: !x!y z")
    assert (code, line, column) == ("SCHEMA002", 2, 4)
    assert message.startswith("this is not YAML: 'found undefined tag handle")


def test_a_fault_names_where_its_construct_began():
    (fault,) = parse("a: [1,\n 2\nb: 3").errors
    assert fault.cause == ("it began on line 1, column 4",)
    assert fault.hint == ("put a comma, or close the bracket",)


@pytest.mark.parametrize("text", ['"\\UFFFFFFFF"', '"\\U00110000"', '"\\ud800"'])
def test_escapes_without_a_character(text):
    assert only(text)[0] in {"SCHEMA002", "SCHEMA005"}


@pytest.mark.parametrize(
    ("text", "line", "column", "message"), CASES["test_features_json_cannot_express"]
)
def test_features_json_cannot_express(text, line, column, message):
    assert only(text) == ("SCHEMA005", line, column, message)
    assert parse(text).data is None


def test_a_key_to_quote_is_shown_quoted():
    (fault,) = parse("1: x").errors
    assert fault.hint == ('write it as "1"',)


@pytest.mark.parametrize(
    "number", [".inf", "-.INF", ".nan", "1e999", str(2**63), "9" * 5000, "0x" + "f" * 17]
)
def test_numbers_out_of_range_are_refused(number):
    code, line, column, _ = only(f"a: {number}")
    assert (code, line, column) == ("SCHEMA004", 1, 4)


def test_duplicate_keys_are_refused_with_both_places():
    text = "a: 1\nb:\n  c: 1\n  c: 2\na: 3\n"
    assert [fault[:3] for fault in faults(text)] == [("SCHEMA003", 4, 3), ("SCHEMA003", 5, 1)]
    assert parse(text).errors[1].cause == ("the first one is on line 1, column 1",)


def test_aliases_are_written_out_as_copies():
    data = value("a: &x {k: [1]}\nb: *x\nc: &s text\nd: *s\n&e e: *s\n")
    assert data == {"a": {"k": [1]}, "b": {"k": [1]}, "c": "text", "d": "text", "e": "text"}
    data["a"]["k"].append(2)
    assert data["b"] == {"k": [1]}


def bomb(levels):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(lines)


def test_an_alias_bomb_is_a_finding():
    assert parse(bomb(4)).errors == ()
    assert only(bomb(9))[0] == "SCHEMA004"
    assert only(bomb(9))[1] == 5


def test_depth_counts_after_aliases_are_written_out():
    chain = ["a0: &a0 []"]
    chain += [f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, MAX_DEPTH - 1)]
    assert parse("\n".join(chain)).errors == ()
    chain += [f"a{MAX_DEPTH - 1}: [*a{MAX_DEPTH - 2}]"]
    assert only("\n".join(chain))[:2] == ("SCHEMA004", MAX_DEPTH)


def test_depth_is_limited():
    assert parse("[" * MAX_DEPTH + "]" * MAX_DEPTH).errors == ()
    assert only("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1))[:3] == (
        "SCHEMA004",
        1,
        MAX_DEPTH + 1,
    )
    assert only("[" * 10_000)[0] == "SCHEMA004"
    assert only("- " * 10_000)[0] == "SCHEMA004"
    assert only("".join(" " * n + "a:\n" for n in range(300)))[0] == "SCHEMA004"


def test_the_number_of_values_is_limited(monkeypatch):
    monkeypatch.setattr(yaml_text, "MAX_NODES", 1000)
    text = "[" + "1," * 999 + "]"
    assert parse(text).errors == ()
    assert only(text[:-1] + "1]")[0] == "SCHEMA004"


def test_the_list_of_faults_is_bounded():
    found = parse("\n".join(f"{n}: x" for n in range(100))).errors
    assert len(found) == MAX_ERRORS + 1
    assert found[-1].message == "the file has more errors than are listed"


def test_the_index_gives_the_span_of_keys_and_values():
    text = "a:\n  - 10\n  - b: |\n      x\n\n      y\n\n# end\nc: [1, {d: e}] # why\nf: *z\n"
    text = text.replace("10", "&z 10")
    root = parse(text).root

    def piece(node):
        return text[node.start : node.end]

    entry = root.children["a"]
    assert text[entry.key_start : entry.key_end] == "a"
    assert piece(entry) == "- &z 10\n  - b: |\n      x\n\n      y"
    assert piece(entry.children[0]) == "&z 10"
    assert piece(entry.children[1].children["b"]) == "|\n      x\n\n      y"
    assert piece(root.children["c"]) == "[1, {d: e}]"
    assert piece(root.children["c"].children[1].children["d"]) == "e"
    assert piece(root.children["f"]) == "*z"
    assert piece(root) == text.removesuffix("\n")
