"""A file of a package that cannot be read gives findings, in every kind of package."""

import shutil
from pathlib import Path

import pytest

from weft.packages.reader import read_package
from weft.packages.review import examine_package
from weft.packages.workspace import shipped_folder

EXAMPLES = ("CustomerSupportRouter", "NewsDesk", "OrderProcessing")
FILES = [
    f"{name}/{file.name}"
    for name in EXAMPLES
    for file in sorted((shipped_folder() / name).glob("*.json"))
]


@pytest.mark.parametrize("text", ['{"a":', "[]", "null", '{"kind": 1}'])
@pytest.mark.parametrize("file", FILES)
def test_a_damaged_file_gives_findings(tmp_path: Path, file: str, text: str) -> None:
    name, part = file.split("/")
    folder = tmp_path / name
    shutil.copytree(shipped_folder() / name, folder)
    (folder / part).write_text(text)
    examined = examine_package(read_package(folder))
    assert [finding for finding in examined.findings if part in str(finding.place)]


@pytest.mark.parametrize(("name", "part"), [("NewsDesk", "board"), ("OrderProcessing", "flow")])
def test_the_mode_of_a_package_follows_from_the_file_that_cannot_be_read(
    tmp_path: Path, name: str, part: str
) -> None:
    folder = tmp_path / name
    shutil.copytree(shipped_folder() / name, folder)
    (folder / f"{part}.json").write_text("[]")
    package = read_package(folder)
    assert package.broken == {part}
    assert {finding.code[:6] for finding in examine_package(package).findings} == {"SCHEMA"}
