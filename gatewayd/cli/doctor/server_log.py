"""Whether PostgreSQL writes the keys of masks into its own log: under source_rewrite they are bind parameters (decision 10)."""

from typing import Final

from gatewayd.cli.doctor.finding import Check, ok, warn
from gatewayd.cli.policyfile import DatabaseEntry
from gatewayd.masking.transforms.in_python import Keyed
from gatewayd.postgres.driver.session import Connection

_SHOWS_PARAMETERS: Final = """
SELECT pg_catalog.current_setting('log_parameter_max_length', true) IS DISTINCT FROM '0'
       AND (pg_catalog.current_setting('log_statement') = 'all'
            OR pg_catalog.current_setting('log_min_duration_statement') <> '-1'
            OR pg_catalog.current_setting('log_min_duration_sample', true) <> '-1')
"""


async def server_log(connection: Connection, entry: DatabaseEntry, *, rewriting: bool) -> Check | None:
    """None where no key is sent. `rewriting` is what GATEWAY_MASK_SOURCE_REWRITE says."""
    masks = (mask for columns in entry.policy.column_masks.values() for mask in columns.values())
    by_policy = entry.policy.mask_source_rewrite
    if not (rewriting if by_policy is None else by_policy) or not any(isinstance(mask, Keyed) for mask in masks):
        return None
    ((shows,),) = await connection.fetch(_SHOWS_PARAMETERS)
    if not shows:
        return ok("server log", "PostgreSQL logs no keys of masks")
    return warn(
        "server log",
        "PostgreSQL logs statements with their parameters, and so the keys of masks: whoever reads them can try out values",
        "as a superuser: ALTER ROLE … SET log_parameter_max_length = 0, for gatewayd's role",
    )
