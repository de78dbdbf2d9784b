"""A clock that stands until a test moves it."""

MINUTE = 60_000


class Clock:
    """Milliseconds since 1970, as the control plane counts them."""

    def __init__(self) -> None:
        self.ms = 1_790_000_000_000

    def __call__(self) -> int:
        return self.ms
