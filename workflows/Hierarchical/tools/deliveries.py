"""Results handed from those below to their lead."""


def deliver_facts(facts: list[str]) -> dict[str, list[str]]:
    """Return the facts without blanks and repetitions, in the order they were given."""
    tidy = [" ".join(fact.split()) for fact in facts]
    return {"facts": list(dict.fromkeys(fact for fact in tidy if fact))}


def deliver_draft(text: str) -> dict[str, object]:
    """Return the draft and its length in words."""
    return {"draft": text.strip(), "words": len(text.split())}
