"""Files appear whole or not at all."""

import pytest

from weft.errors import PackageError
from weft.packages.archive.staging import create_folder, replace_files, replace_folder


def tree(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def failing(monkeypatch, method, *, when):
    real = getattr(type_of_path(), method)

    def fail(self, *arguments):
        if when(self):
            raise OSError(28, "No space left on device")
        return real(self, *arguments)

    monkeypatch.setattr(f"pathlib.Path.{method}", fail)


def type_of_path():
    import pathlib

    return pathlib.Path


def test_create(tmp_path):
    create_folder(tmp_path / "a" / "P", {"x.json": b"1", "tools/t.py": b"2"})
    assert tree(tmp_path) == {"a/P/x.json": b"1", "a/P/tools/t.py": b"2"}
    assert (tmp_path / "a" / "P").stat().st_mode & 0o777 == 0o755


def test_create_refuses_what_exists(tmp_path):
    (tmp_path / "P").mkdir()
    with pytest.raises(PackageError, match="already exists"):
        create_folder(tmp_path / "P", {"x": b""})


@pytest.mark.parametrize("method", ["write_bytes", "rename", "chmod"])
def test_failed_create_leaves_nothing(tmp_path, monkeypatch, method):
    failing(monkeypatch, method, when=lambda _: True)
    with pytest.raises(PackageError, match="no space left on device; nothing was changed"):
        create_folder(tmp_path / "P", {"x": b"1"})
    assert list(tmp_path.iterdir()) == []


def test_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(PackageError, match="cannot be written"):
        create_folder(tmp_path / "file" / "P", {"x": b"1"})


def test_replace_folder(tmp_path):
    create_folder(tmp_path / "P", {"old": b"1", "both": b"1"})
    replace_folder(tmp_path / "P", {"new": b"2", "both": b"2"})
    assert tree(tmp_path) == {"P/new": b"2", "P/both": b"2"}


@pytest.mark.parametrize("victim", ["P", ".P-"])
def test_failed_replace_keeps_the_old_folder(tmp_path, monkeypatch, victim):
    create_folder(tmp_path / "P", {"old": b"1"})
    moved = []

    def first_time(path):
        hit = path.name.startswith(victim) and not path.name.endswith(".former") and not moved
        if hit:
            moved.append(path)
        return hit

    failing(monkeypatch, "rename", when=first_time)
    with pytest.raises(PackageError, match="nothing was changed"):
        replace_folder(tmp_path / "P", {"new": b"2"})
    assert tree(tmp_path) == {"P/old": b"1"}


def test_replace_files_keeps_the_others_and_the_mode(tmp_path):
    create_folder(tmp_path / "P", {"a": b"1", "b": b"1"})
    (tmp_path / "P" / "a").chmod(0o600)
    replace_files(tmp_path / "P", {"a": b"2", "sub/c": b"3"})
    assert tree(tmp_path) == {"P/a": b"2", "P/b": b"1", "P/sub/c": b"3"}
    assert (tmp_path / "P" / "a").stat().st_mode & 0o777 == 0o600


def test_nothing_is_replaced_before_everything_is_staged(tmp_path, monkeypatch):
    create_folder(tmp_path / "P", {"a": b"1", "b": b"1"})
    failing(monkeypatch, "chmod", when=lambda path: path.name.startswith(".b-"))
    with pytest.raises(PackageError):
        replace_files(tmp_path / "P", {"a": b"2", "b": b"2"})
    assert tree(tmp_path) == {"P/a": b"1", "P/b": b"1"}


def test_replaced_files_are_restored_after_a_failure(tmp_path, monkeypatch):
    create_folder(tmp_path / "P", {"a": b"1", "c": b"1"})
    (tmp_path / "P" / "a").chmod(0o600)
    failing(monkeypatch, "replace", when=lambda path: path.name.startswith(".c-"))
    with pytest.raises(PackageError, match=r"/c cannot be written: .*; nothing was changed$"):
        replace_files(tmp_path / "P", {"a": b"2", "new/deep/b": b"2", "c": b"2"})
    assert tree(tmp_path) == {"P/a": b"1", "P/c": b"1"}
    assert (tmp_path / "P" / "a").stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "P" / "new").exists()


def test_a_failure_that_cannot_be_undone_is_reported(tmp_path, monkeypatch):
    create_folder(tmp_path / "P", {"a": b"1", "c": b"1"})
    failing(monkeypatch, "replace", when=lambda path: path.name.startswith(".c-"))
    failing(monkeypatch, "unlink", when=lambda path: path.name == "b")
    with pytest.raises(PackageError, match=r"are new and could not be put back: \S+/new/b$"):
        replace_files(tmp_path / "P", {"a": b"2", "new/b": b"2", "c": b"2"})
    assert tree(tmp_path) == {"P/a": b"1", "P/c": b"1", "P/new/b": b"2"}


def test_an_interruption_is_undone_too(tmp_path, monkeypatch):
    create_folder(tmp_path / "P", {"a": b"1", "b": b"1"})
    real = type_of_path().replace

    def interrupt(self, target):
        if self.name.startswith(".b-"):
            raise KeyboardInterrupt
        return real(self, target)

    monkeypatch.setattr("pathlib.Path.replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        replace_files(tmp_path / "P", {"a": b"2", "b": b"2"})
    assert tree(tmp_path) == {"P/a": b"1", "P/b": b"1"}


def test_former_content_that_cannot_be_put_back_is_kept_and_named(tmp_path, monkeypatch):
    create_folder(tmp_path / "P", {"a": b"1", "b": b"1"})
    met = []

    def later(path):
        met.append(path)
        return len(met) > 1

    failing(monkeypatch, "replace", when=later)
    with pytest.raises(PackageError, match=r"/P/a \(as it was: \S+/P/\.a-\w+\)$"):
        replace_files(tmp_path / "P", {"a": b"2", "b": b"2"})
    assert sorted(tree(tmp_path).values()) == [b"1", b"1", b"2"]
