"""The results of a benchmark run as a Markdown table and an SVG chart."""

from collections.abc import Mapping, Sequence

Cell = tuple[str, str, int]
Figures = Mapping[str, float]

_COLOURS = {"gatewayd": "#1f6feb", "dbhub": "#bf8700", "Toolbox": "#57606a"}
_BAR, _GAP, _WIDTH, _LEFT = 14, 18, 460, 150


def table(cells: Mapping[Cell, Figures], extras: Mapping[str, Figures], workloads: Sequence[str], clients: Sequence[int]) -> str:
    """Calls per second and latency of every cell, ratios to each peer at 8 clients, and what is measured once per server."""
    servers = list(dict.fromkeys(server for server, _, _ in cells))
    lines = [
        "| workload | clients | server | calls/s | p50 ms | p99 ms | CPU-s/1000 calls | peak RSS MiB | wrong answers |",
        "|---|---:|---|---:|---:|---:|---:|---:|---:|",
    ]
    for workload in workloads:
        for count in clients:
            for server in servers:
                found = cells.get((server, workload, count))
                if found is not None:
                    lines.append(f"| {workload} | {count} | {server} | {_figures(found)} |")
    lines += [
        "",
        "| server | idle session KiB | idle RSS MiB | first answer HTTP ms | first answer stdio ms |",
        "|---|---:|---:|---:|---:|",
    ]
    for server, once in extras.items():
        lines.append(
            f"| {server} | {once['kib_per_session']:.1f} | {once['rss_idle_mib']:.0f} | {once['start_http_ms']:.0f}"
            f" | {once['start_stdio_ms']:.0f} |"
        )
    for peer in servers[1:]:
        ratios = [
            f"{workload} {cells[servers[0], workload, 8]['calls_per_s'] / cells[peer, workload, 8]['calls_per_s']:.2f}×"
            for workload in workloads
            if (peer, workload, 8) in cells and (servers[0], workload, 8) in cells
        ]
        lines += ["", f"{servers[0]} against {peer}, calls/s at 8 clients: {', '.join(ratios)}"]
    return "\n".join(lines) + "\n"


def _figures(found: Figures) -> str:
    speed = f"{found['calls_per_s']:.0f} | {found['p50_ms']:.2f} | {found['p99_ms']:.2f}"
    return f"{speed} | {found['server_cpu_s_per_1000']:.2f} | {found['server_rss_peak_mib']:.0f} | {found['bad']:.0f}"


def chart(cells: Mapping[Cell, Figures], workloads: Sequence[str]) -> str:
    """Bars of calls per second at 8 clients; each workload on a scale of its own."""
    y, parts = 30, []
    servers = list(dict.fromkeys(server for server, _, _ in cells))
    for workload in workloads:
        rates = {server: cells[server, workload, 8]["calls_per_s"] for server in servers if (server, workload, 8) in cells}
        if not rates:
            continue
        parts.append(f'<text x="10" y="{y + 11}" font-weight="bold">{workload}</text>')
        for server, rate in rates.items():
            width = max(1, round(_WIDTH * rate / max(rates.values())))
            parts.append(f'<text x="{_LEFT - 8}" y="{y + 11}" text-anchor="end">{server}</text>')
            parts.append(f'<rect x="{_LEFT}" y="{y}" width="{width}" height="{_BAR}" fill="{_COLOURS.get(server, "#8250df")}"/>')
            parts.append(f'<text x="{_LEFT + width + 6}" y="{y + 11}">{rate:.0f}/s</text>')
            y += _BAR + 3
        y += _GAP
    size = f'width="{_LEFT + _WIDTH + 90}" height="{y}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
    return (
        "\n".join([head, '<text x="10" y="18" font-size="14">calls per second, 8 clients, 2 cores</text>', *parts, "</svg>"])
        + "\n"
    )
