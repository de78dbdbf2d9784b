"""Exit codes (decision 13). sysexits.h gives 69 and 78 their meaning; the systemd unit does not restart on 78."""

from typing import Final

FAILURE: Final = 1
USAGE: Final = 2
WAITS: Final = 3
"""Of `gatewayd publish`: nothing is wrong, and nothing is published before a second person confirms it."""
UNAVAILABLE: Final = 69
CONFIGURATION: Final = 78
