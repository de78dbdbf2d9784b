"""Started by the desktop client: gatewayd over stdin and stdout."""

import sys

from gatewayd.__main__ import main

sys.argv = ["gatewayd", "serve", "--stdio"]
main()
