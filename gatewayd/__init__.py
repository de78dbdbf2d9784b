"""gatewayd: a policy gateway between an AI agent and PostgreSQL."""

__version__ = "0.1.0"
