"""`python -m benchmarks page`: writes what docs/benchmarks.md, docs/curves.md and README tell of docs/measured anew.

Every row of those tables is declared in `page_rows`: what was done, in which cells of which result file its figure
stands, and its goal. Nothing is written by hand: a row whose cells are not in the files says "not measured".
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import Failure, Measurement
from benchmarks.records import FORMAT
from benchmarks.tables import Ratio, Result, best_of, markdown, ratio_of, seconds, size

__all__ = ["Row", "faults_of", "main", "read", "rewritten"]

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
MEASURED = DOCS / "measured"
NOT_MEASURED = "not measured"
OURS = "gramgraph"
#: Contestants go by the module that is imported; on the page by their own names.
NAMES = {
    "pyagrum": "pyAgrum", "sklearn": "scikit-learn", "sklearn linear": "LinearSVC", "sklearnex": "scikit-learn-intelex",
    "sklearn_crfsuite": "sklearn-crfsuite", "cv2": "OpenCV", "gpytorch": "GPyTorch", "numpy": "NumPy",
}  # fmt: skip
RATES = {"rate": "wall", "cpu rate": "cpu"}
#: Tables with at most so many figures show each of them.
FEW = 3

Files = Mapping[str, Mapping[str, Any]]  # module → its result file


@dataclass(frozen=True)
class Row:
    """One row of the page.

    text : what is done
    module, task, rows : the cells; no rows: all of the task
    peers : those who did the same, of whom the fastest counts; without any the figure is our own
    figure : "cpu" (seconds, or their ratio), "wall", "peak" (bytes), "rate" and "cpu rate" (units a second by the clock
        and of CPU time), or the name of one of the cell's values: a time, or with `plain` a number as it is
    goal : the least ratio or rate, the most seconds or bytes, that every one of the cells should have
    ours, peer_task : contestant, and the peers' name of the task, where they are not "gramgraph" and `task`
    missed : why the goal is not reached; asked for where it is not
    """

    text: str
    module: str
    task: str
    rows: tuple[str, ...] = ()
    peers: tuple[str, ...] = ()
    figure: str = "cpu"
    goal: float | None = None
    ours: str = OURS
    peer_task: str = ""
    plain: bool = False
    missed: str = ""

    @property
    def more_is_better(self) -> bool:
        return bool(self.peers) or self.plain or self.figure in RATES


# --- reading ------------------------------------------------------------------------------------------------------


def read(folder: Path = MEASURED) -> dict[str, dict[str, Any]]:
    """The result files by module; one of another format is an error."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        made = json.loads(path.read_text(encoding="utf-8"))
        if made.get("format") != FORMAT:
            raise ValueError(f"{path.name} has format {made.get('format')!r}, not {FORMAT}: measure again with --json")
        found[str(made["module"])] = made
    return found


def _result(cell: Mapping[str, Any], figure: str) -> Result | None:
    """What a cell says about a figure, as a time; None where it says nothing."""
    if "stopped" in cell:
        return Failure("stopped", limit=float(cell["stopped"]))
    if "cpu" not in cell:
        return Failure(str(cell.get("failure") or cell.get("not run")), tried="failure" in cell)
    value = cell.get(figure, cell.get("values", {}).get(figure))
    if figure in RATES:
        value = 1.0 / cell[RATES[figure]] if cell[RATES[figure]] else None
    if not value:
        return None  # a cell that measured memory has no time, and the other way round
    return Measurement(float(value), float(value), int(cell["repeats"]), int(cell["units"]))


def _cells(file: Mapping[str, Any], row: Row) -> dict[str, dict[str, Result]]:
    """Row of the file → contestant → what it did."""
    found: dict[str, dict[str, Result]] = {}
    for cell in file["cells"]:
        mine = cell["contestant"] == row.ours and cell["task"] == row.task
        theirs = cell["contestant"] in row.peers and cell["task"] == (row.peer_task or row.task)
        if (mine or theirs) and (not row.rows or cell["row"] in row.rows):
            result = _result(cell, row.figure)
            if result is not None:
                found.setdefault(cell["row"], {})[cell["contestant"]] = result
    return {name: found[name] for name in row.rows if name in found} if row.rows else found


@dataclass(frozen=True)
class Told:
    """A row of the page with what the files say: figures by row of the file, in words, and whether the goal is met."""

    figures: Mapping[str, Ratio]
    words: str
    reached: bool | None  # None: no goal, or no figure


def told(row: Row, files: Files) -> Told:
    """What the files say about a row."""
    file = files.get(row.module)
    cells = {} if file is None else _cells(file, row)
    figures: dict[str, Ratio] = {}
    cells = {name: by for name, by in cells.items() if not _idle(by.get(row.ours))}
    for name, by in cells.items():
        mine = by.get(row.ours)
        made = (
            ratio_of(mine, best_of(by.get(peer) for peer in row.peers))
            if row.peers
            else Ratio(mine.cpu)
            if isinstance(mine, Measurement)
            else None
        )
        if made is not None:
            figures[name] = made
    if not figures:
        return Told({}, NOT_MEASURED, None)
    reached = None
    if row.goal is not None:
        reached = all(f.value >= row.goal if row.more_is_better else f.value <= row.goal for f in figures.values())
    words = _words(row, figures, len(cells))
    if row.figure in RATES:
        counts = {mine.units for by in cells.values() if isinstance(mine := by.get(row.ours), Measurement)}
        words += f" ({', '.join(f'{n:,}' for n in sorted(counts))} in all)"
    return Told(figures, words, reached)


def _idle(mine: Result | None) -> bool:
    return isinstance(mine, Failure) and not mine.tried


def _shown(row: Row, figure: Ratio) -> str:
    if row.peers:
        return str(figure)
    if row.figure == "peak":
        return size(figure.value)
    if row.figure in RATES:
        return f"{figure.value:,.0f} a second"
    return f"{figure.value:.3g}×" if row.plain else seconds(figure.value)


def _words(row: Row, figures: Mapping[str, Ratio], asked: int) -> str:
    """Each of a few figures; of many the median and the worst, with its name."""
    if len(figures) <= FEW and (asked == len(figures) or not row.peers):
        return ", ".join(_shown(row, figure) for figure in figures.values())
    worst = (min if row.more_is_better else max)(figures, key=lambda name: figures[name].value)
    middle = Ratio(statistics.median(figure.value for figure in figures.values()))
    label = "smallest" if row.more_is_better else "largest"
    text = f"median {_shown(row, middle)}, {label} {_shown(row, figures[worst])} ({worst})"
    rest = f", {asked - len(figures)} more without a figure of the peer" if asked > len(figures) else ""
    return f"{text}; {len(figures)} rows{rest}"


# --- writing ------------------------------------------------------------------------------------------------------


def _against(row: Row) -> str:
    return ", ".join(dict.fromkeys(map(_name, row.peers)))


def _goal(row: Row, found: Told) -> str:
    if row.goal is None:
        return ""
    wanted = _shown(row, Ratio(row.goal))
    sign = "≥" if row.more_is_better else "≤"
    verdict = {True: ": reached", False: f": missed; {row.missed}".rstrip("; "), None: ""}[found.reached]
    return f"{sign} {wanted}{verdict}"


def table(rows: Iterable[Row], files: Files) -> str:
    """The rows as Markdown."""
    lines = []
    for row in rows:
        found = told(row, files)
        lines.append([row.text, _against(row), found.words, _goal(row, found), f"`{row.module}`"])
    return markdown(["task", "against", "figure", "goal", "module"], lines, texts=5)


def conditions(modules: Iterable[str], files: Files) -> str:
    """On what, with which versions and under which load the files were made, and what was wrong in them."""
    lines = []
    for name in dict.fromkeys(modules):
        if name not in files:
            lines.append([f"`{name}`", NOT_MEASURED, "", "", "", ""])
            continue
        machine, versions = files[name]["machine"], files[name]["versions"]
        where = f"{machine['processor']}, {machine['cores']} cores, {machine['system']}, Python {machine['python']}"
        first, last = machine["load"]
        busy = "busy" if max(first, last) > machine["cores"] else "quiet"
        used = ", ".join(f"{package} {number}" for package, number in versions.items())
        faults = "; ".join(files[name]["faults"]) or "none"
        lines.append([f"`{name}`", where, machine["tier"], f"{busy}: {first:g} to {last:g}", used, faults])
    return markdown(["module", "machine", "tier of loops", "load", "versions", "faults"], lines, texts=6)


def per_case(networks: Sequence[str], files: Files) -> str:
    """Seconds a case of different cases, network by network, of ours and the better engine of pyAgrum."""
    file = files.get("exact_discrete")
    peers = ("pyagrum lazy", "pyagrum shafer")
    row = Row("", "exact_discrete", "distinct", tuple(networks), peers)
    cells = {} if file is None else _cells(file, row)
    lines = []
    for label, who in (("gramgraph", (OURS,)), ("pyAgrum, better engine", peers)):
        found = [best_of(cells.get(name, {}).get(one) for one in who) for name in networks]
        lines.append([label, *(_time(one) for one in found)])
    return markdown(["different cases, per case", *networks], lines)


def values_table(module: str, rows: Sequence[str], values: Mapping[str, str], files: Files, digits: int = 3) -> str:
    """What the cells of these rows say beside times: a line a contestant; `values` give each its heading."""
    cells = files[module]["cells"] if module in files else []
    lines = [
        [
            cell["row"],
            cell["contestant"],
            *(f"{cell['values'][v]:.{digits}g}" if v in cell["values"] else "" for v in values),
        ]
        for cell in cells
        if cell["row"] in rows and "values" in cell and not cell["values"].keys().isdisjoint(values)
    ]
    lines += [[row, "", *[NOT_MEASURED] * len(values)] for row in rows if row not in {line[0] for line in lines}]
    return markdown(["data", "who", *values.values()], lines, texts=2)


def first_answers(files: Files) -> str:
    """CPU seconds of a process from an empty cache, of a second one with a warm cache, and of peers, task by task."""
    lines = []
    for name, by in _processes(files).items():
        theirs = [f"{_name(who)} {_time(found)}" for (who, _), found in by.items() if who != OURS]
        first, second = by.get((OURS, "first process")), by.get((OURS, "second process"))
        lines.append([name, _time(first), _time(second), ", ".join(theirs)])
    head = ["from the start of the interpreter", "first process, empty cache", "second process", "peers"]
    return markdown(head, lines) if lines else NOT_MEASURED


def first_answers_in_words(names: Sequence[str], files: Files) -> str:
    """The first processes of `first_answers` of some tasks in one sentence, the fastest peer of each in brackets."""
    found, told_of = _processes(files), []
    for name in names:
        by = found.get(name, {})
        peers = {who: result.cpu for (who, _), result in by.items() if who != OURS and isinstance(result, Measurement)}
        best = min(peers, key=peers.__getitem__, default=None)
        beside = f" ({_name(best)} {seconds(peers[best])})" if best else ""
        told_of.append(f"{name} {_time(by.get((OURS, 'first process')))}{beside}")
    return f"First answer, from an empty compile cache and with all imports, CPU: {'; '.join(told_of)}."


def _processes(files: Files) -> dict[str, dict[tuple[str, str], Result]]:
    """Task of `cold_start` → (contestant, first or second process) → what it took."""
    found: dict[str, dict[tuple[str, str], Result]] = {}
    for cell in files["cold_start"]["cells"] if "cold_start" in files else []:
        result = _result(cell, "cpu")
        if result is not None:
            found.setdefault(cell["row"], {})[cell["contestant"], cell["task"]] = result
    return found


def _name(contestant: str) -> str:
    return NAMES.get(contestant, NAMES.get(contestant.split()[0], contestant.split()[0]))


def roofline(files: Files) -> str:
    """Work and time of a case against what this machine can do at most."""
    cells = files["wide_tables"]["cells"] if "wide_tables" in files else []
    by = {(cell["row"], cell["task"]): cell for cell in cells if cell["contestant"] == OURS and cell.get("cpu")}
    lines = []
    for (row, task), cell in by.items():
        if task == "roof distinct" and (row, "distinct") in by:
            v, ours = cell["values"], by[row, "distinct"]["cpu"]
            work = [f"{v['flops'] / 1e6:.3g} Mflop", f"{v['bytes'] / 1e6:.3g} MB"]
            at_most = [seconds(v["flops"] / v["flop rate"]), seconds(v["bytes"] / v["byte rate"])]
            rates = f"{v['flop rate'] / 1e9:.3g} Gflop/s, {v['byte rate'] / 1e9:.3g} GB/s"
            lines.append([row, *work, *at_most, seconds(ours), f"{cell['cpu'] / ours:.0%}", rates])
    head = ["a case of", "operations", "bytes moved", "at the rate of a product", "at the rate of memory", "our time"]
    return markdown([*head, "share of the roof", "rates of the machine"], lines) if lines else NOT_MEASURED


def _time(found: Result | None) -> str:
    if isinstance(found, Measurement):
        return seconds(found.cpu)
    return NOT_MEASURED if found is None or found.limit is None else f"stopped after {found.limit:g} s"


def rewritten(text: str, parts: Mapping[str, str]) -> str:
    """The page with its marked parts replaced; a part without its marks, or marks without a part, is an error."""
    marks = re.findall(r"<!-- measured (\w+): begin -->", text)
    if sorted(marks) != sorted(parts):
        raise ValueError(f"the page marks the parts {sorted(marks)}, but there are {sorted(parts)}")
    for name, part in parts.items():
        begin, end = (f"<!-- measured {name}: {side} -->" for side in ("begin", "end"))
        before, _, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not closed:
            raise ValueError(f"the part {name} has no end")
        text = f"{before}{begin}\n{part.strip()}\n{end}{after}"
    return text


def faults_of(rows: Iterable[Row], files: Files) -> list[str]:
    """Goals that are missed without a reason, and cells that a row names but its file does not hold."""
    found = []
    for row in rows:
        now = told(row, files)
        if now.reached is False and not row.missed:
            found.append(f"{row.text}: {now.words} misses the goal, and `missed` does not say why")
        missing = [name for name in row.rows if now.figures and name not in now.figures]
        if missing:
            found.append(f"{row.text}: {row.module}.json has no figure of {', '.join(missing)}")
    return found


def main() -> int:
    """Rewrite the pages; 1 where a goal is missed without a reason."""
    from benchmarks.page_rows import ROWS, made

    files = read()
    for path, text in made(files).items():
        path.write_text(text, encoding="utf-8")
    found = faults_of(ROWS, files)
    for fault in found:
        print(fault, file=sys.stderr)
    return 1 if found else 0
