"""Where the control plane may connect to when a person gives the address: the public internet, and networks that the operator
names. Pure.

An address that a person gives (a webhook, a sign-in provider) could otherwise be one of the machine's own network: its metadata
service, its store, another tenant's engine. A list of forbidden ranges would forget one, so what counts is whether the address is
globally reachable by the registries of IANA, looked at after every way to write one address inside of another is undone.
"""

import ipaddress
from collections.abc import Iterable
from typing import Final

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_IN_THE_CLEAR: Final = ipaddress.IPv6Network("2000::/3")
"""What is handed out of IPv6 as public. The rest is reserved, local, or a way to IPv4."""
_NOT_GLOBAL: Final = tuple(map(ipaddress.ip_network, ("192.0.0.0/24", "192.88.99.0/24", "3fff::/20", "168.63.129.16/32")))
"""What Python 3.11 does not know of the registries, an address of clouds' metadata among it; and one that is public by the
registry, but which a cloud answers to its own machines as their platform."""


def may_reach(text: str, networks: Iterable[Network]) -> bool:
    """Whether `text`, an address as a resolver gives it, is public or in one of `networks`."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:  # an IPv6 address with a zone, too: it is of a link
        return False
    reached = _innermost(address)
    if reached is None:
        return False
    if any(reached in network for network in networks if network.version == reached.version):
        return True
    if isinstance(reached, ipaddress.IPv6Address) and reached not in _IN_THE_CLEAR:
        return False
    if any(reached in network for network in _NOT_GLOBAL if network.version == reached.version):
        return False
    return reached.is_global and not reached.is_multicast and not reached.is_reserved


def is_named(text: str, networks: Iterable[Network]) -> bool:
    """Whether the address is in one of the operator's networks: there http is good enough."""
    try:
        reached = _innermost(ipaddress.ip_address(text))
    except ValueError:
        return False
    return reached is not None and any(reached in network for network in networks if network.version == reached.version)


def _innermost(address: Address) -> Address | None:
    """The IPv4 address that packets would go to in the end, where one is written inside; None for tunnels that nobody needs."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.scope_id is not None or address.teredo is not None or address.sixtofour is not None:
        return None
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address
