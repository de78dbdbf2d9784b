"""Exit codes (decision 13). sysexits.h gives 69 and 78 their meaning; the systemd unit does not restart on 78."""

from typing import Final

FAILURE: Final = 1
USAGE: Final = 2
UNAVAILABLE: Final = 69
CONFIGURATION: Final = 78
