"""The code of a package is imported from its pinned content, and every fault of it is named."""

import gc
import linecache
import sys
import threading
import time
import traceback
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.cases import read_cases
from support.tool_play import Bench, digest_of, play, until, write
from weft.adapters.python_tools import modules
from weft.adapters.python_tools.modules import PackageFinder, package_builtins
from weft.errors import ToolError

CASES = read_cases(__file__)


@pytest.fixture
def bench(tmp_path):
    made = Bench(tmp_path)
    yield made
    made.loader.close()


def own_modules() -> set[str]:
    return {name for name in sys.modules if name.startswith("weft_packages.")}


def test_old_content_keeps_working_after_the_file_changes(bench):
    old = bench.load("def version() -> int:\n    return 1\n", "version")
    new = bench.load("def version() -> int:\n    return 2\n", "version")
    assert [play(old, "version"), play(new, "version")] == [1, 2]


def test_a_late_import_of_old_content_finds_old_content(bench):
    late = """
        def version() -> int:
            from .number import NUMBER
            return NUMBER
    """
    old = bench.load(late, "version", files={"tools/number.py": "NUMBER = 1"})
    write(bench.folder, {"tools/number.py": "NUMBER = 2"})
    assert play(old, "version") == 1


@pytest.mark.parametrize("line", CASES["test_files_of_a_package_import_each_other"])
def test_files_of_a_package_import_each_other(bench, line):
    before = list(sys.path)
    tools = bench.load(
        f"{line}\ndef number() -> int:\n    return NUMBER\n",
        "number",
        files={
            "tools/shared.py": "NUMBER = 5",
            "tools/deep/__init__.py": "from .down import NUMBER",
            "tools/deep/down.py": "from ..shared import NUMBER",
            "hooks/masks.py": "NUMBER = 5",
            "tools/Card.jsx": "export default 1",
        },
    )
    assert play(tools, "number") == 5
    assert sys.path == before
    assert "tools" not in sys.modules
    assert "shared" not in sys.modules


def test_a_file_named_like_a_module_of_python_does_not_hide_it(bench):
    text = "import json\ndef text() -> str:\n    return json.dumps([1])\n"
    assert play(bench.load(text, "text", files={"tools/json.py": "NUMBER = 1"}), "text") == "[1]"


def test_a_library_called_workflows_is_not_mistaken_for_the_package(bench, tmp_path, monkeypatch):
    library = tmp_path.parent / f"{tmp_path.name}-library"
    write(library, {"workflows/__init__.py": "", "workflows/events.py": "START = 4"})
    monkeypatch.syspath_prepend(library)
    for name in [module for module in sys.modules if module.partition(".")[0] == "workflows"]:
        monkeypatch.delitem(sys.modules, name)
    text = """
        import workflows
        from workflows.events import START
        def f() -> list[object]:
            import workflows.events
            return [START, workflows.events.START]
    """
    assert bench.call(text, "f") == [4, 4]
    for name in [module for module in sys.modules if module.partition(".")[0] == "workflows"]:
        del sys.modules[name]


def test_every_fault_is_named(bench):
    code = write(
        bench.folder,
        {
            "tools/sound.py": "def fine() -> int:\n    return 1\nclass Thing: ...\nlimit = 3\n",
            "tools/typo.py": "def f(:\n    ...\n",
            "tools/needy.py": "x = 1\nimport no_such_library\n",
            "tools/lost.py": "from .nowhere import x\n",
            "tools/broken.py": "from .helper import half\n",
            "tools/helper.py": "def half(): ...\n\nvalue = 1 / 0\n",
            "tools/quits.py": "raise SystemExit(3)\n",
            "tools/odd.py": "# -*- coding: nonsense -*-\n",
        },
    )
    functions = {
        "fine": ("sound.py", "fine"),
        "fin": ("tools/sound.py", "fin"),
        "zebra": ("sound.py", "zebra"),
        "thing": ("sound.py", "Thing"),
        "limit": ("sound.py", "limit"),
        "gone": ("soud.py", "fine"),
        "away": ("qqqqqqqq.py", "fine"),
        "typo": ("typo.py", "f"),
        "needy": ("needy.py", "f"),
        "lost": ("lost.py", "f"),
        "broken": ("broken.py", "f"),
        "quits": ("quits.py", "f"),
        "odd": ("odd.py", "f"),
    }
    before = own_modules()
    with pytest.raises(Exception, match="the code of the package has 12 faults: ") as caught:
        bench.loader.load(digest_of(code), code, functions)
    found = {
        (finding.code, str(finding.place)): (finding.message, finding.hint[0])
        for finding in caught.value.findings
    }
    assert [(finding.code, str(finding.place)) for finding in caught.value.findings] == [
        ("CODE002", "tools/sound.py"),
        ("CODE002", "tools/sound.py"),
        ("CODE002", "tools/sound.py"),
        ("CODE002", "tools/sound.py"),
        ("CODE001", "tools/soud.py"),
        ("CODE001", "tools/qqqqqqqq.py"),
        ("CODE003", "tools/typo.py:1:7"),
        ("LINK001", "tools/needy.py:2"),
        ("LINK001", "tools/lost.py:1"),
        ("LINK001", "tools/helper.py:3"),
        ("LINK001", "tools/quits.py:1"),
        ("CODE003", "tools/odd.py"),
    ]
    messages = [(finding.message, finding.hint[0]) for finding in caught.value.findings]
    assert messages[0] == ("tools/sound.py does not define fin", "did you mean fine?")
    assert messages[1] == ("tools/sound.py does not define zebra", "define zebra in tools/sound.py")
    assert messages[2][0] == "tools/sound.py defines Thing, which is not a function"
    assert messages[3][0] == "tools/sound.py defines limit, which is not a function"
    assert messages[4][1] == "did you mean tools/sound.py?"
    assert messages[5][1] == "write tools/qqqqqqqq.py, or correct the file"
    assert found["LINK001", "tools/needy.py:2"] == (
        "tools/needy.py cannot be imported: ModuleNotFoundError: No module named 'no_such_library'",
        "install no_such_library where Weft runs, or do without it",
    )
    assert found["LINK001", "tools/lost.py:1"] == (
        "tools/lost.py cannot be imported: ModuleNotFoundError: No module named 'tools.nowhere'",
        "correct the name in the import, or add the file to the package",
    )
    assert "ZeroDivisionError: division by zero" in found["LINK001", "tools/helper.py:3"][0]
    assert "SystemExit: 3" in found["LINK001", "tools/quits.py:1"][0]
    assert own_modules() == before


def test_misspelt_tool_option_gets_a_suggestion(bench):
    [fault] = bench.refused(
        """
        from weft import tool

        @tool(efect="read")
        def find() -> int:
            return 1
        """,
        "find",
    ).findings
    assert fault.message == (
        "tools/main.py cannot be imported: UsageError: a tool has no option efect"
    )
    assert (fault.place.line, fault.hint) == (3, ("did you mean effect?",))


def test_one_fault_is_reported_in_the_singular(bench):
    assert str(bench.refused("", "f")) == (
        "the code of the package has 1 fault: tools/main.py does not define f"
    )


def test_a_package_that_failed_can_be_loaded_when_it_is_mended(bench):
    bench.refused("def f(): ...", "g")
    assert play(bench.load("def g() -> int:\n    return 3\n", "g"), "g") == 3


def test_the_same_digest_is_loaded_once(bench):
    first = bench.load("def f(): ...\n", "f")
    assert bench.load("def f(): ...\n", "f") is first


def test_unloading_frees_the_code(bench):
    code = write(bench.folder, {"tools/main.py": "class Mark: ...\ndef f():\n    1 / 0\n"})
    digest = digest_of(code)
    tools = bench.loader.load(digest, code, {"f": ("main.py", "f")})
    (name,) = [module for module in own_modules() if module.endswith(".tools.main")]
    mark = weakref.ref(sys.modules[name].Mark)
    with pytest.raises(ToolError):
        play(tools, "f")
    assert linecache.getlines(sys.modules[name].__file__, vars(sys.modules[name]))
    bench.loader.unload(digest)
    bench.loader.unload("never loaded")
    del tools
    until(lambda: gc.collect() >= 0 and mark() is None)
    assert not any(digest[:16] in module for module in (*sys.modules, *linecache.cache))
    assert bench.loader._finder not in sys.meta_path


def test_unloading_one_package_leaves_the_others(bench):
    code = write(bench.folder, {"tools/main.py": "def f() -> int:\n    return 1\n"})
    bench.loader.load("first", code, {"f": ("main.py", "f")})
    late = write(
        bench.folder,
        {
            "tools/main.py": "def f() -> int:\n    from .other import X\n    return X\n",
            "tools/other.py": "X = 2\n",
        },
    )
    second = bench.loader.load("second", late, {"f": ("main.py", "f")})
    bench.loader.unload("first")
    assert play(second, "f") == 2


def test_two_loaders_hold_the_same_package_apart(bench, tmp_path):
    other = Bench(tmp_path)
    text = "calls = []\ndef f() -> int:\n    calls.append(1)\n    return len(calls)\n"
    mine, theirs = bench.load(text, "f"), other.load(text, "f")
    assert [play(mine, "f"), play(mine, "f"), play(theirs, "f")] == [1, 2, 1]
    other.loader.close()
    assert play(mine, "f") == 3


def test_two_loaders_at_one_time_do_not_take_the_same_name(monkeypatch):
    started = threading.Event()

    def slow(name, files):
        started.set()
        time.sleep(0.05)
        return package_builtins(name, files)

    monkeypatch.setattr(modules, "package_builtins", slow)
    finders = [PackageFinder(), PackageFinder()]
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(finders[0].add, "0" * 16, {"tools/t.py": b""})
        started.wait(5)
        second = threads.submit(finders[1].add, "0" * 16, {"tools/t.py": b""})
        packages = [first.result(), second.result()]
    assert packages[0].name != packages[1].name
    finders[0].remove(packages[0])
    assert packages[1].module("tools/t.py")
    finders[1].remove(packages[1])


def test_an_import_under_way_misses_no_finder_when_another_goes():
    finders = [PackageFinder(), PackageFinder()]
    packages = [finder.add("0" * 16, {"tools/t.py": b""}) for finder in finders]
    asked = []
    for finder in sys.meta_path:
        asked.append(finder)
        if finder is finders[0]:
            finders[0].remove(packages[0])
    assert asked[-2:] == finders
    finders[1].remove(packages[1])
    assert not set(finders) & set(sys.meta_path)


def test_a_traceback_shows_the_file_and_its_lines(bench):
    tools = bench.load("def f() -> None:\n    # one\n    raise KeyError('gone')\n", "f")
    with pytest.raises(ToolError) as caught:
        play(tools, "f")
    frame = traceback.extract_tb(caught.value.__cause__.__traceback__)[-1]
    assert frame.filename.endswith("/tools/main.py")
    assert (frame.lineno, frame.line) == (3, "raise KeyError('gone')")


def test_output_of_code_does_not_reach_the_output_stream(bench, capsys):
    text = """
        import sys
        print("loading")
        def f() -> None:
            print("calling", end="")
            print("on purpose", file=sys.stdout)
    """
    bench.call(text, "f")
    assert capsys.readouterr() == ("on purpose\n", "loading\ncalling")


def test_a_package_has_the_usual_names_around_it(bench):
    text = """
        def f() -> list[str]:
            from weft_packages import nothing
    """
    with pytest.raises(
        ToolError, match=r"ImportError at tools/main\.py:2: cannot import name 'nothing'"
    ):
        bench.call(text, "f")
    assert bench.call("def f() -> str:\n    return __import__('json').dumps([])", "f") == "[]"
    assert bench.call("def f() -> str:\n    return __name__ + __file__", "f").count("main") == 2


def test_finder_leaves_modules_of_others_alone():
    finder = PackageFinder()
    assert finder.find_spec("json") is None
    assert finder.find_spec("weft_packages.unknown.tools") is None


def test_object_of_a_folder_is_in_its_init_file(bench):
    code = {"tools/shop/__init__.py": b"OPEN = 7\n"}
    bench.loader.load("digest", code, {})
    assert bench.loader.objects("digest", ["tools.shop:OPEN"]) == {"tools.shop:OPEN": 7}
