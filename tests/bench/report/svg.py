"""Two kinds of drawing, bars and lines, as SVG that reads in light and in dark."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from data import Spread

WIDTH = 860
# Paper, ink, soft ink, grid; ours, the peers', the floor's.
LIGHT = ("#ffffff", "#1f2328", "#59636e", "#d9dee4", "#0969da", "#bc4c00", "#818b98")
DARK = ("#0d1117", "#f0f6fc", "#9198a1", "#2d333b", "#58a6ff", "#f0883e", "#7d8590")


def _colours(palette: tuple[str, ...]) -> str:
    paper, ink, soft, grid, ours, peer, floor = palette
    return (
        f".paper {{ fill: {paper} }} text {{ fill: {ink} }} .soft {{ fill: {soft} }} .grid {{ stroke: {grid} }}\n"
        f".ours {{ fill: {ours} }} .peer {{ fill: {peer} }} .floor {{ fill: {floor} }} .whisker {{ stroke: {ink} }}\n"
        f".line {{ fill: none }} .line.ours {{ stroke: {ours} }} .line.peer {{ stroke: {peer} }}\n"
    )


STYLE = (
    "<style>\ntext { font: 13px system-ui, -apple-system, 'Segoe UI', sans-serif }\n"
    ".title { font-size: 16px; font-weight: 600 } .soft { font-size: 12px }\n"
    ".grid { stroke-width: 1 } .line { stroke-width: 2 } .whisker { stroke-width: 1.5 }\n"
    f"{_colours(LIGHT)}@media (prefers-color-scheme: dark) {{\n{_colours(DARK)}}}\n</style>"
)


@dataclass(frozen=True)
class Bar:
    """One bar: its name, its value with spread, and whose it is (`ours`, `peer` or `floor`)."""

    name: str
    value: Spread
    whose: str


@dataclass(frozen=True)
class Line:
    """One line: its name, its points, whose it is."""

    name: str
    points: Sequence[tuple[float, float]]
    whose: str


@dataclass(frozen=True)
class Axis:
    """A logarithmic axis between two powers of ten, laid over some pixels."""

    low: int
    high: int
    start: float
    end: float

    @staticmethod
    def of(values: Iterable[float], start: float, end: float) -> "Axis":
        found = [math.log10(value) for value in values]
        low, high = math.floor(min(found)), math.ceil(max(found))
        return Axis(low, max(high, low + 1), start, end)

    def at(self, value: float) -> float:
        part = (math.log10(value) - self.low) / (self.high - self.low)
        return self.start + max(part, 0) * (self.end - self.start)

    def ticks(self) -> list[tuple[float, str]]:
        return [(10.0**power, _short(10.0**power)) for power in range(self.low, self.high + 1)]


def bars(title: str, axis_name: str, rows: Sequence[Bar]) -> str:
    """Horizontal bars on a logarithmic axis, with whiskers from the least to the most."""
    left, right, top, step = 170, WIDTH - 110, 56, 26
    bottom = top + step * len(rows)
    axis = Axis.of((value for row in rows for value in (row.value.least, row.value.most)), left, right)
    parts = [_text(16, 28, title, "title")]
    for value, name in axis.ticks():
        x = axis.at(value)
        parts.append(_grid(x, top - 6, x, bottom))
        parts.append(_text(x, bottom + 18, name, "soft", "middle"))
    for index, row in enumerate(rows):
        y = top + step * index
        middle = y + step / 2 - 3
        end = axis.at(row.value.median)
        low, high = axis.at(row.value.least), axis.at(row.value.most)
        parts.append(_text(left - 10, middle + 4, row.name, "", "end"))
        parts.append(
            f'<rect x="{left}" y="{y + 2}" width="{max(end - left, 1):.1f}" height="{step - 10}" class="{row.whose}"/>'
        )
        parts.append(f'<path class="whisker" d="M{low:.1f} {middle:.1f}H{high:.1f}"/>')
        parts.append(_text(high + 8, middle + 4, _short(row.value.median)))
    parts.append(_text((left + right) / 2, bottom + 40, f"{axis_name} (logarithmic)", "soft", "middle"))
    return _whole(title, bottom + 56, parts)


def lines(title: str, names: tuple[str, str], rows: Sequence[Line]) -> str:
    """Lines over two logarithmic axes, named at their ends."""
    left, right, top, bottom = 80, WIDTH - 150, 56, 360
    across = Axis.of((x for row in rows for x, _ in row.points), left, right)
    up = Axis.of((y for row in rows for _, y in row.points), bottom, top)
    parts = [_text(16, 28, title, "title")]
    for value, name in across.ticks():
        x = across.at(value)
        parts.append(_grid(x, top, x, bottom))
        parts.append(_text(x, bottom + 18, name, "soft", "middle"))
    for value, name in up.ticks():
        y = up.at(value)
        parts.append(_grid(left, y, right, y))
        parts.append(_text(left - 8, y + 4, name, "soft", "end"))
    labels = _apart([up.at(row.points[-1][1]) for row in rows], 16)
    for row, label in zip(rows, labels, strict=True):
        places = [(across.at(x), up.at(y)) for x, y in row.points]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        parts.append(f'<path class="line {row.whose}" d="M{path}"/>')
        parts += [f'<circle class="{row.whose}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in places]
        parts.append(_text(places[-1][0] + 10, label + 4, row.name))
    parts.append(_text((left + right) / 2, bottom + 40, f"{names[0]} (logarithmic)", "soft", "middle"))
    turned = f'transform="rotate(-90 22 {(top + bottom) / 2})"'
    parts.append(_text(22, (top + bottom) / 2, f"{names[1]} (logarithmic)", "soft", "middle", turned))
    return _whole(title, bottom + 56, parts)


def _whole(title: str, height: float, parts: Iterable[str]) -> str:
    inner = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" role="img" '
        f'aria-label="{escape(title)}">\n{STYLE}\n'
        f'<rect width="100%" height="100%" class="paper"/>\n{inner}\n</svg>\n'
    )


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start", more: str = "") -> str:
    marked = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{marked} text-anchor="{anchor}" {more}>{escape(text)}</text>'


def _grid(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path class="grid" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>'


def _short(value: float) -> str:
    for size, name in ((1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:.3g}{name}"
    return f"{value:.3g}"


def _apart(places: Sequence[float], least: float) -> list[float]:
    """The places, moved so that no two are nearer to each other than that."""
    order = sorted(range(len(places)), key=places.__getitem__)
    moved = list(places)
    for before, after in pairwise(order):
        moved[after] = max(moved[after], moved[before] + least)
    return moved
