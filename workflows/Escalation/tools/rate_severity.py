"""Rates how bad a problem is."""


def rate_severity(people_affected: int, *, work_stopped: bool) -> dict[str, str]:
    """Return low, medium or high, after how many people are affected and how badly."""
    if work_stopped and people_affected > 1:
        return {"severity": "high"}
    if work_stopped or people_affected > 10:
        return {"severity": "medium"}
    return {"severity": "low"}
