"""/metrics for Prometheus: what is counted, who may read it, and what bounds it."""

from prometheus_client.parser import text_string_to_metric_families


def samples(text):
    """The values of a page by name and labels."""
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def read(server):
    reply = server.call("GET", "/metrics")
    assert (reply.status, reply.headers["content-type"].split(";")[0]) == (200, "text/plain")
    return samples(reply.content.decode())


def test_a_run_is_counted_by_turns_tools_models_handoffs_and_tokens(server):
    ada = server.key("ada", "end_user")
    before = read(server)
    run = server.post("/api/runs", {"workflow": "Desk", "message": "hi"}, key=ada, status=201)
    server.settled(run["run"], ada)
    after = read(server)
    new = {name: value - before.get(name, 0) for name, value in after.items()}
    turns = [value for (name, *_), value in new.items() if name == "weft_turns_total"]
    assert sum(turns) >= 1
