"""Linear-chain conditional random fields against sklearn-crfsuite: chunking (CoNLL 2000), names (CoNLL 2002, Spanish).

`python -m benchmarks crf`. Both get the same features (word, suffixes, shape, part of speech, and those of both
neighbors), penalties and rules for stopping. Tasks: `fit` and `tag` (dicts made anew, as a tagger meets them). The
answers are the objective at the end (relative), and F1 of whole chunks must be within 0.2 points. Memory is the growth
of the process while it learns, on top of the data and of what was imported.
"""

from __future__ import annotations

import gzip
from typing import Any

import numpy as np

from benchmarks.harness import Cell, Failure, Measurement, PeakMemory, Runner, measure, versions
from benchmarks.networks import data_folder
from benchmarks.tables import Ratio, Result, Target, failures, markdown, ratio_of, shown, summary

__all__ = ["chunk_f1", "report", "run_cell"]

OURS, PEER = "gramgraph", "sklearn_crfsuite"
FILES = {
    "chunking": ("conll2000/train.txt.gz", "conll2000/test.txt.gz"),
    "names": ("conll2002/esp.train.gz", "conll2002/esp.testb.gz"),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "chunking": {"c2": 1.0},
    "names": {"c1": 0.1, "c2": 0.1, "max_iterations": 100, "all_possible_transitions": True},
}
WANTED = 2.0
POINTS = 0.2


def sentences(path: str) -> list[list[tuple[str, ...]]]:
    folder = data_folder()
    if folder is None:
        raise FileNotFoundError("no data: set GRAMGRAPH_DATA")
    found: list[list[tuple[str, ...]]] = [[]]
    with gzip.open(folder / "seq" / path, "rt", encoding="utf-8") as file:
        for line in file:
            fields = tuple(line.split())
            if fields:
                found[-1].append(fields)
            elif found[-1]:
                found.append([])
    return found if found[-1] else found[:-1]


def features(sentence: list[tuple[str, ...]]) -> list[dict[str, Any]]:
    """Word, suffixes, shape and part of speech of every token, and of its neighbors."""
    made: list[dict[str, Any]] = []
    for i, (word, tag, *_) in enumerate(sentence):
        token: dict[str, Any] = {
            "bias": 1.0, "word": word.lower(), "word[-3:]": word[-3:], "word[-2:]": word[-2:], "upper": word.isupper(),
            "title": word.istitle(), "digit": word.isdigit(), "tag": tag, "tag[:2]": tag[:2],
        }  # fmt: skip
        for at, name, edge in ((i - 1, "-1:", "BOS"), (i + 1, "+1:", "EOS")):
            if 0 <= at < len(sentence):
                other, tag = sentence[at][:2]
                token |= {
                    f"{name}word": other.lower(),
                    f"{name}title": other.istitle(),
                    f"{name}upper": other.isupper(),
                }
                token |= {f"{name}tag": tag, f"{name}tag[:2]": tag[:2]}
            else:
                token[edge] = True
        made.append(token)
    return made


def chunks(labels: list[str]) -> set[tuple[str, int, int]]:
    """(kind, first, behind the last) of the chunks that B-x and I-x write; an I-x after another kind opens one."""
    found = set()
    kind, first = "", 0
    for t, label in enumerate([*labels, "O"]):
        mark, _, name = label.partition("-")
        if kind and (mark != "I" or name != kind):
            found.add((kind, first, t))
            kind = ""
        if mark in ("B", "I") and not kind:
            kind, first = name, t
    return found


def chunk_f1(truth: list[list[str]], found: list[list[str]]) -> float:
    """F1 of whole chunks, in points."""
    right = wanted = given = 0
    for a, b in zip(truth, found, strict=True):
        A, B = chunks(a), chunks(b)
        right, wanted, given = right + len(A & B), wanted + len(A), given + len(B)
    return 200.0 * right / max(1, wanted + given)


def made(who: str, options: dict[str, Any]) -> Any:
    if who == OURS:
        from gramgraph.sequences import LinearChainCRF

        return LinearChainCRF(**options)
    from sklearn_crfsuite import CRF

    return CRF(algorithm="lbfgs", **options)


def objective(who: str, model: Any) -> float:
    return float(model.objective_ if who == OURS else model.training_log_.last_iteration["loss"])


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement:
    """`fit`: once, with the memory it takes; `tag`: best of five, every time from new dicts."""
    train, test = (sentences(path) for path in FILES[cell.row])
    X, y = [features(s) for s in train], [[token[-1] for token in s] for s in train]
    options, who = OPTIONS[cell.row], cell.contestant
    few = made(who, options | {"max_iterations": 2}).fit(X[:20], y[:20])
    few.predict(X[:20])  # what is compiled is loaded
    with PeakMemory() as memory:
        clock = {}
        cpu, wall, _ = measure(lambda: clock.update(model=made(who, options).fit(X, y)), budget=0.0, most=1, warm=False)
    model = clock["model"]
    truth = [[token[-1] for token in s] for s in test]
    tag_cpu = tag_wall = np.inf
    for _ in range(5):
        given = [features(s) for s in test]
        box: dict[str, Any] = {}
        c, w, _ = measure(
            lambda box=box, given=given: box.update(y=model.predict(given)), budget=0.0, most=1, warm=False
        )
        if c < tag_cpu:
            tag_cpu, tag_wall = c, w
    f1 = chunk_f1(truth, [list(labels) for labels in box["y"]])
    values = {"f1": f1, "objective": objective(who, model), "tag_cpu": tag_cpu, "tag_wall": tag_wall}
    return Measurement(cpu, wall, 1, 1, peak=memory.peak, values=values)


def report(runner: Runner, *, quick: bool = False, limit: float | None = None, **_: Any) -> tuple[str, list[str]]:
    """The table, and what went wrong on our side."""
    results: dict[tuple[str, str, str], Result] = {}
    lines: list[list[object]] = []
    faults: list[str] = []
    ratios: dict[str, list[Ratio]] = {"fit": [], "tag": [], "memory": []}
    for row in ("names",) if quick else tuple(FILES):
        for who in (OURS, PEER):
            results[row, "fit", who] = runner.run(Cell("crf", row, "fit", who, 0.0, limit or 900.0, fresh=True))
        mine, theirs = results[row, "fit", OURS], results[row, "fit", PEER]
        for task in ratios:
            a, b = (_cost(found, task) for found in (mine, theirs))
            ratio = ratio_of(a, b) if task != "memory" else None
            if task == "memory" and isinstance(mine, Measurement) and isinstance(theirs, Measurement):
                ratio = Ratio((theirs.peak or 0) / max(1, mine.peak or 1))
            if ratio is not None:
                ratios[task].append(ratio)
            show = _megabytes if task == "memory" else shown
            lines.append([row, task, show(a), show(b), ratio or ""])
        if isinstance(mine, Measurement):
            other = theirs.values if isinstance(theirs, Measurement) else {}
            for key, digits in (("f1", 2), ("objective", 3)):
                peer = f"{other[key]:.{digits}f}" if other else ""
                lines.append([row, key, f"{mine.values[key]:.{digits}f}", peer, ""])
            if other and abs(mine.values["f1"] - other["f1"]) > POINTS:
                faults.append(f"{row}: F1 differs by more than {POINTS} points")
            if other and mine.values["objective"] > other["objective"] * 1.001:
                faults.append(f"{row}: the objective is above that of {PEER}")
    head = versions(["gramgraph", "sklearn-crfsuite", "python-crfsuite", "numba", "numpy"])
    wanted = {"fit": WANTED, "tag": WANTED, "memory": 1.0}
    tail = "\n".join(
        f"- {task}: {summary(found, Target(each=wanted[task]))}" for task, found in ratios.items() if found
    )
    table = markdown(["data", "task", "gramgraph", "sklearn-crfsuite", "ratio"], lines)
    return f"# Conditional random fields\n\n{head}\n\n{table}\n\n{tail}\n", faults + failures(results)


def _cost(found: Result, task: str) -> Result:
    if isinstance(found, Failure) or task != "tag":
        return found
    return Measurement(found.values["tag_cpu"], found.values["tag_wall"], 5, 1)


def _megabytes(found: Result) -> str:
    return found.reason if isinstance(found, Failure) else f"{(found.peak or 0) / 1e6:.0f} MB"
