"""A workspace: a folder of packages, and of the packs that join them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Final

from weft.catalogue import CATALOGUE
from weft.errors import UsageError
from weft.findings import Finding, Place
from weft.ids import is_ignored_file, segment_error
from weft.packages.folder import listing_finding, read_bytes, read_folder, unreadable_finding
from weft.packages.layout import FILE_KINDS, SUFFIXES, likely_kind
from weft.packages.reader import DeclaredFile, open_document, read_package, read_part
from weft.packages.text import documents
from weft.packages.writer import file_texts
from weft.spec.patterns import PATTERNS, find_pattern
from weft.spec.workflow import Pack

#: The folders of a workspace in which its packages and its packs are.
PACKAGES: Final = "workflows"
PACKS: Final = "packs"
#: The folder of what belongs to one tenant: `apps/<app>/` is a workspace of its own, read before
#: the one around it.
APPS: Final = "apps"
#: Tenants that may have a folder. Any other name could mean the folder, or the environment
#: variable, of another tenant: file systems and variables do not tell all characters apart.
_TENANT: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}\Z")
_TELLING: Final = [
    kind.stem + suffix for kind in FILE_KINDS.values() if kind.required for suffix in SUFFIXES
]


@dataclass(frozen=True)
class PackFile:
    """One pack as read."""

    declared: DeclaredFile
    pack: Pack | None
    findings: tuple[Finding, ...]


def is_package(folder: Path) -> bool:
    """Return whether a folder is a package, that is, has one of the required files.

    In `workflows` any file that looks like one of a package is enough, and anywhere a folder one
    may not look into: counting it as a package lets the reader say what is wrong with it.
    """
    try:
        if any((folder / name).exists() for name in _TELLING):
            return True
        belongs = folder.absolute().parent.name == PACKAGES and folder.is_dir()
        return belongs and any(likely_kind(entry.name) for entry in folder.iterdir())
    except PermissionError:
        return True


def find_packages(path: Path) -> list[Path]:
    """Find the packages at a path: the folder itself, or those in it or in its `workflows`."""
    if not path.is_dir():
        fact = "is not a folder" if path.exists() else "does not exist"
        raise UsageError(f"{path} {fact}", hint="name a package folder or a workspace")
    if is_package(path):
        return [path]
    inner = path / PACKAGES
    entries = (inner if inner.is_dir() else path).iterdir()
    # Hidden folders and backups are passed over, as they are when a package is packed.
    return sorted(
        entry for entry in entries if not is_ignored_file(entry.name) and is_package(entry)
    )


def has_tenant_name(app: str) -> bool:
    """Whether a tenant may have a folder: small letters, digits and hyphens."""
    return _TENANT.match(app) is not None


def tenant_folder(workspace: Path, app: str) -> Path | None:
    """Return the folder of a tenant's own packages and files, or None if it has none."""
    folder = workspace / APPS / app if has_tenant_name(app) else None
    return folder if folder is not None and folder.is_dir() else None


def tenant_package(workspace: Path, app: str, name: str) -> Path | None:
    """Return the folder of a tenant's own package, or None if it has no such package."""
    if not has_tenant_name(app) or segment_error(name):
        return None
    folder = workspace / APPS / app / PACKAGES / name
    return folder if folder.is_dir() and is_package(folder) else None


def packages_of(workspace: Path, app: str) -> dict[str, Path]:
    """Return the packages that a tenant can run, by name: its own before those of all tenants."""
    folder = tenant_folder(workspace, app)
    own = find_packages(folder / PACKAGES) if folder and (folder / PACKAGES).is_dir() else []
    return {package.resolve().name: package for package in (*find_packages(workspace), *own)}


def read_packs(workspace: Path) -> list[PackFile]:
    """Read the packs of a workspace: the files in its folder `packs`."""
    folder = workspace / PACKS
    if not folder.is_dir():
        return []
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES)
    except PermissionError as error:
        return [_unreadable_pack(folder, listing_finding(folder, error))]
    return [_read_pack(path, folder) for path in files]


def _read_pack(path: Path, folder: Path) -> PackFile:
    raw = read_bytes(path, folder)
    if not isinstance(raw, bytes):
        return _unreadable_pack(path, raw)
    document = documents.read(str(path), raw)
    declared = open_document(path.name, document, "pack")
    if not document.ok:
        return PackFile(declared, None, document.findings)
    pack, errors = read_part(declared, Pack)
    return PackFile(declared, pack, (*document.findings, *errors))


def _unreadable_pack(path: Path, finding: Finding) -> PackFile:
    nothing = documents.read(str(path), b"{}")
    return PackFile(open_document(path.name, nothing, "pack"), None, (finding,))


def unchecked_packages(path: Path) -> Iterator[Finding]:
    """Report packages and package files that a check of the path does not include."""
    inner = path / PACKAGES
    if is_package(path):
        yield from _within_package(inner)
    elif inner.is_dir():
        yield from _misplaced_beside_workflows(path)
        yield from _misplaced_in_workflows(inner)
        yield from _misnamed_packs(path / PACKS)
    elif path.absolute().name == PACKAGES:
        yield from _misplaced_in_workflows(path)


def _within_package(inner: Path) -> Iterator[Finding]:
    if inner.is_dir() and find_packages(inner):
        fact = "holds packages, but the folder around it is a package itself"
        yield _not_checked(inner, fact, f"check them: weft check {quote(str(inner))}")


def _misplaced_beside_workflows(workspace: Path) -> Iterator[Finding]:
    """Report packages beside `workflows`."""
    try:
        entries = _entries(workspace)
    except PermissionError as error:
        yield listing_finding(workspace, error)
        return
    for entry in entries:
        if entry.name not in {PACKAGES, PACKS} and is_package(entry):
            yield _misplaced_finding(
                entry, f"lies beside {PACKAGES} and not in it", workspace / PACKAGES
            )


def _misplaced_in_workflows(home: Path) -> Iterator[Finding]:
    """Report entries of `workflows` that are not packages."""
    for entry in _entries(home):
        if is_package(entry):
            continue
        if entry.is_dir():
            for nested in (inner for inner in _entries(entry) if is_package(inner)):
                yield _misplaced_finding(nested, "lies too deep", home)
        elif not entry.exists():
            yield unreadable_finding(entry, "is a link that leads nowhere", "fix or remove it")
        elif likely_kind(entry.name):
            fact = "looks like a file of a package, but is in no package folder"
            yield _not_checked(entry, fact, f"move it into a folder of its own: {home / 'NAME'}")


def _misnamed_packs(folder: Path) -> Iterator[Finding]:
    """Report files among the packs with a misspelt ending."""
    try:
        entries = _entries(folder) if folder.is_dir() else []
    except PermissionError:
        return  # reading the packs reports it
    for entry in entries:
        ending = entry.suffix.lower()
        if ending in SUFFIXES and ending != entry.suffix:
            fact = "is not read as a pack, because of its ending"
            yield _not_checked(entry, fact, f"rename it to {entry.stem}{ending}")


def _entries(folder: Path) -> list[Path]:
    return sorted(entry for entry in folder.iterdir() if not is_ignored_file(entry.name))


def _misplaced_finding(package: Path, fact: str, home: Path) -> Finding:
    path = quote(str(package))
    return _not_checked(
        package,
        f"is a package, but {fact}",
        f"check it: weft check {path}",
        f"or move it: mv {path} {quote(str(home))}",
    )


def _not_checked(path: Path, fact: str, *hint: str) -> Finding:
    severity = CATALOGUE["PACK006"].severity
    message = f"{path.name} was not checked: it {fact}"
    # A folder has no lines.
    place = Place(str(path), 1, 1) if path.is_file() else Place(str(path))
    return Finding("PACK006", severity, message, place, hint=hint)


#: The packages a new workspace starts with: two conversations, a flow and a board.
EXAMPLES: Final = ("HelloWorld", "CustomerSupportRouter", "OrderProcessing", "NewsDesk")

#: Packages that every workspace has; a copy in the workspace takes precedence.
EVERYWHERE: Final = ("Generator",)


def shipped_folder() -> Path:
    """Return the folder of shipped packages: inside an installed Weft, or beside its sources."""
    home = Path(__file__).parents[1]
    installed = home / "workflows"
    return installed if installed.is_dir() else home.parents[1] / "workflows"


def example_files(name: str) -> dict[str, bytes]:
    contents = read_folder(shipped_folder() / name)
    return {**contents.declared, **contents.code, **contents.tests}


def template_files(pattern: str, name: str) -> dict[str, bytes]:
    """Return the files of a new package called `name` that follows a pattern."""
    found = find_pattern(pattern)
    if found is None:
        known = ", ".join(f"{one.id} {one.title}" for one in PATTERNS)
        raise UsageError(f'unknown pattern "{pattern}"', hint=f"choose one of: {known}")
    package = read_package(shipped_folder() / found.name)
    orchestrator = package.spec.orchestrator.model_copy(update={"workflow_name": name})
    spec = package.spec.model_copy(update={"orchestrator": orchestrator})
    texts = {file: text.encode() for file, text in file_texts(spec).items()}
    return {**texts, **package.code, **package.tests}
