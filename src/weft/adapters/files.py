"""Text files of a package, its tenant or its workspace; no other files, and no secrets."""

import asyncio
from pathlib import Path, PurePath, PurePosixPath
from typing import Final

from weft.check.secrets import is_secret_file
from weft.errors import PortError
from weft.findings import Finding
from weft.ids import name_error
from weft.packages.folder import read_start
from weft.packages.workspace import APPS, find_packages, tenant_folder, tenant_package

MOST_BYTES: Final = 1_000_000


class WorkspaceFiles:
    """Reads the files of the packages of a workspace."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace

    async def read(self, app: str, workflow: str, path: str) -> str:
        """Return the text of a file: of the package, else of the tenant, else of the workspace."""
        return await asyncio.to_thread(self._read, app, workflow, path)

    def _read(self, app: str, workflow: str, path: str) -> str:
        name = PurePosixPath(path).as_posix()
        _refuse_name(path, name)
        try:
            roots = self._roots(app, workflow)
            places = roots[:-1] if _is_of_tenants(PurePosixPath(name)) else roots
            found = next((file for root in places if (file := root / name).exists()), None)
            # The real path: any part of it may be a link.
            real = found and found.resolve(strict=True)
        except (OSError, RuntimeError) as error:  # a link to itself is a RuntimeError up to 3.12
            reason = f"cannot be looked for: {getattr(error, 'strerror', None) or error}"
            raise _file_error(path, reason, "check the folders and links it lies in") from error
        if real is None:
            fact = f"is neither in the package {workflow} nor in the workspace"
            raise _file_error(path, fact, "create it, or correct the path of the variable")
        home = next((root for root in roots if real.is_relative_to(root)), None)
        if home is None or (home == roots[-1] and _is_of_tenants(real.relative_to(home))):
            fact = "is a link that leads out of the package and the workspace"
            raise _file_error(path, fact, "copy its target to this place")
        _refuse_name(path, real.relative_to(home).as_posix())
        return _decode(path, read_start(real, home, MOST_BYTES))

    def _roots(self, app: str, workflow: str) -> list[Path]:
        """Return the folders that are searched, in this order; the last one is the workspace."""
        workspace = self._workspace.resolve(strict=True)
        own, home = tenant_package(workspace, app, workflow), tenant_folder(workspace, app)
        packages = [own.resolve()] if own else map(Path.resolve, find_packages(workspace))
        found = [package for package in packages if package.name == workflow]
        return [*found, *([home.resolve()] if home else ()), workspace]


def _is_of_tenants(file: PurePath) -> bool:
    """Whether a file of the workspace belongs to a tenant, also where case makes no difference."""
    return file.parts[0].lower() == APPS


def _refuse_name(path: str, name: str) -> None:
    """Refuse a name that leads outside or may hold secrets; `path` is the requested one."""
    fault = name_error(name)
    if fault:
        raise _file_error(path, fault, "name a plain file of the package or its workspace")
    if is_secret_file(name):
        fact = "may hold secrets, by its name"
        raise _file_error(path, fact, "use another name if it has none; secrets belong in settings")


def _decode(path: str, raw: bytes | Finding) -> str:
    if isinstance(raw, Finding):
        raise _file_error(path, f"cannot be used: {raw.message}", raw.hint[0])
    if len(raw) > MOST_BYTES:
        raise _file_error(
            path, f"is larger than {MOST_BYTES} bytes", "take a part of it, or a tool"
        )
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise _file_error(path, "is not UTF-8 text", "save it as UTF-8 text")
    return text


def _file_error(path: str, fact: str, remedy: str) -> PortError:
    return PortError(f"file {path!r} {fact}; {remedy}")
