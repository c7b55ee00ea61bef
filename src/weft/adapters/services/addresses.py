"""Addresses on the net: which of them are public, and which lead to somebody's inside."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

#: Ranges that are not public whatever the standard library of this Python says: set aside for
#: protocols, relays to other networks, and what a cloud tells its machines.
_SET_ASIDE: Final = tuple(
    map(ip_network, ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32", "2002::/16"))
)

#: The only range from which public IPv6 addresses are given out.
_GIVEN_OUT: Final = ip_network("2000::/3")

#: IPv4 as seen from networks that have only IPv6: the last four bytes are the address.
_TRANSLATED: Final = ip_network("64:ff9b::/96")


def is_public(text: str) -> bool:
    """Tell whether an address is one that anybody on the net may ask; what is no address is not.

    >>> is_public("8.8.8.8"), is_public("10.0.0.1"), is_public("::ffff:127.0.0.1")
    (True, False, False)
    """
    try:
        address = ip_address(text)
    except ValueError:
        return False
    if isinstance(address, IPv6Address):
        inner = _ipv4_inside(address)
        if inner is None and address not in _GIVEN_OUT:
            return False
        address = inner or address
    # Some groups that one can only broadcast to count as global.
    return (
        address.is_global
        and not address.is_multicast
        and not any(address in it for it in _SET_ASIDE)
    )


def _ipv4_inside(address: IPv6Address) -> IPv4Address | None:
    if address in _TRANSLATED:
        return IPv4Address(address.packed[-4:])
    return address.ipv4_mapped
