"""An engine enrols itself through the ordinary link service, with a token that the control plane makes for it."""

from typing import Final

from gatewayd.control.console import Console
from gatewayd.control.engines.home import EngineFolder
from gatewayd.control.gateways import gateway as gateways
from gatewayd.control.gateways.enrol_tokens import make_token
from gatewayd.control.gateways.gateway import Gateway
from gatewayd.control.store.statement import Statement

FOR_ENGINE: Final = Statement(
    "INSERT INTO engine_tokens (project_id, token_id, replica) VALUES ($1, $2, $3) ON CONFLICT (project_id, token_id) DO NOTHING"
)
NAME: Final = "engine"


async def enrol_token(console: Console, org_id: str, project_id: str, folder: EngineFolder, replica: str) -> str | None:
    """The token that the engine in this folder needs; None for one that is enrolled. Raises StoreUnavailable.

    A gateway that the store does not know (another store, one restored from before), or that was retired for good, leaves its
    folder to a new one.
    """
    held = folder.gateway
    if held is not None:
        known = await console.store.row(Gateway, gateways.FIND, project_id, held)
        if known is not None and known.standing != "retired":
            return None
    if folder.is_linked:
        folder.put_aside(console.new_id())
    token = await make_token(console, org_id, project_id, NAME, None)
    await console.store.run(FOR_ENGINE, project_id, token.token_id, replica)
    return token.text
