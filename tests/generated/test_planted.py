"""Mistakes planted in good generated packages are caught before promotion."""

import pytest

from support.planted import GOOD, MISTAKES, good_package, with_mistake
from weft.packages.archive.staging import staged_folder
from weft.packages.review import review


def written(files):
    return {path: text.encode() for path, text in files.items()}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_package_has_no_findings(name):
    with staged_folder(written(good_package(name)), name) as folder:
        assert review(folder).findings == ()


def test_there_are_forty_mistakes_and_each_changes_its_package():
    assert len({mistake["name"] for mistake in MISTAKES}) == 40
    for mistake in MISTAKES:
        assert with_mistake(mistake) != good_package(mistake["package"])
