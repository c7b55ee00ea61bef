class Clerk:
    def pre_consume(self, ctx, inputs):
        ctx.state["context_snapshot"] = []


def is_long(payload):
    return len(payload["body"]) > 20


def check_facts(inputs, ctx):
    return None
