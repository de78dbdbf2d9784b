"""The report as one page of HTML that needs nothing else: no script, no font, no address. Every text of the record is escaped."""

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from typing import Final

from gatewayd.audit.report import AuditReport, Counted
from gatewayd.audit.verdict import FileVerdict
from gatewayd.cli.output import visible

_STYLE: Final = """
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2rem;border-bottom:1px solid #d0d7de}
table{border-collapse:collapse;width:100%}
td,th{text-align:left;padding:.2rem .6rem;border-bottom:1px solid #eaeef2;overflow-wrap:anywhere}
td.n,th.n{text-align:right}.ok{color:#0a6b2d}.bad{color:#b3261e}.verdict{font-size:1.2rem;font-weight:600}
svg{width:100%;height:auto}svg text{font:11px system-ui,sans-serif;fill:#424a53}.a{fill:#2f6f9f}.d{fill:#b3261e}
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}td,th{border-color:#30363d}h2{border-color:#30363d}
svg text{fill:#9da7b1}.ok{color:#4cc26b}.bad{color:#ff8d86}.a{fill:#6cb3e4}.d{fill:#ff8d86}}
"""
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


def page(report: AuditReport, verdict: FileVerdict, now: datetime) -> str:
    """The whole document."""
    grade = "bad" if verdict.faults else "ok"
    findings = [(each.kind, each.seq or "", f"{each.what}; {each.meaning}".rstrip("; ")) for each in verdict.findings]
    gaps = ", ".join(f"{first} to {last}" for first, last in report.gaps) or "none"
    whole = [
        ("Rows", report.rows),
        ("seq", f"{report.first_seq or '-'} to {report.last_seq or '-'}"),
        ("Gaps", gaps),
        ("Instances", ", ".join(report.instances) or "none"),
        ("Calls without a decision", report.undecided),
        ("Allowed calls without an end", report.unclosed),
        ("Rows without a signed head", report.unanchored_rows),
        ("Longest time without one", f"{report.longest_unanchored_ms / 1000:.0f} s"),
        ("Rows from before format 2", report.unproved_rows),
    ]
    counts = [
        ("Calls", report.calls),
        ("Allowed", report.allowed),
        ("Denied", report.denied),
        ("Executed", report.executed),
        ("Failed", report.failed),
    ]
    changes = [(_time(each.ts), each.seq or "", each.database, each.what) for each in report.policy_changes]
    erasures = [(_time(each.ts), each.seq or "", each.what) for each in report.erasures]
    period = f"{_day(report.from_ms)} to {_day(report.to_ms - 1)}"
    head = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"><title>Audit report, {period}</title>'
        f"<style>{_STYLE}</style></head><body><main>"
    )
    parts = [
        head,
        f"<h1>Audit report, {period}</h1>",
        f'<p class="verdict {grade}">{_text(verdict.sentence)}</p>',
        f"<p>Made {now.strftime('%Y-%m-%d %H:%M UTC')} by gatewayd audit report. Times are UTC.</p>",
        _section("What verifying found", ("", "seq", "finding"), findings),
        _section("Completeness", ("", ""), whole),
        _section("Decisions", ("", ""), counts),
        _days_chart(report.days),
        _counted("By agent", report.agents),
        _counted("By table", report.tables),
        _section("Denied by rule", ("rule", "denials"), [(each.name, each.denied) for each in report.rules]),
        _section("Policies in force", ("SHA-256",), [(each,) for each in report.policies]),
        _section("Policy changes", ("time", "seq", "database", "change"), changes),
        _section("Erasures", ("time", "seq", "what"), erasures),
        "</main></body></html>\n",
    ]
    return "".join(parts)


def _section(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    if not rows:
        return f"<h2>{_text(title)}</h2><p>none</p>"
    head = "".join(f'<th scope="col">{_text(each)}</th>' for each in header)
    body = "".join("<tr>" + "".join(_cell(each) for each in row) + "</tr>" for row in rows)
    return f"<h2>{_text(title)}</h2><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    return f'<td class="n">{value}</td>' if isinstance(value, int) else f"<td>{_text(str(value))}</td>"


def _text(text: str) -> str:
    """Escaped for HTML, and without what could turn the direction of text or hide."""
    return escape(visible(text), quote=True)


def _counted(title: str, counts: Sequence[Counted]) -> str:
    table = _section(title, ("", "allowed", "denied"), [(each.name, each.allowed, each.denied) for each in counts])
    return table + (_bars(title, counts) if counts else "")


def _bars(title: str, counts: Sequence[Counted]) -> str:
    """A bar for each name: allowed, then denied."""
    most = max(each.allowed + each.denied for each in counts) or 1
    lines: list[str] = []
    for place, each in enumerate(counts):
        allowed, denied = each.allowed * 480 / most, each.denied * 480 / most
        y = place * 20
        name = each.name if len(each.name) <= 34 else each.name[:33] + "…"
        lines.append(
            f'<text x="210" y="{y + 13}" text-anchor="end">{_text(name)}</text>'
            f'<rect class="a" x="220" y="{y + 2}" width="{allowed:.1f}" height="14"/>'
            f'<rect class="d" x="{220 + allowed:.1f}" y="{y + 2}" width="{denied:.1f}" height="14"/>'
        )
    return _svg(f"{title}: allowed and denied calls", 720, 20 * len(counts), "".join(lines))


def _days_chart(days: Sequence[tuple[int, int, int]]) -> str:
    """A column for each day."""
    if not days:
        return ""
    first, last = days[0][0], days[-1][0]
    count = (last - first) // 86_400_000 + 1
    most = max(allowed + denied for _, allowed, denied in days) or 1
    width = 680 / count
    columns: list[str] = []
    for day, allowed, denied in days:
        x = 30 + (day - first) // 86_400_000 * width
        high, low = allowed * 110 / most, denied * 110 / most
        columns.append(
            f"<g><title>{_day(day)}: {allowed} allowed, {denied} denied</title>"
            f'<rect class="a" x="{x:.1f}" y="{120 - high:.1f}" width="{max(width - 1, 0.5):.1f}" height="{high:.1f}"/>'
            f'<rect class="d" x="{x:.1f}" y="{120 - high - low:.1f}" width="{max(width - 1, 0.5):.1f}" height="{low:.1f}"/></g>'
        )
    scale = f'<text x="0" y="12">{most}</text><text x="30" y="136">{_day(first)}</text>'
    scale += f'<text x="710" y="136" text-anchor="end">{_day(last)}</text>'
    return _svg("Allowed and denied calls by day", 720, 140, scale + "".join(columns))


def _svg(label: str, width: int, height: int, inner: str) -> str:
    return f'<svg role="img" aria-label="{_text(label)}" viewBox="0 0 {width} {height}">{inner}</svg>'


def _day(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d")


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
