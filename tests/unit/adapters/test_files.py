"""Files of a package and its workspace: which are read, and which never."""

import errno
import os
import socket
import threading
from pathlib import Path

import pytest

from support.model_play import run
from weft.adapters import files
from weft.adapters.files import MOST_BYTES, WorkspaceFiles
from weft.check.rules.secrets import why_not_read
from weft.errors import PortError

SECRET = "canary-77d0"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Two packages in a workspace, and a secret beside it."""
    (tmp_path / "outside.txt").write_text(SECRET)
    workspace = tmp_path / "shop"
    for name in ("Orders", "Returns"):
        write(workspace / "workflows" / name / "orchestrator.json", "{}")
        write(workspace / "workflows" / name / "agents.json", "{}")
    return workspace


@pytest.fixture
def package(workspace: Path) -> Path:
    return workspace / "workflows" / "Orders"


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(workspace: Path, path: str, workflow: str = "Orders") -> str:
    return run(WorkspaceFiles(workspace).read("app", workflow, path))


def refused(workspace: Path, path: str, workflow: str = "Orders") -> str:
    with pytest.raises(PortError) as caught:
        read(workspace, path, workflow)
    assert not caught.value.retryable
    assert str(caught.value).startswith(f"file {path!r} ")
    assert "; " in str(caught.value)
    assert SECRET not in str(caught.value)
    return str(caught.value)


def test_a_package_goes_before_the_workspace(workspace: Path, package: Path):
    write(package / "texts/rules.md", "of the package")
    write(workspace / "texts/rules.md", "of the workspace")
    assert read(workspace, "texts/rules.md") == "of the package"
    assert read(workspace, "./texts//rules.md") == "of the package"
    assert read(workspace, "texts/rules.md", "Returns") == "of the workspace"
    assert read(workspace, "texts/rules.md", "Unknown") == "of the workspace"
    assert read(workspace, "workflows/Orders/texts/rules.md", "Returns") == "of the package"


def test_a_package_may_be_all_there_is(workspace: Path, package: Path):
    write(package / "rules.md", "alone")
    assert read(package, "rules.md") == "alone"
    assert read(workspace / "workflows", "rules.md") == "alone"


def test_a_file_is_read_as_it_is_now(workspace: Path):
    file = write(workspace / "a.txt", "one\r\n")
    assert read(workspace, "a.txt") == "one\r\n"
    write(file, "\ufeffzwölf")
    assert read(workspace, "a.txt") == "zwölf"


def test_a_file_that_is_not_there(workspace: Path):
    text = refused(workspace, "rules.md")
    assert "neither in the package Orders nor in the workspace; create it" in text
    assert "neither" in refused(workspace, "orchestrator.json/rules.md")


def test_a_workspace_that_is_not_there(tmp_path: Path):
    assert "cannot be looked for: No such file" in refused(tmp_path / "gone", "rules.md")


@pytest.mark.parametrize(
    "path",
    [
        *("../outside.txt", "texts/../../outside.txt", "..", "a/..", "", ".", "/", "~/x"),
        *("/etc/passwd", "C:/x.txt", "C:x.txt", "..\\outside.txt", "\\\\host\\x", "a\0b", "a\nb"),
        *("con", "texts/aux.txt", "a" * 300, "/".join("a" * 12), "a/" * 300 + "b", "a."),
    ],
)
def test_a_path_that_leads_elsewhere_is_refused(workspace: Path, path: str):
    assert "name a plain file of the package" in refused(workspace, path)


def test_an_absolute_path_is_refused_even_inside(workspace: Path):
    file = write(workspace / "rules.md", "x")
    assert "is an absolute name" in refused(workspace, str(file))


@pytest.mark.parametrize(
    "name",
    [
        *(".env", ".env.local", ".envrc", ".ENV", "config/.env", "prod.env", ".git/config"),
        *(".weft/journal.db", ".ssh/config", ".ssh/known_hosts", ".netrc", ".npmrc", ".pypirc"),
        *("server.pem", "SERVER.PEM", "tls/server.key", "id_rsa", "id_rsa.pub", "id_ed25519"),
        *("credentials", "credentials.json", "Credentials.yaml", "credential_store.txt"),
        *("secrets.json", "secrets/a.txt", "Secret.txt", "store.p12", "store.jks", "_netrc"),
        *("service-account-7.json", "service_account.json", "notes.txt~", "notes.bak"),
    ],
)
def test_a_file_that_may_hold_secrets_is_refused(workspace: Path, package: Path, name: str):
    write(workspace / name, SECRET)
    refused(workspace, name)
    assert why_not_read(name), "and weft check says so before"
    write(package / name, SECRET)
    refused(workspace, name)
    # Whether it is there is not told either.
    (package / name).unlink()
    (workspace / name).unlink()
    assert "neither" not in refused(workspace, name)


@pytest.mark.parametrize("name", ["secretary.md", "keys.md", "monkey", "environment.md", "pem.txt"])
def test_other_names_are_not_taken_for_secrets(workspace: Path, name: str):
    write(workspace / name, "x")
    assert read(workspace, name) == "x"
    assert why_not_read(name) is None


def test_a_link_that_leads_out_is_refused(workspace: Path, package: Path):
    (package / "a.txt").symlink_to(workspace.parent / "outside.txt")
    (package / "folder").symlink_to(workspace.parent)
    (package / "self").symlink_to("self")
    (package / "gone").symlink_to("nowhere")
    assert "leads out of the package and the workspace" in refused(workspace, "a.txt")
    assert "leads out of the package and the workspace" in refused(workspace, "folder/outside.txt")
    assert SECRET not in refused(workspace, "self")
    assert "neither" in refused(workspace, "gone")


def test_a_folder_beside_with_the_same_beginning_is_outside(workspace: Path):
    beside = write(workspace.parent / "shop-secrets" / "a.txt", SECRET)
    (workspace / "a.txt").symlink_to(beside)
    assert "leads out" in refused(workspace, "a.txt")


def test_a_link_to_what_may_hold_secrets_is_refused(workspace: Path, package: Path):
    write(workspace / ".env", SECRET)
    write(workspace / "server.key", SECRET)
    (package / "a.txt").symlink_to("../../.env")
    (workspace / "b.txt").symlink_to("server.key")
    assert "is hidden" in refused(workspace, "a.txt")
    assert "may hold secrets" in refused(workspace, "b.txt")


def test_a_link_inside_is_followed(workspace: Path, package: Path):
    write(workspace / "shared/rules.md", "shared")
    (package / "rules.md").symlink_to("../../shared/rules.md")
    assert read(workspace, "rules.md") == "shared"


def test_a_package_that_is_linked_into_the_workspace(workspace: Path, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere" / "Linked"
    write(elsewhere / "orchestrator.json", "{}")
    write(elsewhere / "rules.md", "linked")
    (workspace / "workflows" / "Linked").symlink_to(elsewhere)
    assert read(workspace, "rules.md", "Linked") == "linked"
    (elsewhere / "out.txt").symlink_to(tmp_path / "outside.txt")
    assert "leads out" in refused(workspace, "out.txt", "Linked")


def test_a_large_file_is_refused(workspace: Path):
    write(workspace / "fits.txt", b"x" * MOST_BYTES)
    write(workspace / "large.txt", b"x" * (MOST_BYTES + 1))
    assert len(read(workspace, "fits.txt")) == MOST_BYTES
    assert "is larger than 1000000 bytes" in refused(workspace, "large.txt")


@pytest.mark.parametrize("raw", [b"\xff\xfe\x00", b"caf\xe9", b"a\x00b", "ab".encode("utf-16-le")])
def test_non_text_value_is_refused(workspace: Path, raw: bytes):
    write(workspace / "a.txt", raw)
    assert "is not UTF-8 text" in refused(workspace, "a.txt")


def test_only_files_are_read(workspace: Path):
    (workspace / "folder").mkdir()
    os.mkfifo(workspace / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(workspace / "door"))
        for name in ("folder", "pipe", "door"):
            assert "is not a regular file" in refused(workspace, name)


def test_a_device_is_refused(workspace: Path):
    (workspace / "zeros").symlink_to("/dev/zero")
    assert "leads out" in refused(workspace, "zeros")


def test_the_event_loop_is_not_held_up(workspace: Path, monkeypatch: pytest.MonkeyPatch):
    threads: list[bool] = []
    real = files.read_start

    def look(*given: object) -> object:
        threads.append(threading.current_thread() is threading.main_thread())
        return real(*given)

    monkeypatch.setattr(files, "read_start", look)
    write(workspace / "a.txt", "x")
    read(workspace, "a.txt")
    assert threads == [False]


def test_a_file_one_may_not_read(workspace: Path, monkeypatch: pytest.MonkeyPatch):
    def denied(*_: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    write(workspace / "a.txt", "x")
    monkeypatch.setattr(Path, "open", denied)  # root may read everything
    text = refused(workspace, "a.txt")
    assert "cannot be used: a.txt cannot be read: permission denied; let yourself read it" in text
