import json
from textwrap import dedent

import pytest

from weft.packages.text.documents import compact, dump, read_text


def test_json_is_written_in_one_way():
    assert (
        dump({"é": [1, {}], "a": []}, "json") == '{\n  "é": [\n    1,\n    {}\n  ],\n  "a": []\n}\n'
    )


def test_yaml_is_written_to_be_read():
    data = {
        "name": "Say hello, then: no",
        "plain": "Say hello, it's (me).",
        "words": ["yes", "Null", "12", "-", "", " x", "a: b", "a #b", "über"],
        "numbers": [1, 1.5, 1e100, -0.0, True, None],
        "prompt": "One.\n\n  Two.\n",
        "note": "a\nb",
        "odd": "a\n\n",
        "nested": [[1, [2]], {"a": {"b": []}, "c": {}}],
    }
    assert dump(data, "yaml") == dedent("""\
        name: "Say hello, then: no"
        plain: Say hello, it's (me).
        words:
          - "yes"
          - "Null"
          - "12"
          - "-"
          - ""
          - " x"
          - "a: b"
          - "a #b"
          - über
        numbers:
          - 1
          - 1.5
          - 1.0e+100
          - -0.0
          - true
          - null
        prompt: |
          One.

            Two.
        note: |-
          a
          b
        odd: "a\\n\\n"
        nested:
          - - 1
            - - 2
          - a:
              b: []
            c: {}
        """)


@pytest.mark.parametrize("data", [None, 1, "x", "a\nb\n", [], {}])
def test_a_file_may_hold_one_value(data):
    for name in ("json", "yaml"):
        assert json.dumps(read_text(f"a.{name}", dump(data, name)).data) == json.dumps(data)


def test_numbers_json_does_not_know_are_refused():
    for name in ("json", "yaml"):
        with pytest.raises(ValueError, match="not JSON compliant"):
            dump([float("inf")], name)


def test_a_value_in_one_line_is_readable_in_both_formats():
    value = {"a": ["é", 1, None], "b": "x\u2028y"}
    assert compact(value, "json") == '{"a": ["é", 1, null], "b": "x\u2028y"}'
    assert compact(value, "yaml") == '{"a": ["é", 1, null], "b": "x\\u2028y"}'
    for name in ("json", "yaml"):
        assert read_text(f"a.{name}", compact(value, name)).data == value
