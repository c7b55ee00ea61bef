"""What a command of `weft` is, for the tables of them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Command:
    """One command: its name, what is written after it, what it does, and how it is used."""

    name: str
    usage: str
    help: str
    examples: tuple[str, ...]
    #: Its module in this folder and its function, unless both have its name.
    place: str = ""
    #: The commands it consists of; then it does nothing itself.
    parts: "tuple[Command, ...]" = ()

    @property
    def target(self) -> str:
        """Where the function stands that carries the command out."""
        return f"weft.cli.commands.{self.place or f'{self.name}:{self.name}'}"
