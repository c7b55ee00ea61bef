"""Any bytes in any file give findings: no traceback, no import, no half-written file."""

import json
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.effort import TIMES
from weft.catalogue import CATALOGUE
from weft.packages.review import review

SHIPPED = Path(__file__).parents[2] / "workflows" / "CustomerSupportRouter"
FILES = sorted(
    str(path.relative_to(SHIPPED))
    for path in SHIPPED.rglob("*")
    if path.suffix in {".json", ".py", ".jsx"}
)
DECLARED = [name for name in FILES if name.endswith(".json")]


def changed(raw: bytes, cut: slice, insert: bytes) -> bytes:
    return raw[: cut.start] + insert + raw[cut.stop :]


@st.composite
def damage(draw):
    """Draw a file of the package and what becomes of its bytes."""
    name = draw(st.sampled_from(FILES))
    raw = (SHIPPED / name).read_bytes()
    start = draw(st.integers(0, len(raw)))
    stop = draw(st.integers(start, min(start + 40, len(raw))))
    insert = draw(
        st.one_of(
            st.binary(max_size=12),
            st.sampled_from(
                [b"{", b"}", b"[", b"]", b'"', b",", b":", b"null", b"\\u0000", b"\xff"]
            ),
        )
    )
    return name, draw(
        st.sampled_from([raw[:start], changed(raw, slice(start, stop), insert), insert])
    )


@settings(max_examples=30 * TIMES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damage(), st.sampled_from([".json", ".yaml"]))
def test_damaged_bytes_give_findings(broken, suffix):
    name, raw = broken
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "CustomerSupportRouter"
        shutil.copytree(SHIPPED, folder)
        target = folder / name
        target.unlink()
        if name in DECLARED:
            target = target.with_suffix(suffix)
        target.write_bytes(raw)
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        result = review(folder)
        after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert before == after
    for finding in result.findings:
        assert finding.code in CATALOGUE
        assert finding.place.file.startswith(str(folder))
        assert "\n" not in finding.message


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


BOMB = b"a: &a [x, x, x, x, x, x, x, x, x]\n" + b"".join(
    b"%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n" % ((98 + i, 98 + i, *[97 + i] * 9))
    for i in range(9)
)

HOSTILE = {
    "empty": ("agents.json", b"", "SCHEMA002"),
    "truncated": ("agents.json", b'{"agents": [{"agent_na', "SCHEMA002"),
    "binary": ("agents.json", bytes(range(256)) * 40, "SCHEMA001"),
    "bom": ("agents.json", b"\xef\xbb\xbf" + b'{"agents": [], "x": 1}', "SCHEMA008"),
    "utf-16": ("agents.json", '{"agents": []}'.encode("utf-16"), "SCHEMA001"),
    "bomb": ("agents.yaml", BOMB, "SCHEMA004"),
    "deep json": ("agents.json", nested(10_000), "SCHEMA004"),
    "deep yaml": ("agents.yaml", nested(10_000), "SCHEMA004"),
    "deep yaml blocks": ("agents.yaml", b"".join(b"- " for _ in range(10_000)), "SCHEMA004"),
    "duplicate keys": ("agents.json", b'{"agents": [], "agents": []}', "SCHEMA003"),
    "duplicate yaml keys": ("agents.yaml", b"agents: []\nagents: []\n", "SCHEMA003"),
    "huge number": ("agents.json", b'{"agents": ' + b"9" * 5000 + b"}", "SCHEMA004"),
    "huge yaml number": ("agents.yaml", b"agents: " + b"9" * 5000, "SCHEMA004"),
    "nan": ("agents.json", b'{"agents": NaN}', "SCHEMA002"),
    "python tag": ("agents.yaml", b"agents: !!python/object/apply:os.system [ls]", "SCHEMA005"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_file(tmp_path, case):
    name, raw, code = HOSTILE[case]
    folder = tmp_path / "W"
    folder.mkdir()
    (folder / "orchestrator.json").write_text('{"workflow_name": "W", "initial_agent": "A"}')
    (folder / name).write_bytes(raw)
    assert code in {finding.code for finding in review(folder).findings}


def test_code_is_never_imported(tmp_path):
    folder = tmp_path / "CustomerSupportRouter"
    shutil.copytree(SHIPPED, folder)
    marker = tmp_path / "imported"
    for path in folder.rglob("*.py"):
        path.write_text(f"open({str(marker)!r}, 'w').close()\n" + path.read_text())
    review(folder)
    assert not marker.exists()


@pytest.mark.parametrize("code", ["(" * 5000, "x = " + "-" * 100_000 + "1", "\x00", "a" * 10**6])
def test_hostile_code(tmp_path, code):
    folder = tmp_path / "CustomerSupportRouter"
    shutil.copytree(SHIPPED, folder)
    target = next((folder / "tools").glob("*.py"))
    target.write_text(code)
    assert not review(folder).ok


def test_memory_stays_bounded(tmp_path):
    """The command line, given files of 100 MB and a bomb, within 400 MB of address space."""
    folder = tmp_path / "W"
    folder.mkdir()
    (folder / "orchestrator.json").write_text(
        json.dumps({"workflow_name": "W", "initial_agent": "A"})
    )
    (folder / "agents.yaml").write_bytes(BOMB)
    for name in ("tools.json", "handoffs.yaml"):
        with (folder / name).open("wb") as file:
            file.truncate(100 * 1024 * 1024)
    limit = 400 * 1024 * 1024
    done = subprocess.run(
        [sys.executable, "-m", "weft", "check", str(folder)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr + done.stdout
