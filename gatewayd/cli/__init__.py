"""The command line (decision 14): one file per command, imported only when that command runs."""
