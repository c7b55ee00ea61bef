"""Archives made to do harm, or damaged: every one is refused, and nothing is written."""

import hashlib
import io
import json
import os
import stat
import struct
import tracemalloc
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZipFile, ZipInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.cases import read_cases
from support.effort import TIMES
from weft.errors import PackageError
from weft.packages.archive.exporting import export_package
from weft.packages.archive.importing import import_package, unpack

CASES = read_cases(__file__)

FILES = {
    "orchestrator.json": b'{"workflow_name": "Desk", "initial_agent": "Clerk"}',
    "agents.json": b'{"agents": [{"agent_name": "Clerk"}]}',
    "tools/greet.py": b"def greet():\n    return 1\n",
}


def sha(raw):
    return hashlib.sha256(raw).hexdigest()


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folder = tmp_path_factory.mktemp("good")
    for name, raw in FILES.items():
        path = folder / "Desk" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)
    export_package(folder / "Desk", folder / "Desk.zip")
    return folder / "Desk.zip"


@pytest.fixture
def manifest(good):
    with ZipFile(good) as zipped:
        return json.loads(zipped.read("manifest.json"))


@pytest.fixture
def workspace(tmp_path):
    installed = tmp_path / "workspace" / "workflows" / "Desk"
    installed.mkdir(parents=True)
    (installed / "agents.json").write_bytes(b"old")
    return tmp_path / "workspace"


def tree(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def zipped(entries, manifest=None):
    """Make a zip file of (ZipInfo or name, content) pairs, and of a manifest if one is given."""
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as archive:
        for entry, raw in entries:
            archive.writestr(entry, raw)
        if manifest is not None:
            archive.writestr("manifest.json", json.dumps(manifest))
    return buffer.getvalue()


def messages(raw, workspace, tmp_path):
    """Import some bytes; return what the refusal says, after making sure nothing was touched."""
    path = tmp_path / "bad.zip"
    path.write_bytes(raw)
    before = tree(tmp_path)
    with pytest.raises(PackageError) as caught:
        import_package(path, workspace)
    assert tree(tmp_path) == before
    assert str(caught.value) == f"{path} cannot be imported; nothing was changed"
    assert {finding.code for finding in caught.value.findings} <= {"SCHEMA015", "SCHEMA002"}
    return [finding.message for finding in caught.value.findings]


def listed(manifest, **files):
    return {**manifest, "files": {**manifest["files"], **files}}


def kind(name, mode):
    entry = ZipInfo(name)
    entry.external_attr = mode << 16
    return entry


@pytest.mark.parametrize(("name", "fault"), CASES["test_names_that_could_do_harm"])
def test_names_that_could_do_harm(name, fault, manifest, workspace, tmp_path):
    raw = zipped([*FILES.items(), (name, b"x")], listed(manifest, **{name: sha(b"x")}))
    found = messages(raw, workspace, tmp_path)
    assert len(found) == 1
    assert fault in found[0]
    assert not (tmp_path.parent / "x").exists()


def test_name_with_a_zero_byte(manifest, workspace, tmp_path):
    raw = zipped([*FILES.items(), ("agents.jsonX/../x", b"x")], manifest)
    raw = raw.replace(b"agents.jsonX/../x", b"agents.json\0/../x")
    assert messages(raw, workspace, tmp_path)[0].startswith("'agents.json\\x00/../x' leads out")


@pytest.mark.parametrize("mode", [stat.S_IFLNK | 0o777, stat.S_IFIFO | 0o644, stat.S_IFDIR | 0o755])
def test_links_and_other_kinds_of_entries(mode, manifest, workspace, tmp_path):
    entry = kind("tools/link", mode)
    raw = zipped(
        [*FILES.items(), (entry, b"/etc")], listed(manifest, **{"tools/link": sha(b"/etc")})
    )
    assert messages(raw, workspace, tmp_path) == [
        "'tools/link' is a link or something else that is not a plain file"
    ]


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", ["agents.json", "AGENTS.json", "tools", "agents.json/x"])
def test_names_that_would_be_the_same_file(name, manifest, workspace, tmp_path):
    raw = zipped([*FILES.items(), (name, b"x")], listed(manifest, **{name: sha(b"x")}))
    found = messages(raw, workspace, tmp_path)
    assert found[0].endswith("would be the same file, or one inside the other")


def test_encrypted_entries(good, workspace, tmp_path):
    raw = bytearray(good.read_bytes())
    for sign, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        raw[raw.index(sign) + offset] |= 1
    assert messages(bytes(raw), workspace, tmp_path) == ["'agents.json' is encrypted"]


def test_other_ways_of_compressing(manifest, workspace, tmp_path):
    entry = ZipInfo("x.txt")
    entry.compress_type = ZIP_BZIP2
    raw = zipped([*FILES.items(), (entry, b"x")], listed(manifest, **{"x.txt": sha(b"x")}))
    assert messages(raw, workspace, tmp_path) == [
        "'x.txt' is compressed in a way that weft export does not use"
    ]


def test_many_errors_are_summarised(manifest, workspace, tmp_path):
    raw = zipped([*FILES.items(), *((f"../{n}", b"x") for n in range(50))], manifest)
    found = messages(raw, workspace, tmp_path)
    assert len(found) == 21
    assert found[-1] == "and 30 more like these"


def test_too_many_entries(manifest, workspace, tmp_path):
    raw = zipped([(f"{number}.txt", b"") for number in range(2002)], manifest)
    assert messages(raw, workspace, tmp_path) == ["the zip file lists more than 2000 files"]


def test_more_entries_than_the_end_of_the_file_admits(manifest, workspace, tmp_path):
    raw = bytearray(zipped([(f"{number}.txt", b"") for number in range(2002)], manifest))
    raw[-14:-10] = struct.pack("<HH", 5, 5)
    assert messages(bytes(raw), workspace, tmp_path) == ["the zip file holds more than 2000 files"]


def test_a_list_of_entries_without_end(workspace, tmp_path):
    long = "n" * 60_000
    raw = zipped([(f"{number}{long}", b"") for number in range(40)])
    assert messages(raw, workspace, tmp_path) == ["the zip file lists more than 2000 files"]


def test_a_bomb_is_refused_in_bounded_memory(manifest, workspace, tmp_path):
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("manifest.json", json.dumps(listed(manifest, bomb="0" * 64)))
        with archive.open("bomb", "w") as entry:
            for _ in range(300):
                entry.write(bytes(1024 * 1024))
    raw = buffer.getvalue()
    tracemalloc.start()
    try:
        found = messages(raw, workspace, tmp_path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == ["the content is larger than 64 MiB"]
    assert peak < 200 * 1024 * 1024


def test_a_bomb_that_lies_about_its_size(manifest, workspace, tmp_path):
    content = bytes(1024 * 1024)
    raw = zipped([*FILES.items(), ("bomb", content)], listed(manifest, bomb=sha(content)))
    lied = raw.replace(struct.pack("<L", len(content)), struct.pack("<L", 10))
    assert lied != raw
    assert messages(lied, workspace, tmp_path) == ["the zip file is damaged"]


def test_a_file_that_is_too_large_to_be_an_archive(workspace, tmp_path):
    path = tmp_path / "large.zip"
    with path.open("wb") as file:
        file.truncate(70 * 1024 * 1024)
    with pytest.raises(PackageError) as caught:
        import_package(path, workspace)
    assert caught.value.findings[0].message == "the file is larger than 64 MiB"


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"weft": 2}, "manifest.json: weft: input should be 1"),
        ({"digest": "abc"}, "manifest.json: digest: string should match pattern"),
        ({"files": {"agents.json": 5}}, "manifest.json: files.agents.json: input should be"),
        ({"extra": 1}, "manifest.json: extra: extra inputs are not permitted"),
        ({"name": "../Desk"}, "manifest.json: the name '../Desk' has characters"),
        ({"name": ".."}, "manifest.json: the name '..' has an empty part"),
        ({"name": ".Desk"}, "manifest.json: the name '.Desk' is hidden"),
        ({"name": "Other"}, "manifest.json says 'Other', but the workflow is 'Desk'"),
        ({"digest": "0" * 64}, "manifest.json: the digest is not that of the package"),
    ],
)
def test_a_wrong_manifest(change, fault, manifest, workspace, tmp_path):
    raw = zipped(FILES.items(), {**manifest, **change})
    assert messages(raw, workspace, tmp_path)[0].startswith(fault)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (b"{", "manifest.json: "),
        (b"[]", "manifest.json: input should be an object"),
        (b'{"weft": 1, "weft": 1}', "manifest.json: "),
        (b"\xff", "manifest.json: "),
        (b"[" * 10_000, "manifest.json: "),
    ],
)
def test_an_invalid_manifest_is_refused(text, fault, workspace, tmp_path):
    raw = zipped([*FILES.items(), ("manifest.json", text)])
    found = messages(raw, workspace, tmp_path)
    assert len(found) == 1
    assert found[0].startswith(fault)


def test_files_that_the_manifest_does_not_list(manifest, workspace, tmp_path):
    raw = zipped([*FILES.items(), ("more.txt", b"x")], manifest)
    assert messages(raw, workspace, tmp_path) == [
        "manifest.json: 'more.txt' is in the zip file, but not listed"
    ]


def test_files_that_only_the_manifest_lists(manifest, workspace, tmp_path):
    raw = zipped(FILES.items(), listed(manifest, **{"more.txt": sha(b"x")}))
    assert messages(raw, workspace, tmp_path) == [
        "manifest.json: 'more.txt' is listed, but not in the zip file"
    ]


def test_files_that_were_changed(manifest, workspace, tmp_path):
    raw = zipped({**FILES, "tools/greet.py": b"evil"}.items(), manifest)
    assert messages(raw, workspace, tmp_path) == [
        "manifest.json: 'tools/greet.py' is not what was packed: its sha256 differs"
    ]


def test_a_package_that_cannot_be_read(manifest, workspace, tmp_path):
    files = {**FILES, "agents.json": b"{"}
    hashes = {name: sha(raw) for name, raw in files.items()}
    raw = zipped(files.items(), {**manifest, "files": hashes})
    path = tmp_path / "bad.zip"
    assert messages(raw, workspace, tmp_path)
    with pytest.raises(PackageError) as caught:
        import_package(path, workspace)
    assert [str(finding.place) for finding in caught.value.findings] == [
        f"{path / 'agents.json'}:1:2"
    ]


@pytest.mark.parametrize(
    "raw",
    [b"", b"PK", b"no zip file at all, but long enough to have been one" * 3, b"PK\x05\x06" * 30],
)
def test_a_file_that_is_not_a_zip_file_is_refused(raw, workspace, tmp_path):
    assert messages(raw, workspace, tmp_path)[0].startswith("the ")


def test_parts_added_before_or_after(good, workspace, tmp_path):
    raw = good.read_bytes()
    before = messages(b"#!/bin/sh\n" + raw, workspace, tmp_path)
    assert before == ["the zip file has something added before, between or after its parts"]
    after = messages(raw + b"more", workspace, tmp_path)
    assert after == [
        "the file is not a zip file, or was cut off, or has something added at its end"
    ]
    assert messages(raw[:-30], workspace, tmp_path) == after


def test_kinds_of_zip_files_that_export_does_not_write(good, workspace, tmp_path):
    raw = good.read_bytes()
    end = raw[-22:]
    large = raw[:-22] + b"PK\x06\x07" + bytes(16) + end
    fault = ["the zip file is of a kind that weft export does not write"]
    assert messages(large, workspace, tmp_path) == fault
    second_disk = raw[:-18] + b"\x01" + raw[-17:]
    assert messages(second_disk, workspace, tmp_path) == fault


def test_damaged_content(good, workspace, tmp_path):
    raw = bytearray(good.read_bytes())
    raw[60] ^= 0xFF
    assert messages(bytes(raw), workspace, tmp_path) == ["the zip file is damaged"]


def test_a_file_that_is_not_there(workspace, tmp_path):
    with pytest.raises(PackageError) as caught:
        import_package(tmp_path / "none.zip", workspace)
    assert caught.value.findings[0].message == "there is no such file"


def test_a_pipe_is_not_waited_for(workspace, tmp_path):
    os.mkfifo(tmp_path / "pipe.zip")
    with pytest.raises(PackageError):
        import_package(tmp_path / "pipe.zip", workspace)


def test_a_file_that_may_not_be_read(good, workspace, monkeypatch):
    def denied(path, *args, **more):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(good), "open", denied)
    with pytest.raises(PackageError) as caught:
        import_package(good, workspace)
    assert caught.value.findings[0].message == "the file cannot be read: permission denied"


def outcome(path):
    try:
        return unpack(path).files
    except PackageError:
        return "refused"


@settings(
    max_examples=60 * TIMES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_changed_bytes_are_refused_or_change_nothing(data, good, tmp_path):
    raw = bytearray(good.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    raw = raw[: data.draw(st.just(len(raw)) | st.integers(0, len(raw)))]
    path = tmp_path / "changed.zip"
    path.write_bytes(raw)
    assert outcome(path) in (FILES, "refused")


def test_import_record_is_not_part_of_a_package(manifest, workspace, tmp_path):
    raw = zipped([("tools/", b""), (".weft-import.json", b"{}"), *FILES.items()], manifest)
    assert unpack(tmp_path / "by-hand.zip", raw).files == FILES


def test_archive_without_a_manifest_is_named_first(workspace, tmp_path):
    raw = zipped([("Desk/", b""), (".hidden", b""), *FILES.items()])
    (message,) = messages(raw, workspace, tmp_path)
    assert message == "this is not an archive of `weft export`: it has no manifest.json"
