"""The package of seed 001: an interview that is over when its agent says so."""

import json

from seeds import verbatim
from seeds.seed_play import agents, handoffs

AGENTS = agents(InterviewAgent="When all is said, reply TERMINATE.", Planner="Plan.")
RULES = handoffs(
    ("InterviewAgent", "Planner", "interview_complete"),
    ("InterviewAgent", "user"),
    ("Planner", "terminate"),
)
SHOWN = '"agents": {"InterviewAgent": ["interview_complete"], "Planner": ["interview_complete"]}'


def onboarding(listed=verbatim.DERIVED_VARIABLES, **files):
    """Return a package with the list of the seed as it stands there."""
    text = verbatim.file_of(listed, SHOWN)
    return {"agents": AGENTS, "handoffs": RULES, "context_variables": text, **files}


def listing(*entries):
    """Return a list of derived variables."""
    return f'"derived_variables": {json.dumps(list(entries))}'


def complete(*triggers, default=False):
    return {"name": "interview_complete", "default": default, "triggers": list(triggers)}


def flags(played, agent, count):
    """Return what an agent was shown, call by call."""
    return [played.prompt(agent, number).rpartition(": ")[2] for number in range(count)]
