"""The comparison as a picture: SVG, one part a figure, one bar for each controller and heuristic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

from .compare import BY_KEY, Metric, Run, Spread, columns, spread

SHOWN = (
    "miss_rate",
    "sla_wait_p50_ms",
    "sla_wait_p95_ms",
    "other_wait_p50_ms",
    "other_wait_p95_ms",
    "lost_gpu_hours",
    "preemptions_p99",
    "used",
)
NATIVE, OTHER = "#8a8f98", "#1f6feb"
MARGIN, HEAD, PANEL, LABELS, BARS, VALUES, ROW = 20, 64, 40, 170, 200, 70, 20
ACROSS = 2


class Bar(NamedTuple):
    """One bar; the whisker goes from the lowest to the highest of the seeds."""

    label: str
    colour: str
    over: Spread


def picture(title: str, runs: Sequence[Run]) -> str:
    """A whole SVG document. ``title`` stands above it, after the word *simulated*."""
    panel_width, panel_height = LABELS + BARS + VALUES, PANEL + ROW * len(columns(runs))
    rows = -(-len(SHOWN) // ACROSS)
    width = MARGIN + ACROSS * (panel_width + MARGIN)
    height = HEAD + rows * panel_height + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        _text(MARGIN, 28, f"simulated: {title}", 'font-size="16" font-weight="bold"'),
        _text(MARGIN, 48, "bar: median over the seeds; line: lowest to highest", 'fill="#57606a"'),
    ]
    for place, key in enumerate(SHOWN):
        left = MARGIN + place % ACROSS * (panel_width + MARGIN)
        parts += _panel(BY_KEY[key], runs, left, HEAD + place // ACROSS * panel_height)
    return "\n".join([*parts, "</svg>", ""])


def _panel(metric: Metric, runs: Sequence[Run], left: int, top: int) -> Iterator[str]:
    bars = [
        Bar(
            label=f"{controller}, {heuristic}",
            colour=NATIVE if controller == "native" else OTHER,
            over=spread(metric.of(run.figures) for run in group),
        )
        for (controller, heuristic), group in columns(runs).items()
    ]
    most = max((bar.over.highest or 0 for bar in bars), default=0) or 1
    yield _text(left, top + 20, metric.label.strip(), 'font-weight="bold"')
    for row, bar in enumerate(bars):
        yield from _bar(metric, bar, left, top + PANEL - 10 + ROW * row, BARS / most)


def _bar(metric: Metric, bar: Bar, left: int, top: int, scale: float) -> Iterator[str]:
    start, middle = left + LABELS, top + ROW // 2 - 2
    yield _text(left, top + 12, bar.label)
    if bar.over.median is None or bar.over.lowest is None or bar.over.highest is None:
        yield _text(start, top + 12, "-")
        return
    low, high = start + scale * bar.over.lowest, start + scale * bar.over.highest
    yield (
        f'<rect x="{start}" y="{top + 1}" width="{scale * bar.over.median:.1f}" height="{ROW - 6}" '
        f'fill="{bar.colour}"/>'
    )
    yield f'<line x1="{low:.1f}" y1="{middle}" x2="{high:.1f}" y2="{middle}" stroke="#24292f"/>'
    yield _text(start + BARS + 6, top + 12, metric.text(bar.over.median))


def _text(x: float, y: float, words: str, attributes: str = "") -> str:
    return f'<text x="{x}" y="{y}" {attributes}>{escape(words)}</text>'.replace(" >", ">")
