"""What the server sends of recorded runs, and what is known of them, is what the page expects."""

import pytest

from wire.journals import HERE, shared_files

FILES = shared_files()


@pytest.mark.parametrize("name", FILES)
def test_shared_file_is_current(name):
    again = "in the folder tests, run: python -m wire.journals"
    assert (HERE / name).read_bytes() == FILES[name], again


def test_no_other_file_is_shared():
    found = {file.name for file in HERE.iterdir() if file.suffix in (".json", ".jsonl")}
    assert found == set(FILES)
