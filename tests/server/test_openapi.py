"""Requests made from the OpenAPI document, valid and invalid: no server error, no other answer.

Half of the requests name what exists: with ids made up, a route only says that it finds nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import APIOperation, Case, GenerationMode
from schemathesis.checks import CheckFunction, not_a_server_error
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
from weft.server.routing import ROLES_KEY

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


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, dict[str, Ids]]]:
    """A tenant for each role: what one deletes the other one still finds."""
    with tenants(tmp_path_factory.mktemp("roles"), "clinic", "bank") as (server, found):
        yield server, dict(zip(("end_user", "operator"), found, strict=True))


def roles_of(operation: APIOperation) -> Sequence[str]:
    """Return the roles that may use an operation."""
    return operation.definition.raw[ROLES_KEY]


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


def ask(
    operation: APIOperation,
    mode: GenerationMode,
    server: Server,
    key: str,
    ids: Ids,
    checks: Sequence[CheckFunction] = CHECKS,
    *,
    count: int,
    known: st.SearchStrategy[bool] = st.booleans(),  # noqa: B008 - it has no state
) -> set[int]:
    """Send requests made from an operation and check their answers; return the statuses."""
    headers = {"Authorization": f"Bearer {key}"}
    session = requests.Session()
    statuses: set[int] = set()

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode), is_known=known)
    def send(case: Case, is_known: bool) -> None:
        if is_known and mode is GenerationMode.POSITIVE:
            name_what_exists(case, ids)
        if isinstance(case.query, dict):
            case.query.pop("stream", None)  # It would not end.
        response = case.call(server.url, session, headers=headers, timeout=PATIENCE)
        case.validate_response(response, checks=list(checks), headers=headers)
        statuses.add(response.status_code)

    with session:
        try:
            send()
        except Unsatisfiable:
            assert mode is GenerationMode.NEGATIVE, "no request can be made"
    return statuses


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_no_request_gets_an_error_or_an_undeclared_answer(
    world: tuple[Server, Ids], operation: APIOperation, mode: GenerationMode
) -> None:
    server, shop = world
    checks = CHECKS if mode is GenerationMode.POSITIVE else [*CHECKS, negative_data_rejection]
    ask(operation, mode, server, staff(server, shop.app), shop, checks, count=5 * TIMES)


@pytest.mark.parametrize("role", ["end_user", "operator"])
def test_answers_to_other_roles_match_the_document(
    others: tuple[Server, dict[str, Ids]], role: str
) -> None:
    """End users and operators get less than staff with all roles in some answers."""
    server, ids = others[0], others[1][role]
    # The run and the artifact are of ada.
    key = server.key("ada" if role == "end_user" else "olga", role, app=ids.app)
    allowed = [each for each in OPERATIONS if {role, "public"} & set(roles_of(each))]
    answered: set[str] = set()
    # What reads comes first, because the others change and delete; but the stream of a run ends
    # only when the run has been cancelled.
    allowed.sort(
        key=lambda operation: (operation.path.endswith("/stream"), operation.method != "get")
    )
    for operation in allowed:
        mode, known = GenerationMode.POSITIVE, st.just(True)
        statuses = ask(operation, mode, server, key, ids, count=5 * TIMES, known=known)
        answered |= {operation.label for status in statuses if status < 300}
    assert len(answered) > len(allowed) / 2, sorted(answered)


def test_every_path_is_asked() -> None:
    assert len(OPERATIONS) == sum(map(len, openapi_document()["paths"].values()))
