"""GET /health: liveness, without authentication (docs/http-api.md)."""

from quart import Blueprint, Response

health = Blueprint("health", __name__)

_OK = b'{"ok":true}'


@health.get("/health")
async def alive() -> Response:
    """200 while the process serves HTTP; whether databases answer is another question."""
    return Response(_OK, content_type="application/json")
