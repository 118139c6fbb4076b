"""Linear-chain conditional random fields against sklearn-crfsuite: chunking (CoNLL 2000), names (CoNLL 2002, Spanish).

`python -m benchmarks crf`. Both get the same features (word, suffixes, shape, part of speech, and those of both
neighbors), penalties and rules for stopping. Tasks: `fit`, `tag` (dicts made anew, as a tagger meets them) and `tag one
by one` (a call a sentence). The answers are the objective at the end (relative), and F1 of whole chunks must be within
0.2 points.

Memory is measured twice, each time in a process of its own: `growth` while it learns, on top of the data and of what
was loaded and compiled before; and the peak of the whole process, from its start, after learning (`process, fit`) and
after tagging (`process, tag`), with the interpreter, all imports and the data, the same for both. `process beside
scikit-learn` is the peak after tagging when the process had imported scikit-learn anyway. Twelve iterations are enough
for these.
"""

from __future__ import annotations

import gzip
import importlib
import platform
import resource
from collections.abc import Callable
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
POINTS = 0.2
ITERATIONS = 12  # for memory: every vector that learning keeps is there
BESIDE = "process beside scikit-learn"
#: (name, task, value that is compared; nothing: the time of the task itself) and what the ratios should be.
FIGURES = (
    ("fit", "time", ""), ("tag", "time", "tag"), ("tag one by one", "time", "tag one by one"),
    ("growth", "growth", "growth"), ("process, fit", "process", "process, fit"),
    ("process, tag", "process", "process, tag"), (BESIDE, BESIDE, "process, tag"),
)  # fmt: skip
WANTED = {name: 2.0 if task == "time" else 1.0 for name, task, _ in FIGURES}


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


def data_of(row: str) -> tuple[Any, Any, Any]:
    """(X, y, sentences to tag)."""
    train, test = (sentences(path) for path in FILES[row])
    return [features(s) for s in train], [[token[-1] for token in s] for s in train], test


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement:
    """`time`: fit once, tag best of five, every time from new dicts; otherwise memory, in bytes."""
    if cell.task == "growth":
        return growth(cell)
    if cell.task != "time":
        return whole_process(cell)
    if "data" not in context:
        context["data"] = data_of(cell.row)
    (X, y, test), who, options = context["data"], cell.contestant, OPTIONS[cell.row]
    clock: dict[str, Any] = {}
    cpu, wall, _ = measure(lambda: clock.update(model=made(who, options).fit(X, y)), budget=0.0, most=1, warm=False)
    model = clock["model"]
    values = {"objective": objective(who, model)}
    ways: dict[str, Callable[[Any], Any]] = {
        "tag": model.predict,
        "tag one by one": lambda given: [model.predict_single(x) for x in given],
    }
    for name, tag in ways.items():
        best = (np.inf, np.inf)
        for _ in range(5):
            given = [features(s) for s in test]
            box: dict[str, Any] = {}
            found = measure(
                lambda box=box, tag=tag, given=given: box.update(y=tag(given)), budget=0.0, most=1, warm=False
            )
            best = min(best, found[:2])
        values |= {f"{name}, cpu": best[0], f"{name}, wall": best[1]}
    truth = [[token[-1] for token in s] for s in test]
    values["f1"] = chunk_f1(truth, [list(labels) for labels in box["y"]])
    return Measurement(cpu, wall, 1, 1, values=values)


def growth(cell: Cell) -> Measurement:
    """How much the process grows while it learns; everything that is imported or compiled is there before."""
    X, y, _ = data_of(cell.row)
    options = OPTIONS[cell.row] | {"max_iterations": ITERATIONS}
    made(cell.contestant, options).fit(X[:1000], y[:1000]).predict(X[:20])
    with PeakMemory() as memory:
        made(cell.contestant, options).fit(X, y)
    return Measurement(0.0, 0.0, 1, 1, values={"growth": memory.peak})


def whole_process(cell: Cell) -> Measurement:
    """The peaks of the process since it began, as a user's script has them: nothing is warmed up."""
    if cell.task == BESIDE:
        importlib.import_module("sklearn.base")
    X, y, test = data_of(cell.row)
    model = made(cell.contestant, OPTIONS[cell.row] | {"max_iterations": ITERATIONS}).fit(X, y)
    values = {"process, fit": float(high_water())}
    model.predict([features(s) for s in test])
    values["process, tag"] = float(high_water())
    return Measurement(0.0, 0.0, 1, 1, values=values)


def high_water() -> int:
    """The largest resident set of this process so far, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if platform.system() == "Darwin" else peak * 1024)


def report(runner: Runner, *, quick: bool = False, limit: float | None = None, **_: Any) -> tuple[str, list[str]]:
    """The table, and what went wrong on our side."""
    results: dict[tuple[str, str, str], Result] = {}
    lines: list[list[object]] = []
    faults: list[str] = []
    ratios: dict[str, list[Ratio]] = {}
    for row in ("names",) if quick else tuple(FILES):
        for task in ("time", "growth", "process", BESIDE):
            for who in (OURS, PEER):
                cell = Cell("crf", row, task, who, 0.0, limit or 900.0, fresh=task != "time")
                results[row, task, who] = runner.run(cell)
        for name, task, key in FIGURES:
            a, b = (_cost(results[row, task, who], key) for who in (OURS, PEER))
            ratio = ratio_of(a, b)
            if ratio is not None:
                ratios.setdefault(name, []).append(ratio)
            show = shown if task == "time" else _megabytes
            lines.append([row, name, show(a), show(b), ratio or ""])
        mine, theirs = (results[row, "time", who] for who in (OURS, PEER))
        if isinstance(mine, Measurement):
            other = theirs.values if isinstance(theirs, Measurement) else {}
            for key, digits in (("f1", 2), ("objective", 3)):
                peer = f"{other[key]:.{digits}f}" if other else ""
                lines.append([row, key, f"{mine.values[key]:.{digits}f}", peer, ""])
            if other and abs(mine.values["f1"] - other["f1"]) > POINTS:
                faults.append(f"{row}: F1 differs by more than {POINTS} points")
            if other and mine.values["objective"] > other["objective"] * 1.001:
                faults.append(f"{row}: the objective is above that of {PEER}")
    head = versions(["gramgraph", "sklearn-crfsuite", "python-crfsuite", "scikit-learn", "numba", "numpy", "scipy"])
    tail = "\n".join(f"- {name}: {summary(found, Target(each=WANTED[name]))}" for name, found in ratios.items())
    table = markdown(["data", "task", "gramgraph", "sklearn-crfsuite", "ratio"], lines)
    return f"# Conditional random fields\n\n{head}\n\n{table}\n\n{tail}\n", faults + failures(results)


def _cost(found: Result, key: str) -> Result:
    """Seconds, or bytes in the place of seconds."""
    if isinstance(found, Failure) or not key:
        return found
    if key in found.values:
        return Measurement(found.values[key], found.values[key], 1, 1)
    return Measurement(found.values[f"{key}, cpu"], found.values[f"{key}, wall"], 5, 1)


def _megabytes(found: Result) -> str:
    return found.reason if isinstance(found, Failure) else f"{found.cpu / 1e6:.0f} MB"
