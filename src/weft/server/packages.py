"""The packages of a server's workspace: found for a tenant, checked, installed and changed."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeAlias

from weft.app.folders import JOURNAL, make_folder
from weft.app.installation import (
    PluginTriggers,
    is_installed,
    profile_of,
    suppressed_sources,
)
from weft.app.models import known_providers
from weft.app.workflows import FolderStamp, folder_stamp
from weft.check.subject import Profile
from weft.errors import CheckFailed, ConflictError, NotFoundError, PackageError, UsageError
from weft.findings import Finding, is_error
from weft.ids import name_error, nearest
from weft.packages.archive.exporting import (
    MANIFEST,
    find_clash,
    make_manifest,
    manifest_bytes,
    pack_files,
)
from weft.packages.archive.importing import Import, compare, finding_at, import_package, unpack
from weft.packages.archive.staging import replace_files, staged_folder
from weft.packages.edit.fixes import fix_package
from weft.packages.folder import MAX_FILES, read_files
from weft.packages.reader import Package, read_package
from weft.packages.review import examine_package
from weft.packages.text.documents import MAX_BYTES
from weft.packages.workspace import (
    APPS,
    EVERYWHERE,
    PACKAGES,
    has_tenant_name,
    packages_of,
    shipped_folder,
)
from weft.ports.clock import Clock
from weft.ports.records import Record, Records
from weft.runtime.workflow import pack
from weft.server.package_changes import Change, PackageFile, PackagePlace, Reviewed, Version
from weft.server.records import SERVER, RecordLog

#: How many former versions of a package are kept.
KEPT: Final = 20

#: The folder of former versions, and the part of it for packages of all tenants.
_VERSIONS: Final = "packages"
_SHARED: Final = "_shared"

#: Changes a copy of a package, whose files are given; returns what it has fixed, in words.
_Rewrite: TypeAlias = Callable[[Path, Mapping[str, bytes]], tuple[str, ...]]

#: The name of an uploaded file in messages.
_UPLOAD: Final = Path("package.zip")


class Packages:
    """Reads and changes the packages of a workspace. A change is written completely or not at all.

    Code of a package is never imported here.
    """

    def __init__(
        self, workspace: Path, settings: Mapping[str, str], records: Records, clock: Clock
    ) -> None:
        self._workspace = workspace
        self._profile: Profile = profile_of(settings)
        self._suppressed = suppressed_sources(settings)
        self._kinds = PluginTriggers()
        self._log = RecordLog(records)
        self._clock = clock
        self._reviewed: dict[Path, tuple[FolderStamp, Reviewed]] = {}
        self._changing = asyncio.Lock()

    # -- finding

    def all_of(self, app: str) -> dict[str, PackagePlace]:
        """Return the packages that a tenant can run, by name: its own before those of all."""
        found = {
            name: PackagePlace(name, shipped_folder() / name, SERVER, is_shipped=True)
            for name in EVERYWHERE
        }
        for name, folder in packages_of(self._workspace, app).items():
            is_own = folder.is_relative_to(self._workspace / APPS)
            found[name] = PackagePlace(name, folder, app if is_own else SERVER)
        return found

    def place(self, app: str, name: str, *, owner: str | None = None) -> PackagePlace:
        """Return the package that a tenant knows by a name; `owner`: only if it is that one's.

        Raises NotFoundError.
        """
        # Those of all tenants: no tenant has an empty name.
        known = self.all_of(app if owner is None else owner)
        found = known.get(name)
        if found is None or owner not in (None, found.owner):
            near = nearest(name, known)
            raise NotFoundError(
                f"there is no workflow {name}", hint=f"did you mean {near}?" if near else None
            )
        return found

    # -- checking

    def reviewed(self, place: PackagePlace) -> Reviewed:
        """Return a package with its findings; it is read again only if it has changed."""
        stamp = folder_stamp(place.folder)
        known = self._reviewed.get(place.folder)
        if known is None or known[0] != stamp:
            package = read_package(place.folder)
            found = self._review(package, place.folder)
            known = self._reviewed[place.folder] = (
                stamp,
                Reviewed(package.spec, package.digest, _named(found, place.folder, place.name)),
            )
        return known[1]

    def _review(self, package: Package, home: Path) -> tuple[Finding, ...]:
        return examine_package(
            package,
            profile=self._profile,
            kinds=self._kinds,
            suppressed=self._suppressed,
            is_installed=is_installed,
            model_providers=known_providers(),
            home=home,
        ).findings

    # -- files

    def files(self, place: PackagePlace) -> list[PackageFile]:
        """Return the files of a package."""
        return [
            PackageFile(name, len(raw), sha256(raw).hexdigest())
            for name, raw in _files(place.folder, place.name).items()
        ]

    def file(self, place: PackagePlace, path: str) -> tuple[PackageFile, bytes]:
        """Return a file and its content; raises NotFoundError."""
        raw = _files(place.folder, place.name).get(path)
        if raw is None:
            raise NotFoundError(f"{place.name} has no file {path}")
        return PackageFile(path, len(raw), sha256(raw).hexdigest()), raw

    def packed(self, place: PackagePlace) -> bytes:
        """Return a package as runs keep it: its spec, and its code by path."""
        package = read_package(place.folder)
        return pack(package.spec, package.code)

    def zipped(self, place: PackagePlace) -> bytes:
        """Return a package as a zip file that can be installed; raises CheckFailed for errors."""
        reviewed, name = self.reviewed(place), place.name
        # Features unsupported here may be supported by the server that installs it.
        errors = tuple(
            finding
            for finding in reviewed.findings
            if is_error(finding) and not finding.code.startswith("LINK")
        )
        if errors:
            raise CheckFailed(f"{name} is not exported: it has errors", errors)
        files = _files(place.folder, name)
        return pack_files(make_manifest(name, reviewed.digest, files), files)

    def review_files(
        self, owner: str, name: str, files: Mapping[str, bytes]
    ) -> tuple[Finding, ...]:
        """Return the findings of a package that is not installed."""
        home = self.home(owner) / PACKAGES / name
        with staged_folder(files, name) as staged:
            return _named(self._review(read_package(staged), home), staged, name)

    async def write_file(
        self,
        place: PackagePlace,
        path: str,
        content: str,
        digest: str | None,
        user: str,
        *,
        dry_run: bool,
        force: bool,
    ) -> Change:
        """Write a file of a package whose present content has a digest; None: there is none yet.

        Raises ConflictError if it has another one, and CheckFailed if the package would then have
        errors and had none, unless `force`: starts then use the last good version.
        """
        raw = content.encode()

        def rewrite(staged: Path, files: Mapping[str, bytes]) -> tuple[str, ...]:
            now = sha256(files[path]).hexdigest() if path in files else None
            if now != digest:
                fact = "has changed since" if now and digest else _OTHER_CONTENT[now is None]
                raise ConflictError(f"{path} {fact}", hint="read it again, and repeat the edit")
            _require_name(path, files, raw)
            target = staged / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(raw)
            return ()

        return await self._change(place, user, "edited", rewrite, dry_run=dry_run, force=force)

    async def fix(
        self, place: PackagePlace, codes: tuple[str, ...], user: str, *, dry_run: bool
    ) -> Change:
        """Apply the safe fixes of a package for findings with some codes; without codes, all."""

        def keeps(finding: Finding) -> bool:
            return not codes or finding.code.startswith(codes)

        def rewrite(staged: Path, _files: Mapping[str, bytes]) -> tuple[str, ...]:
            applied = fix_package(
                staged, lambda package: self._review(package, place.folder), keeps
            )
            return tuple(f"{Path(file).name}: {fix.title}" for file, fix in applied)

        return await self._change(place, user, "fixed", rewrite, dry_run=dry_run, force=True)

    async def _change(
        self,
        place: PackagePlace,
        user: str,
        action: str,
        rewrite: _Rewrite,
        *,
        dry_run: bool,
        force: bool,
    ) -> Change:
        async with self._changing:
            former, change = await asyncio.to_thread(
                self._rewrite, place, rewrite, dry_run=dry_run, force=force
            )
            if change.written:
                await self._note(place, former, user, action)
            return change

    def _rewrite(
        self,
        place: PackagePlace,
        rewrite: _Rewrite,
        *,
        dry_run: bool,
        force: bool,
    ) -> tuple[Version, Change]:
        """Change a copy of a package, check it, and write what is different."""
        present, name = _files(place.folder, place.name), place.name
        before = read_package(place.folder)
        with staged_folder(present, name) as staged:
            fixed = rewrite(staged, present)
            files, package = read_files(staged).files, read_package(staged)
            findings = _named(self._review(package, place.folder), staged, name)
        comparison = compare(present, files)
        is_written = not (dry_run or comparison.same)
        errors = tuple(finding for finding in findings if is_error(finding))
        if is_written and errors and not force and not self.reviewed(place).errors:
            raise CheckFailed(f"{name} would have errors; nothing was changed", errors)
        former = _version(name, before.digest, present)
        if is_written:
            self._keep(place, former, present)
            new = (*comparison.added, *comparison.changed)
            replace_files(place.folder, {path: files[path] for path in new})
        done = Import(
            name=name,
            folder=place.folder,
            created=False,
            added=comparison.added,
            changed=comparison.changed,
            removed=comparison.removed,
            diff=comparison.diff,
            old_digest=before.digest,
            new_digest=package.digest,
            findings=findings,
        )
        return former, Change(done, is_written, fixed)

    # -- installing

    def home(self, owner: str) -> Path:
        """Return the workspace of a tenant's own packages, or of those of all tenants.

        Raises UsageError if a tenant cannot have a folder.
        """
        if owner == SERVER:
            return self._workspace
        if not has_tenant_name(owner):
            raise UsageError(
                f"the tenant {owner} cannot have packages of its own",
                hint="names of such tenants have small letters, digits and hyphens only",
            )
        return self._workspace / APPS / owner

    async def install(
        self, owner: str, content: bytes, user: str, *, dry_run: bool, force: bool
    ) -> Change:
        """Install or update a package from a zip file that `weft export` writes.

        Raises PackageError for one with errors, and ConflictError if files that were changed since
        the last import would be replaced, unless `force`.
        """
        async with self._changing:
            return await self._install(
                owner, content, user, "installed", dry_run=dry_run, force=force
            )

    async def roll_back(
        self, place: PackagePlace, version: str | None, user: str, *, dry_run: bool
    ) -> Change:
        """Bring back a former version of a package; None: the newest one that differs.

        Raises NotFoundError if it is not kept.
        """
        async with self._changing:
            file = self._folder(place) / f"{await self._former(place, version)}.zip"
            content = await asyncio.to_thread(file.read_bytes)
            return await self._install(
                place.owner, content, user, "rolled back", dry_run=dry_run, force=True
            )

    async def _former(self, place: PackagePlace, version: str | None) -> str:
        """Return the version to go back to; raises NotFoundError."""
        kept, present = await asyncio.to_thread(self._kept_and_present, place)
        if version in kept:
            return version
        if version is not None:
            raise NotFoundError(f"{place.name} has no version {version} that is kept")
        for record in await self._log.page(place.owner, _log_name(place.name), limit=200):
            found = str(record.value["version"])
            if found in kept and found != present:
                return found
        raise NotFoundError(f"{place.name} has no earlier version")

    async def _install(
        self, owner: str, content: bytes, user: str, action: str, *, dry_run: bool, force: bool
    ) -> Change:
        former, done = await asyncio.to_thread(
            self._import, owner, content, dry_run=dry_run, force=force
        )
        if done.lost and not force and not dry_run:
            raise ConflictError(
                f"{done.name} has files that no import has written; nothing was written: "
                + ", ".join(done.lost),
                hint="replace them with ?force=true; the present version is kept",
            )
        is_written = not (dry_run or done.unchanged)
        if is_written:
            place = PackagePlace(done.name, done.folder, owner)
            await self._note(place, former, user, action)
        findings = _named(done.findings, done.folder, done.name)
        return Change(replace(done, findings=findings), is_written)

    def _import(
        self, owner: str, content: bytes, *, dry_run: bool, force: bool
    ) -> tuple[Version | None, Import]:
        """Import a package; the version that it replaces is kept."""
        home = self.home(owner)
        name = unpack(_UPLOAD, content).manifest.name
        place = PackagePlace(name, home / PACKAGES / name, owner)
        former = None
        if place.folder.is_dir() and not dry_run:
            present = _files(place.folder, name)
            former = _version(name, read_package(place.folder).digest, present)
            self._keep(place, former, present)
        done = import_package(
            _UPLOAD,
            home,
            content=content,
            dry_run=dry_run,
            force=force,
            keep_backup=False,
            reviewer=self._review,
        )
        return former, done

    # -- versions

    async def versions(
        self, place: PackagePlace, *, cursor: str, limit: int
    ) -> tuple[list[Record], frozenset[str], str]:
        """Return what changed a package, newest first; the versions kept, and the present one."""
        page = await self._log.page(place.owner, _log_name(place.name), cursor=cursor, limit=limit)
        return page, *await asyncio.to_thread(self._kept_and_present, place)

    def _kept_and_present(self, place: PackagePlace) -> tuple[frozenset[str], str]:
        kept = frozenset(file.stem for file in self._folder(place).glob("*.zip"))
        return kept, self._present(place).version

    def _present(self, place: PackagePlace) -> Version:
        digest = read_package(place.folder).digest
        return _version(place.name, digest, _files(place.folder, place.name))

    def _keep(self, place: PackagePlace, version: Version, files: Mapping[str, bytes]) -> None:
        """Keep a version as a zip file; the oldest ones are removed."""
        folder = self._folder(place)
        make_folder(self._workspace / JOURNAL.parent, "packages")
        file = folder / f"{version.version}.zip"
        if file.exists():
            file.touch()
            return
        manifest = make_manifest(place.name, version.digest, files)
        replace_files(folder, {file.name: pack_files(manifest, files)})
        oldest_first = sorted(folder.glob("*.zip"), key=lambda file: file.stat().st_mtime_ns)
        for file in oldest_first[:-KEPT]:
            file.unlink()

    def _folder(self, place: PackagePlace) -> Path:
        owner = place.owner or _SHARED
        return self._workspace / JOURNAL.parent / _VERSIONS / owner / place.name

    async def _note(
        self, place: PackagePlace, former: Version | None, user: str, action: str
    ) -> None:
        """Write down what changed a package; before, a version that came another way."""
        log = _log_name(place.name)
        if former is not None:
            newest = await self._log.page(place.owner, log, limit=1)
            if not newest or newest[0].value["version"] != former.version:
                await self._add(place.owner, log, former, "", "found")
        present = await asyncio.to_thread(self._present, place)
        await self._add(place.owner, log, present, user, action)

    async def _add(self, owner: str, log: str, version: Version, user: str, action: str) -> None:
        entry = {**version._asdict(), "user": user, "action": action}
        # "found" is written first, at the same time: the ids keep the order.
        order = 0 if action == "found" else 1
        await self._log.add(owner, log, self._clock.now(), f"{order}{version.version[:16]}", entry)


#: Why a file is not as expected, by whether there is none.
_OTHER_CONTENT: Final = {True: "does not exist any more", False: "exists already"}


def _log_name(name: str) -> str:
    return f"package:{name}"


def _files(folder: Path, name: str) -> dict[str, bytes]:
    """Return the files of a package; raises PackageError if they cannot all be read."""
    content = read_files(folder)
    if content.findings:
        findings = _named(content.findings, folder, name)
        raise PackageError(f"the files of {name} cannot be read", findings)
    return content.files


def _version(name: str, digest: str, files: Mapping[str, bytes]) -> Version:
    manifest = manifest_bytes(make_manifest(name, digest, files))
    return Version(sha256(manifest).hexdigest(), digest)


def _named(findings: tuple[Finding, ...], folder: Path, name: str) -> tuple[Finding, ...]:
    """Return findings whose places begin with the name of the package, not with its folder."""
    return tuple(finding_at(finding, folder, Path(name)) for finding in findings)


def _require_name(path: str, files: Mapping[str, bytes], raw: bytes) -> None:
    """Raise UsageError for a file that a package cannot have."""
    error = name_error(path)
    if error:
        raise UsageError(f"{path!r} {error}")
    clash = find_clash([*files, *({path} - files.keys()), MANIFEST])
    if clash:
        raise UsageError(f"{clash[0]} and {clash[1]} would be the same file, or one in the other")
    if len(raw) > MAX_BYTES:
        raise UsageError(f"{path} is larger than {MAX_BYTES // 1024**2} MiB")
    if path not in files and len(files) >= MAX_FILES:
        raise UsageError(f"a package has at most {MAX_FILES} files")
