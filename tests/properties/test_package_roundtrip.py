"""What is written is what is read: for every spec, in JSON, in YAML, and in a mix of both."""

import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import specs

from weft.packages.layout import FILE_KINDS
from weft.packages.reader import read_package
from weft.packages.writer import file_texts, write_package
from weft.spec.canonical import digest, plain
from weft.spec.workflow import WorkflowSpec

FORMATS = st.fixed_dictionaries({stem: st.sampled_from(["json", "yaml"]) for stem in FILE_KINDS})
CODE = st.dictionaries(
    st.sampled_from(["tools/a.py", "tools/b.jsx", "hooks/c.py"]), st.binary(max_size=20)
)


def shuffled(value, keys):
    """Rebuild data with the keys of every object in another order."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: keys(name))
        return {name: shuffled(value[name], keys) for name in names}
    if isinstance(value, list):
        return [shuffled(item, keys) for item in value]
    return value


@settings(max_examples=150, deadline=None)
@given(specs(), FORMATS)
def test_reader_of_writer_is_identity(spec, formats):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in file_texts(spec, formats=formats).items():
            (Path(folder) / name).write_text(text, encoding="utf-8", newline="")
        package = read_package(Path(folder))
    assert package.findings == ()
    assert package.spec == spec
    assert package.broken == frozenset()


@settings(max_examples=60, deadline=None)
@given(specs(), CODE)
def test_digest_survives_writing(spec, code):
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "Package"
        write_package(folder, spec, code)
        contents = read_package(folder)
        assert digest(contents.spec, code) == digest(spec, code)


@settings(max_examples=100, deadline=None)
@given(specs(), st.integers(0, 2**16))
def test_digest_ignores_key_order(spec, salt):
    data = shuffled(json.loads(json.dumps(plain(spec))), lambda name: hash((salt, name)))
    again = WorkflowSpec.model_validate_json(json.dumps(data))
    assert digest(again, {}) == digest(spec, {})


@settings(max_examples=100, deadline=None)
@given(specs())
def test_plain_data_validates_to_the_same_spec(spec):
    assert WorkflowSpec.model_validate_json(json.dumps(plain(spec)), strict=True) == spec
