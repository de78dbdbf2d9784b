"""What a start does when a secret has got another current value, so that once it serves nothing needs the former one.

Every replica does it at each start, so the last one that is restarted with the new value leaves nothing behind
(docs/control-plane.md, Changing a secret).
"""

import msgspec

from gatewayd import log
from gatewayd.control.audit.retention import kept_projects
from gatewayd.control.console import Console
from gatewayd.control.databases.database import OF_PROJECT, SEAL_ANEW, Database, sealed_anew
from gatewayd.control.keyring.former import MOST, with_former_values
from gatewayd.control.keyring.sealing import NONCE_BYTES, Unsealable
from gatewayd.control.notifications.channel import seal_webhooks_anew
from gatewayd.control.people.oidc import seal_providers_anew
from gatewayd.control.settings import ControlSettings
from gatewayd.control.trust.documents import settle_trust


async def with_all_peppers(console: Console) -> ControlSettings:
    """The settings with the former values of CONTROL_TOKEN_PEPPER that the store keeps."""
    nonces = [console.entropy(NONCE_BYTES) for _ in range(MOST)]
    pepper = await with_former_values(console.store, console.secrets.pepper, console.now_ms(), nonces)
    return msgspec.structs.replace(console.settings, secrets=msgspec.structs.replace(console.secrets, pepper=pepper))


async def take_up(console: Console) -> None:
    """Trust, and what is sealed, under the current values. Raises TrustProblem."""
    await settle_trust(console)
    await seal_providers_anew(console)
    await seal_webhooks_anew(console)
    for project in await kept_projects(console):
        for database in await console.store.rows(Database, OF_PROJECT, project.project_id):
            try:
                sealed = sealed_anew(console, project.project_id, database, console.entropy(NONCE_BYTES))
            except Unsealable as problem:
                detail = f"CONTROL_KMS_KEY: the address of a database cannot be opened: {problem}"
                log.warning(log.CONFIGURATION_DOUBTFUL, detail=detail)
                continue
            if sealed is not None:
                await console.store.run(SEAL_ANEW, project.project_id, database.database_id, database.sealed_url, sealed)
