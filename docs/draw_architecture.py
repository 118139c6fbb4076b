"""Draw docs/architecture.svg: the two lanes, their stations, and the way of five journeys.

python docs/draw_architecture.py
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

WIDTH, STATION, HIGH = 1060, 112, 44
TOP = {"graph lane": 70, "kernel lane": 340}
STATIONS = {
    "learn": (0, "graph lane"),
    "models": (1, "graph lane"),
    "questions": (2, "graph lane"),
    "compile": (3, "graph lane"),
    "engines": (4, "graph lane"),
    "answers": (5, "graph lane"),
    "data": (0, "kernel lane"),
    "embeddings": (1, "kernel lane"),
    "kernels": (2, "kernel lane"),
    "linalg": (3, "kernel lane"),
    "gp, machines": (4, "kernel lane"),
    "estimators": (5, "kernel lane"),
}
#: Journey → color and stations in the order in which data passes them.
JOURNEYS = {
    "one case": ("#0072b2", ["models", "questions", "engines", "answers"]),
    "a table of cases": ("#d55e00", ["data", "questions", "compile", "engines", "answers"]),
    "learn a structure": ("#009e73", ["data", "learn", "models"]),
    "fit a process": ("#cc79a7", ["estimators", "kernels", "linalg", "gp, machines", "estimators"]),
    "learn a kernel tree": ("#8a6d00", ["data", "kernels", "embeddings", "models"]),
}


def center(station: str) -> tuple[float, float]:
    """The middle of a station's box."""
    column, lane = STATIONS[station]
    return 100 + column * 170, TOP[lane] + 60


def box(station: str) -> str:
    """A station: a box with its name."""
    x, y = center(station)
    return (
        f'<rect x="{x - STATION / 2}" y="{y - HIGH / 2}" width="{STATION}" height="{HIGH}" rx="8" class="station"/>'
        f'<text x="{x}" y="{y + 5}" text-anchor="middle">{station}</text>'
    )


def lane(name: str, y: float) -> str:
    """The ground of a lane, with its title."""
    return (
        f'<rect x="20" y="{y}" width="{WIDTH - 40}" height="120" rx="12" class="lane"/>'
        f'<text x="32" y="{y + 20}" class="title">{name}</text>'
    )


def arrow(start: str, stop: str, color: str, number: int, shift: float) -> str:
    """One leg of a journey, bent so that the journeys do not hide each other."""
    (x0, y0), (x1, y1) = center(start), center(stop)
    side = 1 if STATIONS[start][1] == "graph lane" else -1
    if y0 == y1:  # along a lane: an arc below the graph lane, above the kernel lane
        y0, y1 = y0 + side * HIGH / 2, y1 + side * HIGH / 2
        bend = side * (26 + shift + 0.11 * abs(x1 - x0))
        path = f"M{x0 + shift},{y0} C{x0 + shift},{y0 + bend} {x1 - shift},{y1 + bend} {x1 - shift},{y1}"
    else:
        y0, y1 = y0 + side * HIGH / 2, y1 - side * HIGH / 2
        middle = (y0 + y1) / 2 + shift
        path = f"M{x0 + shift},{y0} C{x0 + shift},{middle} {x1 + shift},{middle} {x1 + shift},{y1}"
    return f'<path d="{path}" stroke="{color}" class="leg" marker-end="url(#head{number})"/>'


def picture() -> str:
    """The whole drawing as SVG."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="580" viewBox="0 0 {WIDTH} 580" '
        'font-family="sans-serif" font-size="14">',
        "<style>.lane{fill:#f4f4f2}.station{fill:#fff;stroke:#444}.leg{fill:none;stroke-width:2.2}"
        ".title{fill:#666;font-size:13px}</style>",
        f'<rect width="{WIDTH}" height="580" fill="#fff"/>',
        '<text x="20" y="34" font-size="18">Two lanes, their stations, and five journeys</text>',
        *(lane(name, y) for name, y in TOP.items()),
    ]
    for number, (name, (color, stations)) in enumerate(JOURNEYS.items()):
        parts.append(
            f'<marker id="head{number}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" '
            f'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="{color}"/></marker>'
        )
        parts += [arrow(a, b, color, number, 10.0 * number - 20.0) for a, b in pairwise(stations)]
        x, y = 40 + 200 * number, 520
        parts.append(f'<path d="M{x},{y} h34" stroke="{color}" class="leg" marker-end="url(#head{number})"/>')
        parts.append(f'<text x="{x + 44}" y="{y + 5}">{name}</text>')
    parts += [box(station) for station in STATIONS]
    note = "bridge: embeddings give kernel models, which are asked as all other models are"
    parts.append(f'<text x="40" y="556" class="title">{note}</text></svg>')
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("architecture.svg").write_text(picture(), encoding="utf-8")
