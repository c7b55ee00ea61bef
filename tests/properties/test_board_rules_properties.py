"""Whatever a board holds, the rules answer and never raise, and each finding has its place."""

from hypothesis import HealthCheck, given, settings

from support.strategies import specs
from weft.catalogue import CATALOGUE
from weft.check.run import check
from weft.check.subject import Subject
from weft.spec.workflow import WorkflowSpec

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(specs("board"))
def test_every_board_is_judged(spec: WorkflowSpec):
    found = check(Subject(spec, folder="W", code={"tools/a.py": "def f(x): ...\n"}))
    for finding in found:
        assert finding.code in CATALOGUE
        assert finding.message
        assert len(finding.hint) <= 2
