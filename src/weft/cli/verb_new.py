"""weft new: a package from the template of a pattern."""

import re
from shlex import quote
from typing import Annotated
from unicodedata import combining, normalize

from cyclopts import Parameter

from weft.cli.candidates import patterns
from weft.cli.exits import Exit
from weft.cli.failure import conflict, usage
from weft.cli.machine_formats import document
from weft.cli.settings import PACKAGES
from weft.cli.streams import Streams
from weft.ids import AGENT_NAME
from weft.packages.archive.staging import create_folder
from weft.packages.shipped import template_files
from weft.spec.patterns import PATTERNS, Pattern, find_pattern, nearest_pattern


def new(
    name: Annotated[str, Parameter(help="The name of the package, such as CustomerSupport.")],
    /,
    *,
    pattern: Annotated[
        str,
        Parameter(
            help="The pattern to follow: 1 to 9, or its name; 1 if not given.", completer=patterns
        ),
    ] = "1",
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Make a package from the template of a pattern."""
    if not AGENT_NAME.match(name):
        raise usage(f'"{name}" cannot be the name of a package', *_better_name(name))
    chosen = _pattern(pattern)
    workspace = streams.settings.workspace
    folder = workspace / PACKAGES / name
    if folder.exists():
        raise conflict(f"{folder} already exists", "choose another name")
    files = template_files(chosen.name, name)
    create_folder(folder, files)
    made = [str(folder / file) for file in sorted(files)]
    if streams.settings.json:
        streams.result(document({"name": name, "pattern": chosen.name, "files": made}))
        return Exit.DONE
    streams.result("\n".join(f"made {file}" for file in made))
    streams.note(f"\n{name} follows pattern {chosen.id}, {chosen.title}: {chosen.summary}. Next:")
    for step in _next_steps(name, streams):
        streams.note(f"  {step}")
    return Exit.DONE


def _better_name(name: str) -> list[str]:
    # Without accents, which are characters of their own when letters are taken apart.
    letters = "".join(it for it in normalize("NFKD", name) if not combining(it))
    words = re.findall(r"[^\W_]+", letters)
    better = "".join(word[0].upper() + word[1:] for word in words)
    if AGENT_NAME.match(better):
        return [f"write it like this: weft new {better}"]
    return ["begin with a capital letter, then letters and digits only: weft new CustomerSupport"]


def _pattern(wanted: str) -> Pattern:
    found = find_pattern(wanted)
    if found:
        return found
    meant = nearest_pattern(wanted)
    hints = [f"did you mean {meant}?"] if meant else []
    known = ", ".join(f"{it.id} {it.name}" for it in PATTERNS)
    raise usage(f'there is no pattern "{wanted}"', *hints, f"choose one of: {known}")


def _next_steps(name: str, streams: Streams) -> list[str]:
    steps = [f"weft check {name}", f"weft chat {name}", f"weft diagram {name} --format ascii"]
    if not (streams.settings.workspace / "schemas").is_dir():
        schemas = streams.settings.workspace / "schemas"
        place = quote(str(schemas))
        steps.append(f"weft schema --write {place}      lets editors complete the files")
    return steps
