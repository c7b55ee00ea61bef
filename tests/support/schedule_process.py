"""A server in a process of its own whose clock is moved from outside.

Each line on stdin is a number of seconds that pass; the address is printed when it is ready.
"""

import asyncio
import os
import sys
from pathlib import Path

from weft.server.serve import open_server
from weft.server.settings import ServerSettings
from weft.testing.clock import ManualClock


async def main(workspace: Path, now: int) -> None:
    clock = ManualClock(now)
    environment = {"PATH": os.environ["PATH"], "WEFT_MODEL": "sample"}
    settings = ServerSettings(port=0)
    async with open_server(workspace, settings, environment, clock=clock) as opened:
        print(opened.url, flush=True)  # noqa: T201 - read by the test
        while line := await asyncio.to_thread(sys.stdin.readline):
            await clock.advance(float(line))
            print("passed", flush=True)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
