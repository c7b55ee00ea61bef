"""Writing files so that nobody ever sees half of them."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from weft.errors import PackageError


def create_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Make a new folder with these files, whole or not at all."""
    if folder.exists():
        raise PackageError(f"{folder} already exists")
    staged = _stage(folder, files)
    try:
        staged.rename(folder)
    except OSError as error:
        shutil.rmtree(staged, ignore_errors=True)
        raise _refused(folder, error) from error


def replace_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Give a folder exactly these files; if anything fails, it stays as it was."""
    staged = _stage(folder, files)
    former = staged.with_name(staged.name + ".former")
    try:
        folder.rename(former)
        try:
            staged.rename(folder)
        except OSError:
            former.rename(folder)
            raise
    except OSError as error:
        shutil.rmtree(staged, ignore_errors=True)
        raise _refused(folder, error) from error
    shutil.rmtree(former)


def replace_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Replace or add files in a folder; all are staged before the first is put in place."""
    staged: list[tuple[Path, Path]] = []
    try:
        for name, content in files.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            staged.append((_temporary(target, content), target))
        for temporary, target in staged:
            temporary.replace(target)
    except OSError as error:
        raise _refused(folder, error) from error
    finally:
        for temporary, _ in staged:
            with suppress(FileNotFoundError):
                temporary.unlink()


def _stage(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write the files to a folder beside the one they are meant for."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        staged = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise _refused(folder, error) from error
    try:
        staged.chmod(0o755)
        for name, content in files.items():
            target = staged / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    except OSError as error:
        shutil.rmtree(staged, ignore_errors=True)
        raise _refused(folder, error) from error
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


def _refused(folder: Path, error: OSError) -> PackageError:
    reason = (error.strerror or type(error).__name__).lower()
    return PackageError(f"{folder} cannot be written: {reason}; nothing was changed")
