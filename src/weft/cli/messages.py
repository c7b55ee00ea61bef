"""What a person says on the command line, before a run hears it."""

from weft.cli.failure import usage


def read_message(text: str, *hint: str) -> str:
    """Return a message; `hint` is what to do about an empty one."""
    if not text.strip():
        raise usage("the message is empty", *hint)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        # So Python marks bytes of a command line that the encoding of the terminal does not have.
        raise usage(
            "the message is not valid Unicode text", "let Python read UTF-8: export PYTHONUTF8=1"
        ) from error
    return text
