"""From a path, a file or a name to the packages that a person means."""

from pathlib import Path
from shlex import quote
from typing import Annotated, TypeAlias

from cyclopts import Parameter

from weft.cli.completion import package_names
from weft.cli.failure import CommandFailed, Exit, Failure, not_found, usage
from weft.cli.scope import command_scope
from weft.ids import nearest
from weft.packages.workspace import (
    EVERYWHERE,
    find_packages,
    is_package,
    packages_of,
    shipped_folder,
    unchecked_packages,
)

#: A package by its name in the workspace, or by its folder.
PackageName: TypeAlias = Annotated[str, Parameter(completer=package_names)]


def locate(name: str, workspace: Path) -> Path:
    """Return the folder that a path, a file of a package or the name of a package means."""
    if not name.strip():
        raise usage("the name is empty", "name a package or a folder; . is the current one")
    path = Path(name)
    if path.is_dir():
        return path
    if path.exists():
        return _package_around(path)
    known = packages_of(workspace, command_scope().app)
    if name in known:
        return known[name]
    if name in EVERYWHERE:
        return shipped_folder() / name
    meant = nearest(name, known)
    hint = f"did you mean {meant}?" if meant else _available(known)
    if Path(name).name != name:
        raise not_found(f"{name} does not exist", hint)
    raise not_found(f'there is no package "{name}" in {_shown(workspace)}', hint)


def locate_package(name: str, workspace: Path) -> Path:
    """Return the folder of one package."""
    folder = locate(name, workspace)
    if is_package(folder):
        return folder
    inside = [package.name for package in find_packages(folder)]
    hint = f"name one of its packages: {', '.join(inside)}" if inside else _available({})
    raise not_found(f"{_shown(folder)} is not a package", hint)


def locate_packages(names: tuple[str, ...], workspace: Path) -> list[Path]:
    """Return the folders of all packages in the named folders, or in the workspace."""
    return [
        package for folder in named_folders(names, workspace) for package in find_packages(folder)
    ]


def named_folders(names: tuple[str, ...], workspace: Path) -> list[Path]:
    """Return the named folders, or the workspace; each must contain a package."""
    named = [locate(name, workspace) for name in names] or [workspace]
    unique = list({folder.resolve(): folder for folder in named}.values())
    for folder in unique:
        if not find_packages(folder):
            raise _no_packages(folder)
    return unique


def how_to_start(workspace: Path) -> str:
    """Return the command that starts a first run, or that creates a package to run."""
    names = list(packages_of(workspace, command_scope().app))
    if names:
        return f"start one: weft run {quote(names[0])} hello"
    return "create a workspace with examples: weft init my-workspace"


def _no_packages(folder: Path) -> CommandFailed:
    hint = (
        "create one: weft new Example --pattern 1",
        "or name the folder with your packages: weft --workspace DIR",
    )
    message = f"there is no package in {_shown(folder)}"
    findings = tuple(unchecked_packages(folder))
    return CommandFailed(Failure(Exit.NOT_FOUND, message, hint=hint, findings=findings))


def _package_around(file: Path) -> Path:
    """Return the package of a file: editors and commit hooks name files."""
    for folder in file.absolute().parents:
        if is_package(folder):
            here = Path.cwd()
            return folder.relative_to(here) if folder.is_relative_to(here) else folder
    install = f"install it: weft import {quote(str(file))}"
    raise usage(
        f"{file} is a file outside of any package",
        install if file.suffix == ".zip" else "name a package folder",
    )


def _available(known: dict[str, Path]) -> str:
    if known:
        return f"available: {', '.join(known)}"
    return "create a package: weft new Example --pattern 1"


def _shown(folder: Path) -> str:
    return str(folder) if folder.parts else "the current folder"
