"""From what a person names to the packages meant: a path, a file in a package, or a name."""

from pathlib import Path
from shlex import quote

from weft.cli.failure import CommandFailed, Exit, Failure, not_found, usage
from weft.ids import nearest
from weft.packages.workspace import (
    EVERYWHERE,
    find_packages,
    is_package,
    shipped_folder,
    unchecked_packages,
)


def locate(name: str, workspace: Path) -> Path:
    """Return the folder a person names by its path, by a file in it, or by a package's name."""
    if not name.strip():
        raise usage("the name is empty", "name a package or a folder; . is the current one")
    path = Path(name)
    if path.is_dir():
        return path
    if path.exists():
        return _package_around(path)
    known = _packages(workspace)
    if name in known:
        return known[name]
    if name in EVERYWHERE:
        return shipped_folder() / name
    meant = nearest(name, known)
    hint = f"did you mean {meant}?" if meant else _what_there_is(known)
    if Path(name).name != name:
        raise not_found(f"{name} does not exist", hint)
    raise not_found(f'there is no package "{name}" in {_shown(workspace)}', hint)


def locate_package(name: str, workspace: Path) -> Path:
    """Return the folder of the one package a person names."""
    folder = locate(name, workspace)
    if is_package(folder):
        return folder
    inside = [package.name for package in find_packages(folder)]
    hint = f"name one of those in it: {', '.join(inside)}" if inside else _what_there_is({})
    raise not_found(f"{_shown(folder)} is not a package", hint)


def locate_packages(names: tuple[str, ...], workspace: Path) -> list[Path]:
    """Return the folders of all packages at the places a person names, or of the workspace."""
    return [
        package for place in named_folders(names, workspace) for package in find_packages(place)
    ]


def named_folders(names: tuple[str, ...], workspace: Path) -> list[Path]:
    """Return the folders a person names, or the workspace; each must hold a package at least."""
    named = [locate(name, workspace) for name in names] or [workspace]
    unique = list({place.resolve(): place for place in named}.values())
    for place in unique:
        if not find_packages(place):
            raise _nothing_in(place)
    return unique


def how_to_start(workspace: Path) -> str:
    """Name the command that starts a first run, or that makes something to be run."""
    names = [folder.name for folder in find_packages(workspace)]
    if names:
        return f"start one: weft run {quote(names[0])} hello"
    return "make a workspace with examples: weft init my-workspace"


def _nothing_in(place: Path) -> CommandFailed:
    hint = (
        "make one: weft new Example --pattern 1",
        "or name the folder with your packages: weft --workspace DIR",
    )
    fact = f"there is no package in {_shown(place)}"
    return CommandFailed(
        Failure(Exit.NOT_FOUND, fact, hint=hint, findings=tuple(unchecked_packages(place)))
    )


def _package_around(file: Path) -> Path:
    """Find the package a file belongs to: editors and commit hooks name files."""
    for folder in file.absolute().parents:
        if is_package(folder):
            here = Path.cwd()
            return folder.relative_to(here) if folder.is_relative_to(here) else folder
    hint = (
        f"install it: weft import {quote(str(file))}"
        if file.suffix == ".zip"
        else "name a package folder"
    )
    raise usage(f"{file} is a file that belongs to no package", hint)


def _packages(workspace: Path) -> dict[str, Path]:
    return {folder.name: folder for folder in find_packages(workspace)}


def _what_there_is(known: dict[str, Path]) -> str:
    if known:
        return f"available: {', '.join(known)}"
    return "make a package: weft new Example --pattern 1"


def _shown(folder: Path) -> str:
    return str(folder) if folder.parts else "the current folder"
