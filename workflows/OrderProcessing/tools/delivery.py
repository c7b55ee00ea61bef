"""What the writer may look up."""


def delivery_days(address: str) -> int:
    """Return after how many days a parcel arrives at an address."""
    return 3 if address == "harbour" else 1
