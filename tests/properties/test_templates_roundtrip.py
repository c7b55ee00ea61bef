import re
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from weft.spec.templates import Reference, parse_template, references

pieces = st.sampled_from(["{", "}", "{{", "}}", "a", "b_1", "$", " ", "{a}", "{{a}}", "9", '"'])
texts = st.lists(pieces, max_size=12).map("".join) | st.text(max_size=30)


def written(part):
    if isinstance(part, Reference):
        return f"{{{part.name}}}"
    return re.sub(r"\{[A-Za-z_][A-Za-z0-9_]*\}", r"{\g<0>}", part)


@settings(deadline=None)
@given(texts)
def test_the_parts_written_again_are_the_text_they_were_read_from(text):
    assert "".join(written(part) for part in parse_template(text)) == text


@settings(deadline=None)
@given(texts)
def test_literal_parts_are_never_empty_and_never_side_by_side(text):
    parts = parse_template(text)
    kinds = [isinstance(part, str) for part in parts]
    assert all(parts)
    assert not any(first and second for first, second in pairwise(kinds))


@settings(deadline=None)
@given(texts)
def test_a_reference_points_at_its_name(text):
    for found in references(text):
        assert text[found.offset - 1 : found.offset + len(found.name) + 1] == f"{{{found.name}}}"


@settings(deadline=None)
@given(st.text(alphabet="ab{}$ ", max_size=20))
def test_any_text_without_a_name_in_braces_is_literal(text):
    if not references(text) and "{{" not in text:
        assert "".join(part for part in parse_template(text) if isinstance(part, str)) == text
    assert all(isinstance(part, str | Reference) for part in parse_template(text))
