"""A control plane with its owner, as the tests of the control plane have it."""

from tests.control.conftest import bounds, migrated, owner, plane, settings, store_url

__all__ = ["bounds", "migrated", "owner", "plane", "settings", "store_url"]
