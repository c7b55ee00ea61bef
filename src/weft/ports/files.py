"""Files: texts that lie beside a package, for `file` variables."""

from typing import Protocol


class Files(Protocol):
    """Reads files of a package or its workspace, and no others."""

    async def read(self, workflow: str, path: str) -> str:
        """Return the text of a file, looked for in the package first, then in the workspace.

        Raises PortError if it is not there, is no text, lies outside or may hold secrets.
        """
        ...
