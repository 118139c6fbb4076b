"""Values as text and as HTML: tables with bars, for terminals and notebooks. Takes plain values, knows no model.

Names come from files that anybody may have written: text never lets a control character through to the terminal,
and HTML is always escaped.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_BAR_COLOR = "#4c78a8"


class BeliefRows(NamedTuple):
    """A distribution as it is shown: whose it is, and a probability for each label."""

    name: str
    labels: Sequence[str]
    probabilities: Sequence[float]


class Listing(NamedTuple):
    """A value as it is shown: a title, and a table below it."""

    title: str
    header: Sequence[object] = ()
    rows: Sequence[Sequence[object]] = ()
    more: int = 0  # rows that are left out


class Shown:
    """A value that prints itself as text and as HTML, from what `_shown` lists.

    >>> class Pair(Shown):
    ...     def _shown(self):
    ...         return Listing("a pair", ("name", "value"), [("a", 1), ("b", 2)])
    >>> Pair()
    a pair
    name  value
    a     1
    b     2
    """

    __slots__ = ()

    def _shown(self) -> Listing:
        raise NotImplementedError

    def __repr__(self) -> str:
        shown = self._shown()
        lines = [clean(shown.title), text_table(shown.header, shown.rows) if shown.header else ""]
        return "\n".join([line for line in lines if line] + ([f"… and {shown.more:,} more"] if shown.more else []))

    def _repr_html_(self) -> str:
        shown = self._shown()
        left = [(f"… and {shown.more:,} more", *[""] * (len(shown.header) - 1))] if shown.more else []
        return html_table(shown.header, [*shown.rows, *left], caption=shown.title)


# ---------------------------------------------------------------------------------------------- small texts


def clean(text: object) -> str:
    r"""The text with control characters written out, so that no name can steer a terminal.

    >>> clean("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    shown = str(text)
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in shown)


def text_width(text: str) -> int:
    """Columns that a text takes on a terminal (wide characters two, combining marks none)."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def shorten(text: object, limit: int) -> str:
    """At most `limit` characters of a text, with … for what was cut.

    >>> shorten("pulmonary embolus", 10)
    'pulmonary…'
    """
    shown = clean(text)
    return shown if len(shown) <= limit else shown[: max(limit - 1, 0)] + "…"


def joined(key: object) -> str:
    """A name as it is, several names as `A, B`."""
    return ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)


def probability_text(p: float) -> str:
    """A probability with four decimals; a small one that is not zero keeps its size.

    >>> probability_text(0.25), probability_text(3e-9), probability_text(0.0), probability_text(1 - 1e-9)
    ('0.2500', '3.0e-09', '0', '1.0000')
    """
    if p == 0.0:
        return "0"
    if p == 1.0:
        return "1"
    return f"{p:.4f}" if not abs(p) < 0.00005 else f"{p:.1e}"


def count_text(n: float) -> str:
    """A count with separated thousands, or with its power of ten when it is huge.

    >>> count_text(12345), count_text(3e17)
    ('12,345', '3.0e+17')
    """
    return f"{n:,.0f}" if abs(n) < 1e12 else f"{n:.1e}"


def counted(**numbers: int) -> str:
    """Counts with their nouns, each in its right number.

    >>> counted(variable=2, edge=1, utility=3)
    '2 variables, 1 edge, 3 utilities'
    """
    many = {noun: noun[:-1] + "ies" if noun.endswith("y") else noun + "s" for noun in numbers}
    return ", ".join(f"{n} {noun if n == 1 else many[noun]}" for noun, n in numbers.items())


def bar(p: float, width: int = 12) -> str:
    """A bar of `width` columns filled to the fraction p, in eighths of a column.

    >>> bar(0.5, 4)
    '██  '
    """
    if not 0.0 <= p <= 1.0 + 1e-9:  # NaN and the like: no bar
        return " " * width
    eighths = round(min(p, 1.0) * width * 8)
    if eighths == 0 and p > 0.0:
        eighths = 1
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(width)


def fraction_done(done: int, total: int | None, *, noun: str = "cases") -> str:
    """How far a long work is: `12,000 of 50,000 cases (24 %)`."""
    if not total:
        return f"{done:,} {noun}"
    return f"{done:,} of {total:,} {noun} ({100 * done // total} %)"


# ----------------------------------------------------------------------------------------------- text tables


def _pad(text: str, width: int, right: bool) -> str:
    room = " " * max(width - text_width(text), 0)
    return room + text if right else text + room


def text_table(header: Sequence[object], rows: Iterable[Sequence[object]], *, right: Iterable[int] = ()) -> str:
    """Columns as wide as their longest cell, two spaces apart; columns in `right` are flush right.

    >>> print(text_table(["state", "p"], [["low", "0.25"], ["high", "0.75"]], right=[1]))
    state     p
    low    0.25
    high   0.75
    """
    lines = [[clean(cell) for cell in header], *([clean(cell) for cell in row] for row in rows)]
    if not any(lines[0]):
        del lines[0]
    if not lines:
        return ""
    flush = frozenset(right)
    widths = [max(text_width(line[j]) for line in lines) for j in range(len(lines[0]))]
    shown = ("  ".join(_pad(cell, widths[j], j in flush) for j, cell in enumerate(line)).rstrip() for line in lines)
    return "\n".join(shown)


def _visible(rows: BeliefRows, limit: int) -> tuple[list[tuple[str, float]], int, float]:
    """The pairs to show, how many are left out, and the mass left out; the likeliest stay, in their order."""
    pairs = list(zip(rows.labels, rows.probabilities, strict=True))
    if len(pairs) <= limit:
        return pairs, 0, 0.0
    best = sorted(range(len(pairs)), key=lambda i: (-pairs[i][1], i))[: limit - 1]
    kept = sorted(best)
    mass = sum(p for _, p in pairs) - sum(pairs[i][1] for i in kept)
    return [pairs[i] for i in kept], len(pairs) - len(kept), max(mass, 0.0)


def text_beliefs(
    beliefs: Iterable[BeliefRows], *, total: int | None = None, max_variables: int = 24, max_states: int = 12
) -> str:
    """Distributions under each other, with bars.

    >>> print(text_beliefs([BeliefRows("rain", ["no", "yes"], [0.25, 0.75])]))
    rain  no   ███           0.2500
          yes  █████████     0.7500
    """
    rows: list[tuple[str, str, str, str]] = []
    shown = 0
    for item in beliefs:
        if shown == max_variables:
            break
        shown += 1
        pairs, left, mass = _visible(item, max_states)
        name = shorten(item.name, 40)
        for label, p in pairs:
            rows.append((name, shorten(label, 32), bar(p), probability_text(p)))
            name = ""
        if left:
            rows.append(("", f"… {left} more", bar(mass), probability_text(mass)))
    table = text_table(("", "", "", ""), rows)
    missing = 0 if total is None else total - shown
    return table + (f"\n… and {missing} more variables" if missing > 0 else "")


# ----------------------------------------------------------------------------------------------- HTML tables


def html_table(
    header: Sequence[object], rows: Iterable[Sequence[object]], *, caption: str = "", right: Iterable[int] = ()
) -> str:
    """An HTML table with every cell escaped.

    >>> html_table(["a"], [["<b>"]])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    flush = frozenset(right)

    def cell(j: int, value: object, tag: str) -> str:
        style = ' style="text-align:right"' if j in flush else ""
        return f"<{tag}{style}>{escape(clean(value))}</{tag}>"

    head = "".join(cell(j, value, "th") for j, value in enumerate(header))
    body = "".join("<tr>" + "".join(cell(j, value, "td") for j, value in enumerate(row)) + "</tr>" for row in rows)
    title = f"<caption>{escape(clean(caption))}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _html_bar(p: float) -> str:
    width = min(max(p, 0.0), 1.0) * 100 if p == p else 0.0
    return (
        '<div style="width:8em;background:rgba(128,128,128,.18);border-radius:2px">'
        f'<div style="width:{width:.1f}%;background:{_BAR_COLOR};height:.8em;border-radius:2px"></div></div>'
    )


def html_beliefs(
    beliefs: Iterable[BeliefRows],
    *,
    caption: str = "",
    total: int | None = None,
    max_variables: int = 60,
    max_states: int = 24,
) -> str:
    """Distributions as one HTML table with bars; names and labels are escaped."""
    parts: list[str] = []
    shown = 0
    for item in beliefs:
        if shown == max_variables:
            break
        shown += 1
        pairs, left, mass = _visible(item, max_states)
        if left:
            pairs.append((f"… {left} more", mass))
        for k, (label, p) in enumerate(pairs):
            head = (
                f'<th rowspan="{len(pairs)}" style="text-align:left">{escape(clean(item.name))}</th>' if not k else ""
            )
            parts.append(
                f'<tr>{head}<td style="text-align:left">{escape(clean(label))}</td><td>{_html_bar(p)}</td>'
                f'<td style="text-align:right">{probability_text(p)}</td></tr>'
            )
    missing = 0 if total is None else total - shown
    if missing > 0:
        parts.append(f'<tr><td colspan="4" style="text-align:left">… and {missing} more variables</td></tr>')
    title = f'<caption style="text-align:left">{escape(clean(caption))}</caption>' if caption else ""
    return f"<table>{title}<tbody>{''.join(parts)}</tbody></table>"
