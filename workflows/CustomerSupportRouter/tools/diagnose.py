"""Finds the first things to try for a technical problem."""

from typing import Final

_STEPS: Final = {
    "sync": [
        "Check that the device is online.",
        "Sign out and in again.",
        "Start a full sync in the settings.",
    ],
    "sign": [
        "Check the clock of the device: sign-in fails when it is wrong.",
        "Request a new sign-in link.",
    ],
    "crash": [
        "Install the latest version.",
        "Open the app with all extensions switched off.",
    ],
    "slow": [
        "Close notebooks that are not needed.",
        "Rebuild the search index in the settings.",
    ],
}


def diagnose(symptom: str) -> dict[str, object]:
    """Return the steps for the first known symptom that the description names."""
    text = symptom.lower()
    for key, steps in _STEPS.items():
        if key in text:
            return {"known": True, "steps": steps}
    return {"known": False, "steps": ["Ask for the exact message and for the version of the app."]}
