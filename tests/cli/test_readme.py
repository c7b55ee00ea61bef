"""What the front page shows works as shown."""

import re
from pathlib import Path

from weft.spec.condition_parser import parse_condition

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_the_smallest_package_has_no_findings(weft, tmp_path, monkeypatch):
    files = re.findall(r"`(workflows/Hello/[a-z]+\.json)`\n```json\n(.*?)```", README, re.DOTALL)
    assert len(files) == 3
    for name, text in files:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.chdir(tmp_path)
    result = weft("check", "--strict")
    assert (result.code, result.err) == (0, "")
    assert "No findings in 3 files of 1 package" in result.out


def test_the_conditions_shown_can_be_read():
    (example,) = re.findall(r"^example +: +(.*)$", README, re.MULTILINE)
    parse_condition(example)
    (english,) = re.findall(r"`(When [^`]+)`", README)
    parse_condition(english)
