"""Every case of the corpus: a workflow in, its findings out."""

import pytest

from support.corpus import FOLDER, cases_in, findings_of, read_corpus
from weft.catalogue import CATALOGUE

CASES = [
    pytest.param(case, id=f"{file.stem}: {case.name}")
    for file in sorted(FOLDER.glob("*.yaml"))
    for case, _ in cases_in(read_corpus(file))
]


@pytest.mark.parametrize("case", CASES)
def test_workflow_has_the_expected_findings(case):
    assert findings_of(case) == case.expected


def test_cases_name_codes_of_the_catalogue():
    named = {code for parameters in CASES for code in parameters.values[0].codes}
    assert named <= CATALOGUE.keys()
