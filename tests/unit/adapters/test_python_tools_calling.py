"""Calling tools, above all those that misbehave: each gives an outcome, and the next call works."""

import asyncio
import contextvars
import logging
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from support.tool_play import QUICK, Bench, context, play, tool_call, until, write
from weft.adapters.python_tools.calling import Limits
from weft.adapters.python_tools.threads import Threads
from weft.errors import RetryModel, ToolError, UsageError

ROOT = Path(__file__).parents[3]


@pytest.fixture
def bench(tmp_path):
    made = Bench(tmp_path)
    yield made
    made.loader.close()


@pytest.fixture
def hasty(tmp_path):
    """A bench on which a call may not take long."""
    made = Bench(tmp_path, QUICK)
    yield made
    made.loader.close()


def failure(bench, text, tool="f", **arguments) -> ToolError:
    """Call a tool that fails, and one that does not right after it."""
    tools = bench.load(f"{text}\ndef fine() -> str:\n    return 'fine'\n", tool, "fine")

    async def main():
        try:
            await tools.call(tool_call(tool, arguments))
        except ToolError as error:
            assert await tools.call(tool_call("fine")) == "fine"
            return error
        raise AssertionError("the tool gave a result")

    return asyncio.run(main())


def is_timeout(error: ToolError) -> bool:
    return isinstance(error.__cause__, TimeoutError)


@pytest.mark.parametrize(
    ("parameters", "given"),
    [
        ("a: int", {"a": 1}),
        ("a: int, b: int = 2, context_variables=None", {"a": 1, "b": 2}),
        ("a: int, **rest", {"a": 1, "rest": {"b": 2, "c": 3}}),
        ("", {}),
    ],
)
def test_a_reply_gives_a_tool_the_fields_it_names(bench, parameters, given):
    text = f"def f({parameters}):\n    seen = dict(locals())\n"
    tools = bench.load(f"{text}    seen.pop('context_variables', None)\n    return seen\n", "f")
    assert play(tools, "f", {"a": 1, "b": 2, "c": 3}, auto=True) == given


def test_a_model_may_not_name_what_a_tool_does_not_take(bench):
    tools = bench.load("def f(a: int): ...", "f")
    with pytest.raises(RetryModel, match="b is unknown"):
        play(tools, "f", {"a": 1, "b": 2})
    with pytest.raises(RetryModel, match="a is missing"):
        play(tools, "f", {"b": 2}, auto=True)


def test_invalid_arguments_are_reported_without_a_call(bench):
    text = """
from typing import Annotated
from pydantic import AfterValidator
def fail(value): raise LookupError(value)
def f(a: int): raise AssertionError("called")
def g(a: Annotated[int, AfterValidator(fail)]): ...
"""
    tools = bench.load(text, "f", "g")
    assert tools.validation_error("f", {"a": 1}) is None
    told = tools.validation_error("f", {"a": "x", "b": 2}) or ""
    assert told.startswith("The arguments of f are invalid. a should be a valid integer")
    assert tools.validation_error("nobody", {}) is None
    assert tools.validation_error("g", {"a": 1}) is None, (
        "the call itself says what its own code raises"
    )


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_function_is_called_and_gives_json(bench, kind):
    text = f"{kind} f(a: int, b: str = 'x') -> dict:\n    return {{'sum': (a, b)}}\n"
    tools = bench.load(text, "f")
    assert play(tools, "f", {"a": 1}) == {"sum": [1, "x"]}


def test_a_function_that_returns_something_to_await_is_awaited(hasty):
    text = """
        import asyncio
        async def later(a): return a * 2
        def f(a: int): return later(a)
        def g(): return asyncio.sleep(100)
    """
    tools = hasty.load(text, "f", "g")
    assert play(tools, "f", {"a": 4}) == 8
    with pytest.raises(ToolError, match=r"g took longer than 0\.5 seconds"):
        play(tools, "g")


async def test_blocking_functions_run_side_by_side_off_the_event_loop(bench):
    text = """
        import threading
        everybody = threading.Barrier(6)
        def f() -> str:
            everybody.wait(20)
            return threading.current_thread().name
        async def g() -> str:
            import asyncio
            while everybody.n_waiting < 5:
                await asyncio.sleep(0.005)
            everybody.wait(20)
            return "loop"
    """
    tools = bench.load(text, "f", "g")
    calls = [tools.call(tool_call(tool)) for tool in "fffffg"]
    assert (await asyncio.gather(*calls)) == ["weft-tool"] * 5 + ["loop"]


async def test_context_variables_of_the_caller_are_seen_by_the_tool(bench, monkeypatch):
    variable = contextvars.ContextVar("seen", default="no")
    # A place that both sides can reach.
    monkeypatch.setattr(sys.modules["support.tool_play"], "SEEN", variable, raising=False)
    tools = bench.load(
        "from support import tool_play\ndef f() -> str:\n    return tool_play.SEEN.get()\n", "f"
    )
    variable.set("yes")
    assert await tools.call(tool_call("f")) == "yes"


@pytest.mark.parametrize("kind", ["def", "async def"])
@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("raise ValueError('no stock')", "f failed: ValueError at tools/main.py:8: no stock"),
        ("raise KeyError", "f failed: KeyError at tools/main.py:8"),
        (
            "assert False, 'x' * 9999",
            f"f failed: AssertionError at tools/main.py:8: {'x' * 2000}",
        ),
        (
            "return f(*a) if 0 else (lambda g: g(g))(lambda g: g(g))",
            "f failed: RecursionError at tools/main.py:8: ",
        ),
        ("import sys; sys.exit(3)", "f tried to end the process, which a tool must not do"),
        ("raise Silent", "f failed: Silent at tools/main.py:8: its message cannot be read"),
        ("return float('nan')", "f returned a value of type float that is not JSON"),
        ("return {'a': object()}", "f returned a value of type dict that is not JSON: it holds"),
        ("return 'x' * 5_000_000", "f returned a value of type str that is too large: it has"),
        ("return (n for n in a)", "f returned a value of type generator that is not JSON"),
        ("return Tricky(a=1)", "f failed: RuntimeError at tools/main.py:5: not today"),
        ("raise ToolError('as it is')", "as it is"),
        (
            "raise ExceptionGroup('two', [ValueError(1)])",
            "f failed: ExceptionGroup at tools/main.py:8: two",
        ),
    ],
)
def test_a_tool_that_fails_says_how(bench, kind, body, told):
    text = f"""
from weft.errors import ToolError
class Silent(Exception):
    def __str__(self): raise TypeError
class Tricky(dict):
    def items(self): raise RuntimeError("not today")
a = []
{kind} f():
    {body}
"""
    assert str(failure(bench, text)).startswith(told)


POLICY = """
import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

def share(amount):
    return 1 / amount
"""


@pytest.mark.parametrize(
    "tool",
    [
        "def f(): return share(0)",
        "async def f(): return share(0)",
        "def f(): return later()\nasync def later(): return share(0)",
        "async def f(): return await asyncio.to_thread(share, 0)",
        "async def f(): return (await asyncio.gather(asyncio.to_thread(share, 0)))[0]",
        "def f():\n    with ThreadPoolExecutor() as pool: return pool.submit(share, 0).result()",
    ],
)
def test_a_failure_names_the_innermost_line_of_the_package(bench, tool):
    said = "f failed: ZeroDivisionError at tools/main.py:6: division by zero"
    assert str(failure(bench, POLICY + tool)) == said


def test_a_failure_inside_a_library_names_the_line_that_called_it(bench):
    said = "f failed: JSONDecodeError at tools/main.py:7: Expecting value"
    assert str(failure(bench, f"{POLICY}def f(): return json.loads('')")).startswith(said)


def test_a_failure_in_another_file_of_the_package_names_that_file(bench, tmp_path):
    write(tmp_path, {"shared/rates.py": "def rate():\n    raise LookupError('no rate')\n"})
    text = "from shared.rates import rate\ndef f():\n    return rate()"
    assert str(failure(bench, text)) == "f failed: LookupError at shared/rates.py:2: no rate"


def test_a_failure_that_no_line_of_the_package_took_part_in_names_none(bench):
    said = str(failure(bench, "from posixpath import basename as f", p=3))
    assert said.startswith("f failed: TypeError: ")


def test_stop_iteration_is_a_failure_like_others(bench):
    assert "StopIteration" in str(failure(bench, "def f():\n    next(iter([]))\n"))


def test_the_log_names_type_and_place_but_no_value(bench, caplog):
    caplog.set_level(logging.DEBUG)
    failure(bench, "def f(card: str):\n    raise ValueError(card)\n", card="4111-secret")
    assert "the tool f failed with ValueError" in caplog.text
    assert 'tools/main.py", line 2, in f' in caplog.text
    assert "4111" not in caplog.text


@pytest.mark.parametrize("kind", ["def", "async def"])
@pytest.mark.parametrize(
    ("signal", "said"),
    [
        ("Stop", "f failed: Stop at tools/main.py:4: now"),
        ("KeyboardInterrupt", "f tried to end the process"),
        ("asyncio.CancelledError", "f cancelled itself"),
        ("GeneratorExit", "f raised GeneratorExit"),
    ],
)
def test_base_exception_fails_only_the_call(bench, signal, said, kind):
    tools = bench.load(
        f"import asyncio\nclass Stop(BaseException): ...\n{kind} f():\n    raise {signal}('now')\n",
        "f",
    )
    with pytest.raises(ToolError, match=said):
        play(tools, "f")


def test_tool_that_cancels_itself_fails_and_the_run_continues(bench):
    text = """
import asyncio
async def f():
    asyncio.current_task().cancel()
    await asyncio.sleep(5)
"""
    assert str(failure(bench, text)) == "f cancelled itself and gave no result"


def test_an_async_tool_that_hangs_is_cancelled_and_may_clean_up(hasty):
    text = """
import asyncio
async def f(context_variables):
    try:
        await asyncio.sleep(100)
    finally:
        await asyncio.sleep(0.01)
        print("clean")
        raise ValueError("told to nobody")
"""
    error = failure(hasty, text)
    assert str(error) == "f took longer than 0.5 seconds and was abandoned"
    assert is_timeout(error)


def test_result_after_the_timeout_is_discarded(hasty):
    body = """
    time.sleep(0.8)
    return "done"
"""
    text = f"import time\nasync def f() -> str:{body}\ndef g() -> str:{body}"
    tools = hasty.load(text, "f", "g")
    for name in ("f", "g"):
        with pytest.raises(ToolError, match=rf"{name} took longer than 0\.5 seconds"):
            play(tools, name)


def test_an_async_tool_that_ignores_cancellation_is_broken_off(hasty, caplog):
    text = """
import asyncio
gone = []
async def f():
    try:
        while True:
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                pass
    finally:
        gone.append(1)
def fell() -> int:
    return len(gone)
"""
    tools = hasty.load(text, "f", "fell")

    async def main():
        with pytest.raises(ToolError, match="f took longer"):
            await tools.call(tool_call("f"))
        await asyncio.sleep(0.02)
        assert len(asyncio.all_tasks()) == 1
        return await tools.call(tool_call("fell"))

    began = time.monotonic()
    assert asyncio.run(main()) == 1
    assert time.monotonic() - began < 20
    assert "the tool f ignored its cancellation and was broken off" in caplog.text


def test_an_async_tool_that_ignores_everything_is_broken_off(hasty, monkeypatch):
    text = """
import asyncio
async def f():
    while True:
        try:
            await asyncio.sleep(100)
        except BaseException:
            pass
"""
    ignored = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    began = time.monotonic()
    assert is_timeout(failure(hasty, text))
    assert time.monotonic() - began < 20
    assert "ignored GeneratorExit" in str(ignored[0].exc_value)


def test_a_thread_that_hangs_is_left_behind_counted_and_replaced(tmp_path, caplog, monkeypatch):
    bench = Bench(tmp_path, QUICK, Threads(1, 2))
    gate = threading.Event()
    monkeypatch.setattr(sys.modules["support.tool_play"], "GATE", gate, raising=False)
    error = failure(bench, "from support import tool_play\ndef f():\n    tool_play.GATE.wait(30)\n")
    assert str(error) == "f took longer than 0.5 seconds and was abandoned"
    assert is_timeout(error)
    assert bench.loader.left_behind == 1
    assert "the tool f is left behind in its thread (threads left behind: 1)" in caplog.text
    gate.set()
    until(lambda: bench.loader.left_behind == 0)
    bench.loader.close()


async def test_a_call_that_finds_no_thread_says_so_and_never_begins(tmp_path):
    bench = Bench(tmp_path, QUICK, Threads(1, 0))
    text = """
from threading import Event
gate, begun = Event(), []
def f(): gate.wait(30)
def g(): begun.append(1)
async def begins() -> int:
    gate.set()
    return len(begun)
def last() -> int: return len(begun)
"""
    tools = bench.load(text, "f", "g", "begins", "last")
    with pytest.raises(ToolError, match=r"f took longer than 0\.5 seconds"):
        await tools.call(tool_call("f"))
    with pytest.raises(ToolError, match=r"g found no free thread within 0\.5 seconds") as late:
        await tools.call(tool_call("g"))
    assert is_timeout(late.value)
    await tools.call(tool_call("begins"))
    assert await tools.call(tool_call("last")) == 0
    bench.loader.close()


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_cancelling_a_call_is_never_swallowed(bench, kind):
    pause = "await asyncio.sleep(30)" if kind == "async def" else "gate.wait(30)"
    text = f"""
import asyncio, threading
gate, begun = threading.Event(), threading.Event()
{kind} f():
    begun.set()
    {pause}
async def has_begun() -> bool:
    return await asyncio.to_thread(begun.wait, 20)
async def open_gate():
    gate.set()
"""
    tools = bench.load(text, "f", "has_begun", "open_gate")

    async def main():
        call = asyncio.create_task(tools.call(tool_call("f")))
        assert await tools.call(tool_call("has_begun"))
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert len(asyncio.all_tasks()) == 1
        assert bench.loader.left_behind == (kind == "def")
        await tools.call(tool_call("open_gate"))

    began = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - began < 20
    until(lambda: bench.loader.left_behind == 0)


def test_a_second_cancellation_while_a_tool_cleans_up_breaks_it_off(tmp_path):
    bench = Bench(tmp_path, Limits(timeout=60, grace=60))
    text = """
import asyncio
async def f():
    try:
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(60)
"""
    tools = bench.load(text, "f")

    async def main():
        call = asyncio.create_task(tools.call(tool_call("f")))
        await asyncio.sleep(0.03)
        call.cancel()
        await asyncio.sleep(0.03)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    began = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - began < 30
    bench.loader.close()


def test_a_tool_may_have_its_own_time(hasty):
    text = """
        import asyncio, time
        from weft.runtime.tools.tool_api import tool
        @tool(timeout=0.05)
        def short(): time.sleep(0.5)
        @tool(timeout=30)
        async def long() -> str:
            await asyncio.sleep(0.7)
            return "done"
    """
    tools = hasty.load(text, "short", "long")
    with pytest.raises(ToolError, match=r"short took longer than 0\.05 seconds"):
        play(tools, "short")
    assert play(tools, "long") == "done"


def test_one_second_is_one(bench):
    text = """
        import asyncio
        from weft.runtime.tools.tool_api import tool
        @tool(timeout=1)
        async def f(): await asyncio.sleep(100)
    """
    with pytest.raises(ToolError, match=r"f took longer than 1 second and was abandoned"):
        play(bench.load(text, "f"), "f")


def test_reading_tools_are_tried_again_and_writing_ones_are_not(bench):
    text = """
        from weft.errors import Refuse, RetryModel
        from weft.runtime.tools.tool_api import tool
        tries = {"read": 0, "write": 0, "refuse": 0}
        @tool(effect="read", retries=2)
        def read() -> int:
            tries["read"] += 1
            if tries["read"] < 3:
                raise OSError("try again")
            return tries["read"]
        def write():
            tries["write"] += 1
            raise OSError("once")
        @tool(effect="read", retries=5)
        async def refuse(a: int):
            tries["refuse"] += 1
            raise Refuse("never")
        @tool(effect="read", retries=1)
        async def always():
            raise OSError("always")
        def told() -> dict: return tries
    """
    tools = bench.load(text, "read", "write", "refuse", "always", "told")
    assert play(tools, "read") == 3
    for tool, arguments in (("write", {}), ("refuse", {"a": 1}), ("refuse", {}), ("always", {})):
        with pytest.raises(Exception, match=r"once|never|a is missing|always"):
            play(tools, tool, arguments)
    assert play(tools, "told") == {"read": 3, "write": 1, "refuse": 1}


def test_options_that_make_no_sense_are_found_at_link(bench):
    text = """
        from weft.runtime.tools.tool_api import tool
        @tool(retries=3)
        def f(): ...
    """
    (finding,) = bench.refused(text, "f").findings
    assert str(finding.place) == "tools/main.py:2"
    assert "UsageError: a tool with effect write cannot have retries=3" in finding.message


def test_an_unknown_tool_is_named_with_the_nearest(bench):
    tools = bench.load("def find_order(): ...", "find_order")
    with pytest.raises(UsageError, match="the package has no tool find_ordr") as caught:
        tools.schema("find_ordr")
    assert caught.value.hint == "did you mean find_order?"
    with pytest.raises(UsageError) as caught:
        play(tools, "zzz")
    assert caught.value.hint == "check the tools file of the package"


def test_a_tool_that_starts_threads_is_left_in_peace(bench):
    text = """
        import threading
        def f() -> int:
            found = []
            threads = [threading.Thread(target=found.append, args=(n,)) for n in range(4)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            return sorted(found)
    """
    assert bench.call(text, "f") == [0, 1, 2, 3]


def test_writes_of_a_call_that_was_given_up_go_nowhere(hasty):
    text = """
        import time
        def f(context_variables):
            context_variables.set("count", 1)
            time.sleep(1)
            context_variables.set("count", 2)
    """
    tools = hasty.load(text, "f")
    variables = context(tool="f")
    with pytest.raises(ToolError, match="took longer"):
        play(tools, "f", variables=variables)
    assert [entry.value for entry in variables.finish()] == [1]
    until(lambda: hasty.loader.left_behind == 0)
    assert [entry.value for entry in variables.finish()] == [1]


def test_nothing_that_hangs_keeps_the_process_from_ending(tmp_path):
    program = f"""
import asyncio, sys
sys.path[:0] = [{str(ROOT / "tests")!r}]
from pathlib import Path
from support.tool_play import QUICK, Bench, tool_call
from weft.errors import ToolError
bench = Bench(Path({str(tmp_path)!r}), QUICK)
tools = bench.load('''
import asyncio, time
def blocks():
    time.sleep(600)
async def ignores():
    while True:
        try:
            await asyncio.sleep(600)
        except BaseException:
            pass
''', "blocks", "ignores")
async def main():
    for tool in ("blocks", "ignores"):
        try:
            await tools.call(tool_call(tool))
        except ToolError as error:
            print(error)
asyncio.run(main())
bench.loader.close()
print("end")
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout.splitlines() == [
        "blocks took longer than 0.5 seconds and was abandoned",
        "ignores took longer than 0.5 seconds and was abandoned",
        "end",
    ]
