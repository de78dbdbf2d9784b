"""`python -m gatewayd` and the `gatewayd` command."""

from gatewayd.cli.group import gatewayd


def main() -> None:
    gatewayd(prog_name="gatewayd")


if __name__ == "__main__":
    main()
