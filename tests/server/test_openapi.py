"""Requests made from the OpenAPI document, valid and invalid: no server error, no other answer.

Half of the requests name what exists: with ids made up, a route only says that it finds nothing.
"""

from collections.abc import Iterator
from dataclasses import asdict

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import APIOperation, Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from support.effort import TIMES
from support.server_play import PATIENCE, Server
from support.tenants_world import Ids, staff, tenants
from weft.server.app import openapi_document

SCHEMA = schemathesis.openapi.from_dict(openapi_document())
# An address that is too long is refused as such.
SCHEMA.config.checks.negative_data_rejection.expected_statuses = ["4XX"]
OPERATIONS = [found.ok() for found in SCHEMA.get_all_operations()]
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@schemathesis.serializer("application/zip")
def as_bytes(_: object, value: object) -> bytes:
    """Send what should be a zip file as it is."""
    return value if isinstance(value, bytes) else str(value).encode()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Ids]]:
    with tenants(tmp_path_factory.mktemp("openapi"), "shop") as (server, (shop,)):
        yield server, shop


def name_what_exists(case: Case, ids: Ids) -> None:
    """Put ids of what there is into a request, wherever it names something."""
    known = {
        **asdict(ids), "name": ids.workflow, "id": ids.artifact, "path": "agents.json",
        "agent": "Host", "user": "ada",
    }  # fmt: skip
    path = case.operation.path
    if path.startswith("/api/boards"):
        known["workflow"] = "Wall"
    if path.startswith("/api/starts"):
        known |= {"id": ids.start, "workflow": ids.start}
    if path.startswith("/api/correlations"):
        known |= {"id": ids.correlation, "workflow": "Wall"}
    for place in (case.path_parameters, case.query, case.body):
        if isinstance(place, dict):
            place.update({name: known[name] for name in place if name in known})


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_no_request_gets_an_error_or_an_undeclared_answer(
    world: tuple[Server, Ids], operation: APIOperation, mode: GenerationMode
) -> None:
    server, shop = world
    headers = {"Authorization": f"Bearer {staff(server, shop.app)}"}
    session = requests.Session()
    checks = CHECKS if mode is GenerationMode.POSITIVE else [*CHECKS, negative_data_rejection]

    @settings(
        max_examples=5 * TIMES,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode), is_known=st.booleans())
    def send(case: Case, is_known: bool) -> None:
        if is_known and mode is GenerationMode.POSITIVE:
            name_what_exists(case, shop)
        if isinstance(case.query, dict):
            case.query.pop("stream", None)  # It would not end.
        response = case.call(server.url, session, headers=headers, timeout=PATIENCE)
        case.validate_response(response, checks=checks, headers=headers)

    with session:
        try:
            send()
        except Unsatisfiable:
            assert mode is GenerationMode.NEGATIVE, "no request can be made"


def test_every_path_is_asked() -> None:
    assert len(OPERATIONS) == sum(map(len, openapi_document()["paths"].values()))
