import hashlib
import json
import os
from zipfile import ZipFile

import pytest

from weft.errors import DeclarationError, PackageError
from weft.ids import is_ignored_file, name_error, segment_error
from weft.packages import folder as folder_walk
from weft.packages.archive.exporting import RECORD, export_package, find_clash, free_backup_name
from weft.packages.archive.importing import compare, import_package
from weft.packages.folder import MAX_FILES, read_files
from weft.packages.reader import read_package

ORCHESTRATOR = {"workflow_name": "Desk", "initial_agent": "Clerk"}
AGENTS = {"agents": [{"agent_name": "Clerk"}]}


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "made" / "Desk"
    write(folder, "orchestrator.json", json.dumps(ORCHESTRATOR))
    write(folder, "agents.json", json.dumps(AGENTS))
    write(folder, "tools/greet.py", "def greet():\n    return 'hello'\n")
    write(folder, "README.md", "# Desk\n")
    return folder


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


def write(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def tree(folder):
    return {
        str(path.relative_to(folder)): str(path.readlink())
        if path.is_symlink()
        else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def files_of(folder):
    """Return the files of an installed package without the record of the import."""
    return {name: raw for name, raw in tree(folder).items() if name != RECORD}


def refusal(call):
    with pytest.raises(DeclarationError) as caught:
        call()
    return str(caught.value), [finding.message for finding in caught.value.findings]


# Export


def test_an_archive_holds_the_files_and_a_manifest(package, tmp_path):
    target = tmp_path / "out" / "Desk.zip"
    manifest = export_package(package, target).manifest
    with ZipFile(target) as zipped:
        assert zipped.namelist() == [
            "README.md",
            "agents.json",
            "manifest.json",
            "orchestrator.json",
            "tools/greet.py",
        ]
        assert zipped.read("README.md") == b"# Desk\n"
        said = json.loads(zipped.read("manifest.json"))
    assert said["weft"] == 1
    assert said["name"] == "Desk" == manifest.name
    assert said["digest"] == read_package(package).digest == manifest.digest
    assert said["files"]["README.md"] == hashlib.sha256(b"# Desk\n").hexdigest()
    assert sorted(said["files"]) == sorted(manifest.files) == sorted(tree(package))


def test_the_same_package_gives_the_same_bytes(package, tmp_path):
    export_package(package, tmp_path / "one.zip")
    for path in package.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    (package / "README.md").chmod(0o600)
    export_package(package, tmp_path / "two.zip")
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


def test_hidden_files_and_leftovers_are_passed_over(package, tmp_path):
    before = export_package(package, tmp_path / "one.zip").manifest.files
    for name in (".env", ".git/config", "__pycache__/a.pyc", "tools/__pycache__/b.pyc"):
        write(package, name, "x")
    for name in ("agents.json~", "#agents.json#", "x.swp", "x.orig", "Thumbs.db", "tools/y.bak"):
        write(package, name, "x")
    (package / ".out").symlink_to(tmp_path)
    assert export_package(package, tmp_path / "two.zip").manifest.files == before


def test_other_files_are_packed_too(package, tmp_path):
    write(package, "data/prices.csv", b"\xff\x00")
    (package / "again.csv").symlink_to("data/prices.csv")
    (package / "more").symlink_to("data")
    files = export_package(package, tmp_path / "Desk.zip").manifest.files
    assert {"data/prices.csv", "again.csv", "more/prices.csv"} <= files.keys()


def test_an_existing_archive_is_replaced_at_once(package, tmp_path):
    target = write(tmp_path, "Desk.zip", "old")
    export_package(package, target)
    assert target.read_bytes().startswith(b"PK")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["Desk.zip", "made"]


def test_a_package_that_cannot_be_read_is_not_exported(package, tmp_path):
    write(package, "agents.json", "{")
    message, findings = refusal(lambda: export_package(package, tmp_path / "Desk.zip"))
    assert message.endswith("cannot be exported; nothing was written")
    assert len(findings) == 1
    assert not (tmp_path / "Desk.zip").exists()


def test_a_file_is_not_exported_as_a_package(tmp_path):
    message, _ = refusal(lambda: export_package(tmp_path / "Desk", tmp_path / "Desk.zip"))
    assert message.endswith("is not a package folder")


def test_an_archive_inside_its_own_package_is_refused(package):
    message, _ = refusal(lambda: export_package(package, package / "data" / "Desk.zip"))
    assert "lies inside the package" in message


def test_links_that_lead_out_or_nowhere_are_refused(package, tmp_path):
    write(tmp_path, "secret", "x")
    (package / "data.txt").symlink_to(tmp_path / "secret")
    (package / "elsewhere").symlink_to(tmp_path)
    (package / "lost").symlink_to("nowhere")
    (package / "round").symlink_to("round")
    _, findings = refusal(lambda: export_package(package, tmp_path / "Desk.zip"))
    assert findings == [
        f"{name} is a link that leads out of the folder or nowhere"
        for name in ("data.txt", "lost", "round", "elsewhere")
    ]


def test_an_error_found_while_reading_is_reported_once(package, tmp_path):
    (package / "tools" / "more.py").symlink_to(tmp_path / "nowhere.py")
    _, findings = refusal(lambda: export_package(package, tmp_path / "Desk.zip"))
    assert len(findings) == 1


def test_a_link_to_its_own_folder_ends_at_the_depth_limit(package, tmp_path):
    (package / "data").mkdir()
    (package / "data" / "data").symlink_to(".")
    _, findings = refusal(lambda: export_package(package, tmp_path / "Desk.zip"))
    assert findings == ["data is nested more than 8 folders deep"]


def test_path_that_is_not_a_file_is_refused(package, tmp_path):
    os.mkfifo(package / "pipe")
    _, findings = refusal(lambda: export_package(package, tmp_path / "Desk.zip"))
    assert findings == ["pipe is not a regular file"]


def test_too_many_files_are_refused(package, tmp_path):
    for number in range(MAX_FILES):
        (package / f"{number}.txt").touch()
    _, findings = refusal(lambda: export_package(package, tmp_path / "Desk.zip"))
    assert findings == ["Desk holds more than 2000 files"]


def test_too_much_content_is_refused(package, tmp_path):
    with (package / "large.bin").open("wb") as file:
        file.truncate(65 * 1024 * 1024)
    _, findings = refusal(lambda: export_package(package, tmp_path / "Desk.zip"))
    assert findings == ["Desk holds more than 64 MiB"]


def test_files_and_folders_that_cannot_be_read_are_refused(package, tmp_path, monkeypatch):
    write(package, "data/x.txt", "x")
    write(package, "locked.txt", "x")
    usual_list, usual_open = type(package).iterdir, type(package).open

    def denied_list(path):
        if path.name == "data":
            raise PermissionError(13, "Permission denied")
        return usual_list(path)

    def denied_open(path, *args, **more):
        if path.name == "locked.txt":
            raise PermissionError(13, "Permission denied")
        return usual_open(path, *args, **more)

    monkeypatch.setattr(type(package), "iterdir", denied_list)
    monkeypatch.setattr(type(package), "open", denied_open)
    _, findings = refusal(lambda: export_package(package, tmp_path / "Desk.zip"))
    assert findings == [
        "locked.txt cannot be read: permission denied",
        "data cannot be looked into: permission denied",
    ]


def test_names_that_import_would_refuse_are_not_exported(package, tmp_path):
    for name in ("a:b.txt", "Data.txt", "data.TXT", "manifest.json"):
        write(package, name, "x")
    write(package, "orchestrator.json", json.dumps({**ORCHESTRATOR, "workflow_name": "../Desk"}))
    _, findings = refusal(lambda: export_package(package, tmp_path / "Desk.zip"))
    assert findings[0] == "'a:b.txt' is an absolute name"
    assert findings[1].startswith("the workflow's name '../Desk' has characters")
    assert findings[2].endswith("would be the same file, or one in the other")


def test_a_file_called_like_the_manifest_is_refused(package, tmp_path):
    write(package, "Manifest.json", "x")
    _, findings = refusal(lambda: export_package(package, tmp_path / "Desk.zip"))
    assert findings == [
        "'Manifest.json' and 'manifest.json' would be the same file, or one in the other"
    ]


def test_a_package_that_could_not_run_is_not_exported(package, tmp_path):
    write(package, "orchestrator.json", json.dumps({**ORCHESTRATOR, "initial_agent": "Nobody"}))
    target = tmp_path / "Desk.zip"
    message, findings = refusal(lambda: export_package(package, target))
    assert "is not exported: the package has errors; nothing was written" in message
    assert len(findings) == 1
    assert not target.exists()


# Import


def exported(package, tmp_path, name="Desk.zip"):
    export_package(package, tmp_path / name)
    return tmp_path / name


def test_a_new_package_is_installed(package, workspace, tmp_path):
    done = import_package(exported(package, tmp_path), workspace)
    assert done.folder == workspace / "workflows" / "Desk"
    assert (done.name, done.created, done.unchanged) == ("Desk", True, False)
    assert done.added == ("README.md", "agents.json", "orchestrator.json", "tools/greet.py")
    assert (done.changed, done.removed, done.old_digest) == ((), (), None)
    assert done.new_digest == read_package(package).digest == read_package(done.folder).digest
    assert "--- (none)\n+++ b/README.md\n@@ -0,0 +1 @@\n+# Desk\n" in done.diff
    assert files_of(done.folder) == tree(package)


@pytest.mark.parametrize("name", [".helper.py", ".ipynb_checkpoints/x.py", "._x.py"])
def test_an_export_with_hidden_code_beside_it_can_be_imported(package, workspace, tmp_path, name):
    write(package, f"tools/{name}", "import nothing")
    done = import_package(exported(package, tmp_path), workspace)
    assert done.created
    assert done.new_digest == read_package(package).digest
    assert not (done.folder / "tools" / name).exists()


def test_an_installed_package_is_updated_in_place(package, workspace, tmp_path):
    archive = exported(package, tmp_path)
    folder = import_package(archive, workspace).folder
    old = read_package(folder).digest
    write(package, "README.md", "# Desk\nmore\n")
    write(package, "data/new.txt", "new")
    (package / "tools" / "greet.py").unlink()
    done = import_package(exported(package, tmp_path, "next.zip"), workspace)
    assert (done.created, done.unchanged) == (False, False)
    assert (done.added, done.changed) == (("data/new.txt",), ("README.md",))
    assert done.removed == ("tools/greet.py",)
    assert (done.old_digest, done.new_digest) == (old, read_package(folder).digest)
    assert done.diff.splitlines() == [
        "--- a/README.md",
        "+++ b/README.md",
        "@@ -1 +1,2 @@",
        " # Desk",
        "+more",
        "--- (none)",
        "+++ b/data/new.txt",
        "@@ -0,0 +1 @@",
        "+new    (no line end)",
        "--- a/tools/greet.py",
        "+++ (none)",
        "@@ -1,2 +0,0 @@",
        "-def greet():",
        "-    return 'hello'",
    ]
    assert files_of(folder) == tree(package)
    assert [path.name for path in folder.parent.iterdir()] == ["Desk"]


def test_importing_twice_writes_nothing_the_second_time(package, workspace, tmp_path):
    archive = exported(package, tmp_path)
    folder = import_package(archive, workspace).folder
    before = folder.stat()
    again = import_package(archive, workspace)
    assert (again.created, again.unchanged, again.diff) == (False, True, "")
    assert again.old_digest == again.new_digest
    assert (folder.stat().st_ino, folder.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_dry_run_says_the_same_and_writes_nothing(package, workspace, tmp_path):
    archive = exported(package, tmp_path)
    tried = import_package(archive, workspace, dry_run=True)
    assert tree(workspace) == {}
    assert list(workspace.iterdir()) == []
    assert tried == import_package(archive, workspace)


def test_hidden_files_of_an_installed_package_stay(package, workspace, tmp_path):
    folder = import_package(exported(package, tmp_path), workspace).folder
    for name in (".env", ".git/config", "agents.json~"):
        write(folder, name, "mine")
    write(folder, "tools/__pycache__/greet.pyc", "x")
    write(package, "README.md", "# other\n")
    done = import_package(exported(package, tmp_path), workspace)
    assert (done.added, done.changed, done.removed) == ((), ("README.md",), ())
    assert files_of(folder) == {
        **tree(package),
        ".env": b"mine",
        ".git/config": b"mine",
        "agents.json~": b"mine",
    }


def test_findings_have_places_in_the_new_folder(package, workspace, tmp_path):
    write(package, "tools/unused.py", "")
    done = import_package(exported(package, tmp_path), workspace)
    assert str(done.folder / "tools/unused.py") in {finding.place.file for finding in done.findings}
    assert {finding.place.file for finding in done.findings} <= {
        str(done.folder / name) for name in tree(done.folder)
    }


def test_a_package_that_could_not_run_is_refused(package, workspace, tmp_path, monkeypatch):
    text = json.dumps({**ORCHESTRATOR, "initial_agent": "Nobody"})
    write(package, "orchestrator.json", text)
    with monkeypatch.context() as careless:
        careless.setattr("weft.packages.archive.exporting.review_package", lambda _: ())
        archive = exported(package, tmp_path)
    with pytest.raises(PackageError, match="has errors; nothing was changed") as caught:
        import_package(archive, workspace)
    (finding,) = caught.value.findings
    assert finding.place.file == str(archive / "orchestrator.json")
    assert tree(workspace) == {}


def edited(package, workspace, tmp_path, name, text):
    """Import a package, change a file there, and export another version; return both."""
    folder = import_package(exported(package, tmp_path), workspace).folder
    write(folder, name, text)
    write(package, "README.md", "# other\n")
    (package / "tools" / "greet.py").unlink()
    return folder, exported(package, tmp_path, "next.zip")


@pytest.mark.parametrize("name", ["README.md", "tools/greet.py", "notes.txt"])
@pytest.mark.parametrize("dry_run", [True, False])
def test_local_changes_are_never_replaced_without_force(
    package, workspace, tmp_path, name, dry_run
):
    folder, archive = edited(package, workspace, tmp_path, name, "mine\n")
    before = tree(workspace)
    tried = import_package(archive, workspace, dry_run=dry_run)
    assert tried.lost == (name,)
    assert tried.backup is None
    assert f"--- a/{name}" in tried.diff
    assert tree(workspace) == before
    assert folder.is_dir()


def test_own_work_that_the_archive_holds_as_well_is_not_lost(package, workspace, tmp_path):
    _, archive = edited(package, workspace, tmp_path, "README.md", "# other\n")
    done = import_package(archive, workspace)
    assert (done.lost, done.removed) == ((), ("tools/greet.py",))


def test_force_keeps_the_former_folder(package, workspace, tmp_path):
    folder, archive = edited(package, workspace, tmp_path, "README.md", "mine\n")
    former = tree(folder)
    would = import_package(archive, workspace, dry_run=True, force=True)
    done = import_package(archive, workspace, force=True)
    assert would == done
    assert done.backup == folder.with_name("Desk.bak")
    assert tree(done.backup) == former
    assert files_of(folder) == tree(package)
    write(folder, "README.md", "mine again\n")
    again = import_package(archive, workspace, force=True)
    assert again.backup == free_backup_name(folder).with_name("Desk.2.bak")
    assert again.backup.is_dir()


def test_force_keeps_nothing_when_nothing_is_lost(package, workspace, tmp_path):
    import_package(exported(package, tmp_path), workspace)
    write(package, "README.md", "# other\n")
    done = import_package(exported(package, tmp_path), workspace, force=True)
    assert (done.changed, done.backup) == (("README.md",), None)
    assert [path.name for path in done.folder.parent.iterdir()] == ["Desk"]


@pytest.mark.parametrize("record", [None, "{", "[]"])
def test_without_a_record_every_file_may_be_own_work(package, workspace, tmp_path, record):
    folder = import_package(exported(package, tmp_path), workspace).folder
    (folder / RECORD).unlink()
    if record is not None:
        write(folder, RECORD, record)
    write(package, "README.md", "# other\n")
    assert import_package(exported(package, tmp_path), workspace).lost == ("README.md",)


def test_the_record_is_not_packed_again(package, workspace, tmp_path):
    folder = import_package(exported(package, tmp_path), workspace).folder
    assert RECORD not in export_package(folder, tmp_path / "again.zip").manifest.files


def test_a_folder_with_contents_that_would_be_lost_is_not_replaced(package, workspace, tmp_path):
    archive = exported(package, tmp_path)
    folder = workspace / "workflows" / "Desk"
    folder.mkdir(parents=True)
    (folder / ".link").symlink_to(tmp_path)
    message, findings = refusal(lambda: import_package(archive, workspace))
    assert message == f"{folder} cannot be replaced; nothing was changed"
    assert findings == [".link is a link that leads out of the folder or nowhere"]
    assert tree(workspace) == {"workflows/Desk/.link": str(tmp_path)}


@pytest.mark.parametrize("kind", ["link", "file"])
def test_path_that_is_not_a_plain_folder_is_not_replaced(package, workspace, tmp_path, kind):
    folder = workspace / "workflows" / "Desk"
    folder.parent.mkdir()
    if kind == "link":
        folder.symlink_to(package)
    else:
        folder.write_text("x")
    before = tree(workspace)
    message, _ = refusal(lambda: import_package(exported(package, tmp_path), workspace))
    assert message == f"{folder} is a link or no folder; move it away and import again"
    assert tree(workspace) == before


def test_reading_an_installed_folder_keeps_hidden_files_apart(package):
    write(package, ".env", "x")
    assert read_files(package).kept == {}
    assert read_files(package, hidden=True).kept == {".env": b"x"}
    assert read_files(package, hidden=True).files == read_files(package).files


def test_reading_stops_at_the_first_file_beyond_a_limit(package, monkeypatch):
    monkeypatch.setattr(folder_walk, "MAX_FILES", 2)
    content = read_files(package)
    assert (len(content.files), len(content.findings)) == (2, 1)


# Names


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("/etc/passwd", "is an absolute name"),
        ("C:/x", "is an absolute name"),
        ("C:x", "is an absolute name"),
        ("a\\b", "has a backslash"),
        ("../x", "leads out of the package"),
        ("a/../../x", "leads out of the package"),
        ("a/./b", "ends with a dot"),
        ("a//b", "has an empty part"),
        ("", "has an empty part"),
        ("tools/", "has an empty part"),
        ("a /b", "has an empty part, or one that begins or ends with a blank"),
        ("a\x00b", "has characters"),
        ("a\x1b[31m", "has characters"),
        ("a\u202eb", "has characters"),
        ("a\udc80b", "has characters"),
        ("a?b", "has characters"),
        ("x/a:b", "has characters"),
        ("tools/aux.py", "is the name of a device"),
        ("COM1", "is the name of a device"),
        (".env", "is hidden"),
        ("a/.git/b", "is hidden"),
        ("__pycache__/x", "is hidden"),
        ("x.pyc", "is hidden"),
        ("é" * 101, "has a part of more than 200 bytes"),
        ("/".join(["d"] * 10), "is nested more than 8 folders deep"),
        ("/".join(["d" * 150] * 4), "is longer than 500 bytes"),
    ],
)
def test_names_that_are_not_safe_everywhere_are_refused(name, fault):
    assert fault in (name_error(name) or "")


@pytest.mark.parametrize(
    "name", ["agents.json", "tools/greet.py", "data/größe 1.csv", "a/b/c/d/e/f/g/h/i", "con2", "#1"]
)
def test_plain_names_are_fine(name):
    assert name_error(name) is None


def test_the_name_of_a_package_has_no_slash():
    assert segment_error("a/b")
    assert segment_error("Desk") is None


def test_names_that_could_be_one_file_clash():
    assert find_clash(["a", "b/c", "b/d"]) is None
    assert find_clash(["a", "a"]) == ("a", "a")
    assert find_clash(["Tools/x.py", "tools/X.py"]) == ("Tools/x.py", "tools/X.py")
    assert find_clash(["\u00e9", "e\u0301"]) == ("\u00e9", "e\u0301")
    assert find_clash(["A/b/c", "a"]) == ("a", "A/b/c")


def test_leftovers_are_recognised_by_their_names():
    assert all(map(is_ignored_file, (".x", "#x#", "x~", "x.SWP", "__pycache__", "desktop.ini")))
    assert not any(map(is_ignored_file, ("x", "#x", "x.py", "backup")))


# Comparison


def test_texts_are_compared_line_by_line():
    found = compare({"a": b"1\n2\n"}, {"a": b"1\n3\n"})
    assert found.diff == "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n 1\n-2\n+3\n"
    assert not found.same


def test_the_same_files_have_no_difference():
    assert compare({"a": b"x"}, {"a": b"x"}).same
    assert compare({"a": b"x"}, {"a": b"x"}).diff == ""


def test_a_missing_line_end_is_a_difference():
    assert "-1    (no line end)\n+1\n" in compare({"a": b"1"}, {"a": b"1\n"}).diff


def test_empty_files_that_come_or_go_are_named():
    assert compare({}, {"a": b""}).diff == "--- (none)\n+++ b/a\n"
    assert compare({"a": b""}, {}).diff == "--- a/a\n+++ (none)\n"


@pytest.mark.parametrize("raw", [b"\xff\xfe", b"a\0b", b"\n" * 2000, b"x" * (256 * 1024 + 1)])
def test_binary_or_long_content_is_compared_by_hash(raw):
    digest = hashlib.sha256(raw).hexdigest()
    assert compare({}, {"a": raw}).diff == f"--- (none)\n+++ b/a sha256 {digest}\n"
    assert compare({"a": raw}, {}).diff == f"--- a/a sha256 {digest}\n+++ (none)\n"
    assert "@@" not in compare({"a": raw}, {"a": b"text"}).diff


def test_after_many_lines_the_rest_is_compared_by_hash():
    old = {f"{number:02}": b"x\n" * 1000 for number in range(20)}
    new = dict.fromkeys(old, b"y\n" * 1000)
    assert compare(old, new).diff.count("@@ -1") == 10


def test_nothing_in_a_difference_can_take_over_the_terminal():
    found = compare({}, {"a\x1b": "\x1b[2Jx\t\u202ey\x85z".encode()})
    assert found.diff.isascii()
    assert "+\\x1b[2Jx\t\\u202ey\\x85z" in found.diff
    assert "b/a\\x1b" in found.diff
    assert "b/a\\x1b sha256" in compare({}, {"a\x1b": b"\0"}).diff
