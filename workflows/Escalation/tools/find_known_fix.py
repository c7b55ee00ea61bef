"""Looks for a known fix of a common problem."""

from typing import Final

_KNOWN_FIXES: Final = {
    "password": "Reset the password on the sign-in page and sign in again.",
    "printer": "Switch the printer off for ten seconds, then print a test page.",
    "wifi": "Forget the network on the device and connect to it again.",
    "slow": "Close unused programs and restart the device.",
}


def find_known_fix(symptom: str) -> dict[str, str]:
    """Return the fix whose keyword is in the description, if there is one."""
    words = symptom.lower().replace("-", "")
    for key, fix in _KNOWN_FIXES.items():
        if key in words:
            return {"fix": fix}
    return {"fix": "", "note": "No known fix matches. Hand the case up."}
