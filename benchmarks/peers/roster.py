"""Who takes part in the comparison, and how one of them is measured in a process of its own."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from peers.job import CALLS_PER_JOB

FOLDER: Final = Path(__file__).resolve().parent
#: Start, warm-up and measurement of one peer together; a quiet machine needs at most half of it.
LIMIT_S: Final = 90

Kind = Literal["memory", "sqlite", "postgres"]


@dataclass(frozen=True, slots=True)
class Peer:
    """One contestant: a program in an environment, and what it keeps its runs in."""

    name: str
    program: str
    environment: str | None
    journal: Kind = "memory"
    framework: bool = False

    @property
    def python(self) -> Path:
        """The interpreter that runs it; Weft's is the one that runs this."""
        if self.environment is None:
            return Path(sys.executable)
        return FOLDER / ".venvs" / self.environment / "bin" / "python"

    @property
    def missing(self) -> str | None:
        """The reason why it cannot be measured yet, or empty."""
        if not (FOLDER / self.program).exists():
            return f"benchmarks/peers/{self.program} is not written"
        if not self.python.exists():
            return f"not installed: run benchmarks/peers/install {self.environment}"
        return None

    def jobs(self, concurrency: int) -> int:
        """Return enough jobs for a steady number: frameworks spend more time on fewer."""
        return max(50, concurrency) if self.framework else max(300, 4 * concurrency)


PEERS: Final = {
    peer.name: peer
    for peer in (
        Peer("floor", "floor_job.py", "floor"),
        Peer("weft", "weft_job.py", None),
        Peer("langgraph", "langgraph_job.py", "langgraph", framework=True),
        Peer("openai_agents", "openai_agents_job.py", "openai_agents", framework=True),
        Peer("pydantic_ai", "pydantic_ai_job.py", "pydantic_ai", framework=True),
        Peer("ag2", "ag2_job.py", "ag2", framework=True),
        Peer("floor_sqlite", "floor_job.py", "floor", "sqlite"),
        Peer("weft_sqlite", "weft_job.py", None, "sqlite"),
        Peer("weft_postgres", "weft_job.py", None, "postgres"),
        Peer("langgraph_sqlite", "langgraph_job.py", "langgraph", "sqlite", framework=True),
    )
}


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one process of a peer printed."""

    cpu_ms_per_call: float
    wall_s: float
    rss_mb: float
    calls: int


class Unmeasured(Exception):
    """A peer did not finish, or did not do the job as agreed; the message says which."""


def warmup(concurrency: int) -> int:
    """Return the jobs done before the clock starts."""
    return max(5, concurrency // 10)


def measure(peer: Peer, *, base_url: str, concurrency: int) -> Measurement:
    """Run one peer in a process of its own and return what it printed."""
    command = [
        *(str(peer.python), str(FOLDER / peer.program)),
        *("--base-url", base_url, "--concurrency", str(concurrency)),
        *("--jobs", str(peer.jobs(concurrency)), "--warmup", str(warmup(concurrency))),
        *("--journal", peer.journal),
    ]
    try:
        done = subprocess.run(
            command, env=environment(), capture_output=True, text=True, timeout=LIMIT_S, check=True
        )
    except subprocess.TimeoutExpired as trouble:
        raise Unmeasured(f"not finished after {LIMIT_S} s") from trouble
    except subprocess.CalledProcessError as trouble:
        last = trouble.stderr.strip().splitlines()[-1:] or ["no output"]
        raise Unmeasured(f"ended with exit code {trouble.returncode}: {last[0]}") from trouble
    return _read(peer, concurrency, done.stdout)


def _read(peer: Peer, concurrency: int, printed: str) -> Measurement:
    line = json.loads(printed)
    calls = peer.jobs(concurrency) * CALLS_PER_JOB
    if not line["ok"] or line["calls"] != calls:
        raise Unmeasured(f"did the job wrongly: {printed.strip()}")
    return Measurement(line["cpu_ms_per_call"], line["wall_s"], line["rss_mb"], calls)


def environment() -> dict[str, str]:
    """Return an environment without keys, proxies and switches, so that no peer calls outside."""
    kept = ("HOME", "LANG", "LC_ALL", "PATH", "TMPDIR")
    return {name: os.environ[name] for name in kept if name in os.environ}
