"""A tool server by hand, as of 2025: starts at once, and misbehaves in ways a library would not.

What it does at its start is said by its arguments; every tool is known by its name.
"""

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

CANCELLED: list[Any] = []


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(said: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}]}


def call(name: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
    """Return a result; None if there will never be one."""
    match name:
        case "pid":
            return text(str(os.getpid()))
        case "hang":
            return None
        case "cancelled":
            return text(json.dumps(len(CANCELLED)))
        case "chatter":
            sys.stdout.write(f"\n{arguments['words']}\n" * arguments["times"])
            return text("said")
        case "spawn":
            return text(str(subprocess.Popen(["sleep", "60"]).pid))
        case "abandon":
            sys.stderr.write(str(subprocess.Popen(["sleep", "60"], stderr=subprocess.DEVNULL).pid))
            sys.stderr.flush()
            os._exit(4)
        case "nonsense":
            return {"content": "no list"}
        case _:
            return {**text(f"no tool {name}"), "isError": True}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            about = {"name": "old", "version": "1"}
            version = params["protocolVersion"]
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            more = {"nextCursor": "again"} if "--endless" in sys.argv else {}
            names = ["pid", "hang"] if "--hang" in sys.argv else ["pid"]
            return {
                "tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names],
                **more,
            }
        case "tools/call":
            return call(params["name"], params.get("arguments") or {})
        case _:
            raise LookupError(method)


def serve() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            CANCELLED.extend([1] if message["method"] == "notifications/cancelled" else [])
            continue
        try:
            result = answer(message["method"], message.get("params", {}))
        except LookupError:
            say({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
            continue
        if result is not None:
            say({"id": message["id"], "result": result})


if __name__ == "__main__":
    if "--stubborn" in sys.argv:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    serve()
    if "--stubborn" in sys.argv:
        time.sleep(60)
