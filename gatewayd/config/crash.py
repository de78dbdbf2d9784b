"""How a daemon ends after a failure: one log line and an exit code."""

from collections.abc import Sequence

import msgspec

from gatewayd import log
from gatewayd.config.exit_codes import CONFIGURATION, FAILURE, UNAVAILABLE


class Foreseen(msgspec.Struct, frozen=True):
    """A failure whose message tells the operator what to do; `setting` names the setting to correct."""

    failure: type[Exception]
    is_configuration: bool
    setting: str = ""


def end_of(crash: BaseExceptionGroup[BaseException], foreseen: Sequence[Foreseen]) -> int:
    """Logs the first failure of the group and returns the exit code. Of an unforeseen one only the class and the lines of code
    are logged, because its message could contain SQL or data."""
    first = log.first_of(crash)
    for each in foreseen:
        if isinstance(first, each.failure):
            words = f"{each.setting}: {first}" if each.setting else str(first)
            log.error(log.CONFIGURATION_INVALID if each.is_configuration else log.SERVICE_UNAVAILABLE, error=words)
            return CONFIGURATION if each.is_configuration else UNAVAILABLE
    log.error(log.UNEXPECTED_FAILURE, **log.places(first))
    return FAILURE
