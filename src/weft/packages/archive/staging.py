"""Writing files and folders atomically: completely or not at all."""

import os
import shutil
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from weft.errors import PackageError


@contextmanager
def staged_folder(files: Mapping[str, bytes], name: str) -> Generator[Path]:
    """Write files to a temporary folder for the duration of the context."""
    with tempfile.TemporaryDirectory(prefix="weft-") as apart:
        folder = Path(apart) / name
        create_folder(folder, files)
        yield folder


def create_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Create a folder with these files, completely or not at all."""
    if folder.exists():
        raise PackageError(f"{folder} already exists")
    staged = _stage(folder, files)
    try:
        staged.rename(folder)
    except OSError as error:
        shutil.rmtree(staged, ignore_errors=True)
        raise _write_error(folder, error) from error


def replace_folder(folder: Path, files: Mapping[str, bytes], *, backup: Path | None = None) -> None:
    """Replace the files of a folder by these; if anything fails, the folder is unchanged.

    The former folder is kept as `backup`, a name beside it, if one is given.
    """
    staged = _stage(folder, files)
    former = backup or staged.with_name(staged.name + ".former")
    try:
        folder.rename(former)
        try:
            staged.rename(folder)
        except OSError:
            former.rename(folder)
            raise
    except OSError as error:
        shutil.rmtree(staged, ignore_errors=True)
        raise _write_error(folder, error) from error
    if backup is None:
        shutil.rmtree(former)


def replace_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Replace or add files in a folder; if anything fails, all stay as they were."""
    replace_all({folder / name: content for name, content in files.items()})


def replace_all(files: Mapping[Path, bytes]) -> None:
    """Replace or add files wherever they are; if anything fails, all stay as they were."""
    exchange = _Exchange()
    try:
        for target, content in files.items():
            exchange.stage(target, content)
        for target in files:
            exchange.put(target)
    except BaseException as error:
        kept = exchange.put_back()
        if isinstance(error, OSError):
            raise _write_error(exchange.at, error, kept) from error
        raise
    finally:
        exchange.clear()


@dataclass(slots=True)
class _Exchange:
    """New and former contents of files, all written beside them before the first is exchanged.

    Only renames remain, in either direction, which need no disk space.
    """

    at: Path = Path()
    new: dict[Path, Path] = field(default_factory=dict[Path, Path])
    former: dict[Path, Path] = field(default_factory=dict[Path, Path])
    folders: list[Path] = field(default_factory=list[Path])
    done: list[Path] = field(default_factory=list[Path])

    def stage(self, target: Path, content: bytes) -> None:
        self.at = target
        missing = [folder for folder in target.parents if not folder.exists()]
        target.parent.mkdir(parents=True, exist_ok=True)
        self.folders += reversed(missing)
        self.new[target] = _temporary(target, content)
        if target.exists():
            self.former[target] = _temporary(target, target.read_bytes())

    def put(self, target: Path) -> None:
        self.at = target
        self.new[target].replace(target)
        self.done.append(target)

    def put_back(self) -> list[str]:
        """Undo the exchange; return the files for which that failed, and their former contents."""
        failed: list[str] = []
        for target in reversed(self.done):
            try:
                if target in self.former:
                    self.former[target].replace(target)
                else:
                    target.unlink()
            except OSError:
                former = self.former.pop(target, None)
                failed.append(f"{target} (as it was: {former})" if former else str(target))
        self.clear()
        for folder in reversed(self.folders):
            if not any(folder.iterdir()):
                folder.rmdir()
        return failed

    def clear(self) -> None:
        for temporary in (*self.new.values(), *self.former.values()):
            with suppress(FileNotFoundError):
                temporary.unlink()


def _stage(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write the files to a temporary folder beside their target."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        staged = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise _write_error(folder, error) from error
    try:
        staged.chmod(0o755)
        for name, content in files.items():
            target = staged / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    except OSError as error:
        shutil.rmtree(staged, ignore_errors=True)
        raise _write_error(folder, error) from error
    return staged


def _temporary(target: Path, content: bytes) -> Path:
    handle, name = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        temporary.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o644)
    except OSError:
        temporary.unlink()
        raise
    return temporary


def _write_error(path: Path, error: OSError, kept: Sequence[str] = ()) -> PackageError:
    reason = (error.strerror or type(error).__name__).lower()
    outcome = "nothing was changed"
    if kept:
        outcome = f"these files are new and could not be put back: {', '.join(kept)}"
    return PackageError(f"{path} cannot be written: {reason}; {outcome}")
