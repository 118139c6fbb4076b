"""Figures that can be read: texts large and dark enough as pages show them, legends beside the points, no empty axes.

The gallery's pictures are taken by `scraper`, which refuses others, so that `make docs` fails.
`python docs/sitetools/figures.py SCRIPT …` tells of scripts what is wrong with their figures.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["CONTRAST", "SMALLEST", "contrast", "faults", "scraper"]

SMALLEST = 10.0  #: pixels of a text's font as it is shown
CONTRAST = 4.5  #: of a text and what it stands on, as the WCAG define it


def contrast(ink: Any, ground: Any) -> float:
    """Ratio of the luminances of two colors, three numbers from 0 to 1 each: from 1 (equal) to 21 (black on white)."""
    both = np.array([ink, ground], dtype=float)
    linear = np.where(both <= 0.04045, both / 12.92, ((both + 0.055) / 1.055) ** 2.4)
    light = np.sort(linear @ [0.2126, 0.7152, 0.0722])
    return float((light[1] + 0.05) / (light[0] + 0.05))


def faults(figure: Any) -> list[str]:
    """Texts that are too small, or too pale for what most of them stands on; legends over points; axes without data."""
    texts, ground = _drawn(figure)
    found = [f"nothing is drawn in axes {i}" for i, ax in enumerate(figure.axes) if _is_empty(ax)]
    found += [f"the legend of axes {i} covers points" for i, ax in enumerate(figure.axes) if _is_covered(ax)]
    for words, size, ink, box in texts:
        name = " ".join(words.split())[:30]
        if size < SMALLEST - 0.05:
            found.append(f"{name!r} has {size:.1f} pixels")
        below = ground[box].reshape(-1, 3)
        if len(below):
            below = np.median(below, axis=0)
            ratio = contrast(ink[3] * ink[:3] + (1 - ink[3]) * below, below)
            if ratio < CONTRAST:
                found.append(f"{name!r} has contrast {ratio:.1f}")
    return list(dict.fromkeys(found))


def _drawn(figure: Any) -> tuple[list[tuple[str, float, Any, Any]], Any]:
    """Every line of text (words, pixels of its font, color, place) and the picture (rows, columns, 3) without them."""
    canvas, texts = figure.canvas, []
    renderer = canvas.get_renderer()

    def note(gc: Any, x: float, y: float, words: str, font: Any, angle: float, ismath: Any = False, mtext: Any = None):
        width, height, _ = renderer.get_text_width_height_descent(words, font, ismath)
        turn = np.deg2rad(angle)
        right, up = x + np.array([0, width]) * np.cos(turn), y - np.array([0, width]) * np.sin(turn)
        corners_x = np.append(right, right - height * np.sin(turn))
        corners_y = np.append(up, up - height * np.cos(turn))
        box = tuple(slice(max(int(c.min()), 0), max(int(c.max()) + 1, 0)) for c in (corners_y, corners_x))
        color = gc.get_rgb()
        ink = np.array([*color[:3], gc.get_alpha() if len(color) < 4 or gc.get_forced_alpha() else color[3]])
        texts.append((words, renderer.points_to_pixels(font.get_size_in_points()), ink, box))

    renderer.draw_text = note
    try:
        canvas.draw()
        ground = np.asarray(canvas.buffer_rgba())[..., :3] / 255.0
    finally:
        del renderer.draw_text
    return texts, ground


def _is_empty(axes: Any) -> bool:
    """Whether axes are shown with nothing in them, as when a later cell of a script draws there."""
    return axes.get_visible() and axes.axison and not (axes.has_data() or axes.texts or axes.artists or axes.patches)


def _is_covered(axes: Any) -> bool:
    """Whether a legend lies over points or corners of lines."""
    from matplotlib.collections import PathCollection

    legend = axes.get_legend()
    if legend is None or not legend.get_visible():
        return False
    box = legend.get_window_extent()
    points = [line.get_transform().transform(line.get_xydata()) for line in axes.lines if line.get_visible()]
    points += [
        made.get_offset_transform().transform(np.ma.filled(made.get_offsets(), np.nan))
        for made in axes.collections
        if isinstance(made, PathCollection)
    ]
    return any(bool(np.all((at > box.min) & (at < box.max), axis=1).any()) for at in points)


def scraper(block: Any, block_vars: Any, gallery_conf: Any, **kwargs: Any) -> str:
    """Pictures of the open figures of a script, for sphinx-gallery."""
    import matplotlib.pyplot as plt
    from sphinx_gallery.scrapers import matplotlib_scraper

    found = [fault for number in plt.get_fignums() for fault in faults(plt.figure(number))]
    if found:
        plt.close("all")
        raise ValueError(f"a figure of {block_vars['src_file']} cannot be read: " + "; ".join(found))
    return str(matplotlib_scraper(block, block_vars, gallery_conf, **kwargs))


def main() -> int:
    """Run scripts, and tell what is wrong with their figures."""
    import runpy

    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    wrong = 0
    for script in map(Path, sys.argv[1:]):
        runpy.run_path(str(script), run_name="__main__")
        for number in plt.get_fignums():
            for fault in faults(plt.figure(number)):
                wrong += 1
                sys.stdout.write(f"{script.name}, figure {number}: {fault}\n")
        plt.close("all")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
