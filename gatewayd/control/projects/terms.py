"""What a project is set to beside its policy: the terms of its bundles and of its approvals. JSON in `projects.settings`."""

from typing import Literal

import msgspec

from gatewayd.link.formats.bundle import AuditTerms


class ProjectTerms(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Times in the unit of the name. `approval_minutes`: how long a request may be answered, 1 minute to 24 hours."""

    fresh_for_s: int = 3600
    on_stale: Literal["keep", "halt"] = "keep"
    statements: Literal["full", "redacted", "none"] = "full"
    retention_h: int = 168
    view_definitions: bool = True
    public_urls: tuple[str, ...] = ()
    tests: str | None = None
    second_publisher: bool = False
    self_approval: bool = False
    shape_grants: bool = False
    approval_minutes: int = 30

    @property
    def audit(self) -> AuditTerms:
        return AuditTerms(self.statements, self.retention_h)


def loosened(before: ProjectTerms, after: ProjectTerms) -> str | None:
    """The first field by which fewer people, or none, would have to agree to something; None where there is none."""
    for field, is_looser in (
        ("self_approval", after.self_approval and not before.self_approval),
        ("shape_grants", after.shape_grants and not before.shape_grants),
        ("second_publisher", before.second_publisher and not after.second_publisher),
    ):
        if is_looser:
            return field
    return None


def terms_of(settings: str) -> ProjectTerms:
    """Of the column `settings`. A field that a later version added is not known here and raises msgspec.ValidationError."""
    return msgspec.json.decode(settings, type=ProjectTerms)


def terms_text(terms: ProjectTerms) -> str:
    return msgspec.json.encode(terms).decode()
