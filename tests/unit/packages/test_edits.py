from difflib import ndiff
from pathlib import Path
from textwrap import dedent

import pytest
import yaml

from weft.errors import PackageError
from weft.findings import AppendItem, Remove, RenameKey, SetValue
from weft.packages.edit import edits as editing
from weft.packages.text.documents import read_text

CORPUS = Path(__file__).parent / "corpus" / "edits.yaml"
CASES = yaml.load(CORPUS.read_text(), Loader=yaml.CSafeLoader)
KINDS = {kind.__name__: kind for kind in (SetValue, AppendItem, RenameKey, Remove)}
JSON = dedent("""\
    {
      // the agents
      "agents": [
        {"name": "A", "tools": []},
        {"name": "B"} // last
      ],
      "max_turns": 20,
      "nothing": null,
      "start": {
        "mode": "chat"
      }
    }
    """)

YAML = dedent("""\
    # yaml-language-server: $schema=x
    agents:   # the agents
      - name: A   # first
        tools: []
      # the other
      - name: B
        prompt: |
          Say "hi".

          Then go.
    flow: {a: 1, b: [x, y]}   # brackets
    max_turns: 20  # enough
    nothing:
    start:
      mode: chat
    """)


def apply(document, edits):
    """Apply edits and return the text alone."""
    return editing.apply(document, edits).text


def changed(name, text, *edits):
    """Apply edits; return the lines that went and the lines that came."""
    after = apply(read_text(name, text), edits)
    lines = list(ndiff(text.splitlines(), after.splitlines()))
    return tuple([line[2:] for line in lines if line.startswith(sign)] for sign in ("- ", "+ "))


def made(edit):
    """Return an edit of the corpus: its kind with its path, and the value or key it puts there."""
    (kind, path), *rest = edit.items()
    return KINDS[kind](tuple(path), *(value for _, value in rest))


@pytest.mark.parametrize(
    ("form", "case"),
    [(form, case) for form, cases in CASES.items() for case in cases],
    ids=lambda entry: entry if isinstance(entry, str) else str(entry["edit"]),
)
def test_an_edit_touches_only_its_lines(form, case):
    text = {"json": JSON, "yaml": YAML}[form]
    expected = (case.get("gone", []), case.get("come", []))
    assert changed(f"a.{form}", text, made(case["edit"])) == expected


def test_new_entries_are_added_at_the_end_of_their_container():
    text = apply(read_text("a.yaml", YAML), [AppendItem(("agents",), "C"), SetValue(("z",), 1)])
    assert "      Then go.\n  - C\nflow:" in text
    assert text.endswith("  mode: chat\nz: 1\n")


def test_edits_follow_one_another():
    edits = [SetValue(("a", "b"), []), AppendItem(("a", "b"), 1), AppendItem(("a", "b"), 2)]
    edits += [RenameKey(("a", "b"), "c"), Remove(("a", "c", 0)), AppendItem(("d", "e"), 3)]
    for name in ("x.json", "x.yaml"):
        assert read_text(name, apply(read_text(name, "{}"), edits)).data == {
            "a": {"c": [2]},
            "d": {"e": [3]},
        }


def test_the_layout_of_json_is_followed():
    def after(text, *edits):
        return apply(read_text("a.json", text), edits)

    assert after('{"a":1}', SetValue(("b",), [2])) == '{"a":1, "b": [2]}'
    assert after("{}", SetValue(("b",), [2])) == '{"b": [2]}'
    assert after("{\n}\n", SetValue(("b",), 2)) == '{\n  "b": 2\n}\n'
    assert after("[\n\t1\n]", AppendItem((), {"a": 1})) == '[\n\t1,\n\t{\n\t\t"a": 1\n\t}\n]'
    assert after('{\r\n "a": 1\r\n}', SetValue(("b",), 2)) == '{\r\n "a": 1,\r\n "b": 2\r\n}'
    assert after("[1, 2,\n 3]", Remove((1,))) == "[1,\n 3]"
    assert after("[\n 1, 2,\n 3]", Remove((0,))) == "[\n 2,\n 3]"
    assert after("[ 1, 2 ]", Remove((1,))) == "[ 1 ]"
    assert after("[1, 2,]", AppendItem((), 3)) == "[1, 2, 3]"
    assert after("[1, 2,]", Remove((1,))) == "[1,]"
    assert after("[1, 2]", Remove((0,)), Remove((0,))) == "[]"
    assert after("[1]", SetValue((), {"a": 1})) == '{"a": 1}'
    assert after("[\n1]\n", SetValue((), "x")) == '"x"\n'


def test_the_layout_of_yaml_is_followed():
    def after(text, *edits):
        return apply(read_text("a.yaml", text), edits)

    assert after("a:\n- 1\nb: 2", AppendItem(("a",), 3)) == "a:\n- 1\n- 3\nb: 2"
    assert after("a: 1", SetValue(("b",), 2)) == "a: 1\nb: 2"
    assert after("a: 1\r\nb: 2\r\n", Remove(("a",))) == "b: 2\r\n"
    assert after("a: 1\r\nb: 2\r\n", SetValue(("c",), [3])) == "a: 1\r\nb: 2\r\nc:\r\n  - 3\r\n"
    assert after("- - 1\n  - 2\n- 3\n", Remove((0, 0))) == "- - 2\n- 3\n"
    assert after("- - 1\n  - 2\n", AppendItem((0,), 3)) == "- - 1\n  - 2\n  - 3\n"
    assert after("- 1\n-\n- 3\n", SetValue((1,), "x")) == "- 1\n- x\n- 3\n"
    assert after("a: [\n  1,\n  2\n]\n", AppendItem(("a",), 3)) == "a: [\n  1,\n  2,\n  3\n]\n"
    assert (
        after("a: {b: 1}\n", SetValue(("a", "\x7f"), "\u2028"))
        == 'a: {b: 1, "\\u007f": "\\u2028"}\n'
    )
    assert after("a: {b: }\n", SetValue(("a", "b"), 1)) == "a: {b: 1}\n"
    assert after("a: [\n  1, # x\n  2\n]\n", Remove(("a", 0))) == "a: [\n  2\n]\n"


@pytest.mark.parametrize(
    ("text", "edit", "expected"),
    [
        (
            "# head\n\na: &x {k: 1} # c\nb: *x\n",
            SetValue(("b", "k"), 2),
            "# head\n\na:\n  k: 1\nb:\n  k: 2\n",
        ),
        ("? a\n: 1\n? b\n: 2\n", Remove(("b",)), "a: 1\n"),
        ("a: |+\n  x\n\nb: 1\n", SetValue(("a",), 1), "a: 1\n\nb: 1\n"),
        ("- a: |+\n    x\n\n", SetValue((0, "b"), 1), '- a: "x\\n\\n"\n  b: 1\n'),
        ("# head\na: 1\n", SetValue((), [1]), "# head\n- 1\n"),
        ("# head\na: 1 # c\n", Remove(("a",)), "# head\n{}\n"),
    ],
)
def test_a_file_without_a_small_edit_is_rewritten(text, edit, expected):
    assert apply(read_text("a.yaml", text), [edit]) == expected


@pytest.mark.parametrize(
    "edit",
    [
        Remove(()),
        Remove(("missing",)),
        Remove(("agents", 9)),
        Remove(("agents", "name")),
        RenameKey((), "x"),
        RenameKey(("missing",), "x"),
        RenameKey(("agents", 0), "x"),
        RenameKey(("max_turns",), "agents"),
        AppendItem(("max_turns",), 1),
        AppendItem(("agents", 9), 1),
        SetValue(("agents", 9), 1),
        SetValue(("agents", "x"), 1),
        SetValue(("agents", -1), 1),
        SetValue(("start", 0), 1),
        SetValue(("max_turns", "x"), 1),
        SetValue(("nothing", 0), 1),
        SetValue(("new", 0), 1),
    ],
)
def test_an_edit_that_does_not_fit_is_refused(edit):
    for name, text in (("a.json", JSON), ("a.yaml", YAML)):
        with pytest.raises(PackageError, match=rf"{name} cannot be changed: "):
            apply(read_text(name, text), [edit])


def test_a_file_that_cannot_be_read_cannot_be_changed():
    document = read_text("a.json", "[1")
    with pytest.raises(PackageError, match=r"a\.json cannot be changed before") as raised:
        apply(document, [SetValue((), 1)])
    assert raised.value.findings == document.findings
