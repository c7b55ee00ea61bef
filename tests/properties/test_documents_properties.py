"""Reading, placing, writing and changing files, over documents of every shape."""

import json

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from support.effort import TIMES
from weft.findings import AppendItem, Remove, RenameKey, SetValue
from weft.packages.edit.edits import apply
from weft.packages.text import json_text
from weft.packages.text.documents import dump, read_text

TRICKY = [
    "",
    "yes",
    "NO",
    "null",
    "~",
    "1",
    "0x1",
    "1e3",
    " x",
    "x ",
    "a: b",
    "a #b",
    "a:",
    "-",
    "- a",
]
TRICKY += [
    "\n",
    "a\n",
    "a\nb",
    "a\n\n",
    "a\n  b\n ",
    "a\n\tb\n",
    " a\nb",
    "\ta\nb",
    "a\r\nb",
    "---",
    "...",
]
TRICKY += [
    "#",
    "&a",
    "*a",
    "!a",
    "|",
    ">",
    "%",
    "@",
    "`",
    "'",
    '"',
    "\\",
    "{",
    "]",
    ",",
    "?",
    "<<",
    "=",
]
TRICKY += [
    "\x85",
    "\u2028",
    "\ufeff",
    "\x7f",
    "\x00",
    "\ufffe",
    "\u00a0a",
    "\U0001f600",
    "x" * 2000,
    "é\nè",
]

texts = st.sampled_from(TRICKY) | st.text(max_size=12) | st.text("ab :#-\n \t\"'{},", max_size=12)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=15,
)
layouts = st.sampled_from([None, 1, 2, 4, "\t"])


def exact(data):
    """As text, so that 1, 1.0 and True differ and order counts."""
    return json.dumps(data)


def paths(data, path=()):
    yield path
    entries = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    for key, value in entries:
        yield from paths(value, (*path, key))


def at(data, path):
    for part in path:
        data = data[part]
    return data


@given(documents, layouts)
def test_both_json_readers_agree_with_the_standard_library(data, indent):
    for ascii_only in (True, False):
        text = json.dumps(data, indent=indent, ensure_ascii=ascii_only)
        assert exact(json_text.load(text).data) == exact(data)
        assert exact(json_text.parse(text).data) == exact(data)
        assert json_text.load(text).errors == json_text.parse(text).errors == ()


@given(documents)
@example({"x" * 2000: ["y" * 3000, {"z" * 2000: "a\nb"}]})
@example([[[{"a": [[]]}], "- a"], {}])
def test_written_value_can_be_read_back(data):
    for name in ("json", "yaml"):
        text = dump(data, name)
        document = read_text(f"a.{name}", text)
        assert document.findings == ()
        assert exact(document.data) == exact(data)
        assert text.endswith("\n")
        assert text.encode()


@given(documents)
def test_other_yaml_readers_understand_what_is_written(data):
    assert yaml.load(dump(data, "yaml"), Loader=yaml.SafeLoader) == data


@given(documents, layouts)
def test_the_place_of_every_value_is_where_it_is_written(data, indent):
    text = json.dumps(data, indent=indent, ensure_ascii=False)
    lines = text.split("\n")
    for name in ("a.json", "a.yaml"):
        document = read_text(name, text)
        if name == "a.yaml" and not document.ok:
            continue  # tabs as indentation, control characters and very long keys are not YAML
        for path in paths(data):
            place = document.place(path)
            rest = "\n".join([lines[place.line - 1][place.column - 1 :], *lines[place.line :]])
            found, _ = json.JSONDecoder().raw_decode(rest)
            assert exact(found) == exact(at(data, path))
            if path and isinstance(path[-1], str):
                key = document.place(path, key=True)
                assert lines[key.line - 1][key.column - 1 :].startswith(
                    json.dumps(path[-1], ensure_ascii=False)
                )


@given(st.text(min_size=1), st.data())
def test_an_offset_into_text_is_exact(text, draw):
    offset = draw.draw(st.integers(1, len(text)))
    for ascii_only in (True, False):
        raw = json.dumps([text], ensure_ascii=ascii_only)
        column = read_text("a.json", raw).place((0,), offset=offset).column
        assert json.loads(raw[1 : column - 1] + '"') == text[:offset]


@given(documents)
def test_every_container_is_found_at_its_path(data):
    document = read_text("a.json", json.dumps(data))
    held = document.data
    assert {
        path: id(at(held, path)) for path in paths(held) if isinstance(at(held, path), dict | list)
    } == {path: number for number, path in document.origin.items()}


@st.composite
def changes(draw, data):
    """One edit that fits the data, and the data after it."""
    data = json.loads(json.dumps(data))
    path = draw(st.sampled_from(list(paths(data))))
    value = draw(documents)
    here = at(data, path)
    parent = at(data, path[:-1]) if path else None
    kinds = ["set"] + ["remove"] * bool(path) + ["add"] * isinstance(here, dict | list)
    kinds += ["rename"] * isinstance(parent, dict)
    match draw(st.sampled_from(kinds)):
        case "set" if not path:
            return SetValue((), value), value
        case "set":
            parent[path[-1]] = value
            return SetValue(path, value), data
        case "remove":
            del parent[path[-1]]
            return Remove(path), data
        case "rename":
            key = draw(texts.filter(lambda key: key not in parent))
            renamed = {key if old == path[-1] else old: item for old, item in parent.items()}
            parent.clear()
            parent.update(renamed)
            return RenameKey(path, key), data
        case _ if isinstance(here, list):
            here.append(value)
            return draw(
                st.sampled_from([AppendItem(path, value), SetValue((*path, len(here) - 1), value)])
            ), data
        case _:
            key, inner = draw(texts.filter(lambda key: key not in here)), draw(texts)
            here[key] = {inner: value}
            return SetValue((*path, key, inner), value), data


@st.composite
def layouts_of(draw, data, name):
    """The data as text, laid out in one of many ways."""
    if draw(st.booleans()):
        text = dump(data, name)
    elif draw(st.booleans()) and name == "yaml":
        text = yaml.dump(
            [data, data] if draw(st.booleans()) else data,
            Dumper=yaml.SafeDumper,
            default_flow_style=draw(st.sampled_from([True, False, None])),
            default_style=draw(st.sampled_from([None, "'", '"', "|", ">"])),
            canonical=draw(st.sampled_from([None, True])),
            indent=draw(st.sampled_from([2, 4])),
            width=draw(st.sampled_from([10, 80])),
            allow_unicode=draw(st.booleans()),
            explicit_start=draw(st.booleans()),
        )
    else:
        text = json.dumps(data, indent=draw(layouts), ensure_ascii=True)
    if draw(st.booleans()):
        note = " # a, b: - c" if name == "yaml" else " // a, b: - c"
        text = "\n".join(line + note * draw(st.booleans()) for line in text.split("\n"))
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))


@settings(max_examples=60 * TIMES)
@given(st.data())
def test_edits_of_text_are_edits_of_data(draw):
    name = draw.draw(st.sampled_from(["json", "yaml"]))
    before = read_text(f"a.{name}", draw.draw(layouts_of(draw.draw(documents), name)))
    if not before.ok:
        return  # tabs as indentation and very long keys are not YAML
    edits, wanted = [], before.data
    for _ in range(draw.draw(st.integers(1, 3))):
        edit, wanted = draw.draw(changes(wanted))
        edits.append(edit)
    after = read_text(f"a.{name}", apply(before, edits).text)
    assert {finding.code for finding in after.findings} <= {"SCHEMA006"}
    assert exact(after.data) == exact(wanted)
