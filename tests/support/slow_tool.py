"""A tool that takes as long as a test says."""

#: Notes when it begins and ends, and takes as long as a file says.
SLOW_GREET = '''
import time
from pathlib import Path


def greet(name: str, language: str = "English") -> str:
    """Greet somebody."""
    with Path("calls.txt").open("a") as calls:
        calls.write("begin\\n")
    time.sleep(float(Path("seconds.txt").read_text()))
    with Path("calls.txt").open("a") as calls:
        calls.write("end\\n")
    return f"Hello, {name}!"
'''
