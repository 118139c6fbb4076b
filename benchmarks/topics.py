"""Topic models against tomotopy (tokens per second) and scikit-learn (seconds and held-out perplexity).

`python -m benchmarks topics` (`--tasks "fit reuters"`: only these rows). One thread, CPU time. Collections: those below
`kernel/lda` of the reference data, and one that is drawn from the model (2,000 documents of 150 words, 5,000 words, 20
topics). "sweep": tokens per second of collapsed Gibbs sampling. "fit": a whole fit with the settings of each library,
`method="collapsed"` of ours and the batch fit of scikit-learn, and the left-to-right perplexity of a tenth of the
documents that was held out, by the same estimate for all; the third row has scikit-learn's priors too. "memory": peak
of 100,000 documents of 100 words, a new process each.
"""

from __future__ import annotations

import gzip
import resource
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Cell, Measurement, Runner, versions
from benchmarks.networks import data_folder
from benchmarks.tables import Result, failures, markdown

__all__ = ["report", "run_cell"]

T = 20
SEEDS = 3
FILES = {"reuters": "reuters.ldac.gz", "ap": "ap.dat.gz"}
CONTESTANTS = {
    "sweep": ("gramgraph gibbs", "tomotopy"),
    "fit": ("sklearn batch", "gramgraph collapsed", "gramgraph collapsed, same priors"),
    "memory": ("gramgraph gibbs", "gramgraph collapsed", "gramgraph variational", "gramgraph online"),
}


def cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and what was made."""
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def read_ldac(path: Path) -> Any:
    """Counts in the format of lda-c."""
    import scipy.sparse

    with gzip.open(path, "rt") as lines:
        rows = [[pair.split(":") for pair in line.split()[1:]] for line in lines]
    index = np.array([int(w) for row in rows for w, _ in row])
    count = np.array([int(c) for row in rows for _, c in row])
    ptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return scipy.sparse.csr_matrix((count, index, ptr), shape=(len(rows), index.max() + 1))


def drawn(n: int = 2000, length: int = 150, n_words: int = 5000) -> Any:
    """Documents of the model itself."""
    import scipy.sparse

    rng = np.random.default_rng(0)
    phi = rng.dirichlet(np.full(n_words, 0.05), T)
    theta = rng.dirichlet(np.full(T, 0.1), n)
    z = np.array([rng.choice(T, length, p=p) for p in theta]).ravel()
    places = np.array([np.searchsorted(np.cumsum(p), rng.random(n * length)) for p in phi])
    words = np.minimum(places[z, np.arange(n * length)], n_words - 1)
    rows = np.repeat(np.arange(n), length)
    return scipy.sparse.coo_matrix((np.ones(n * length, int), (rows, words)), shape=(n, n_words)).tocsr()


def large() -> Any:
    """100,000 documents of 100 words."""
    import scipy.sparse

    rng = np.random.default_rng(0)
    words = (rng.random(10_000_000) ** 3 * 50_000).astype(np.int32)
    ptr = np.arange(0, 10_000_001, 100)
    X = scipy.sparse.csr_matrix((np.ones(len(words), np.int32), words, ptr), shape=(100_000, 50_000))
    X.sum_duplicates()
    return X


def _path(name: str) -> Path | None:
    folder = data_folder()
    path = None if folder is None else Path(folder) / "kernel" / "lda" / FILES[name]
    return path if path is not None and path.exists() else None


def _collection(name: str) -> Any:
    if name == "drawn":
        return drawn()
    path = _path(name)
    if path is None:
        raise FileNotFoundError(f"{FILES[name]} is not there: set GRAMGRAPH_DATA")
    return read_ldac(path)


# ------------------------------------------------------------------------------------------ sweeps


def _our_sweep(X: Any, sweeps: int) -> float:
    """Seconds of the best sweep, uniform numbers included."""
    from gramgraph.machines.topics.collection import Documents
    from gramgraph.machines.topics.gibbs import Chain

    chain = Chain(Documents.of(X).tokens(), np.full(T, 0.1), np.full((T, X.shape[1]), 0.01), 0)
    chain.sweep()
    return min(cpu(chain.sweep)[0] for _ in range(sweeps))


def _peer_sweep(X: Any, sweeps: int) -> float:
    """The same of tomotopy, by groups of five sweeps."""
    import tomotopy

    model = tomotopy.LDAModel(k=T, alpha=0.1, eta=0.01, seed=1)
    for i in range(X.shape[0]):
        row = X[[i]]
        model.add_doc([str(w) for w in np.repeat(row.indices, row.data)])
    model.optim_interval = model.burn_in = 0
    model.train(1, workers=1)
    return min(cpu(lambda: model.train(5, workers=1))[0] / 5 for _ in range(max(1, sweeps // 5)))


# ------------------------------------------------------------------------------------------ fits


def _estimator(contestant: str, seed: int) -> Any:
    import gramgraph as gg

    if contestant.startswith("sklearn"):
        from sklearn.decomposition import LatentDirichletAllocation as Peer

        return Peer(T, random_state=seed)
    prior = {"topic_word_prior": 1.0 / T} if contestant.endswith("same priors") else {}
    return gg.LatentDirichletAllocation(T, method="collapsed", random_state=seed, **prior)


def _fits(contestant: str, X: Any) -> tuple[float, float]:
    """Seconds of the best fit, and the mean perplexity of held-out documents."""
    import gramgraph as gg

    order = np.random.default_rng(0).permutation(X.shape[0])
    n = X.shape[0] // 10
    held, train = X[order[:n]], X[order[n:]]
    judge = gg.LatentDirichletAllocation(T, max_iter=1, random_state=0).fit(train)
    if contestant.startswith("gramgraph"):
        _estimator(contestant, 0).fit(train)  # compiled loops
    times, judged = [], []
    for seed in range(SEEDS):
        seconds, made = cpu(lambda s=seed: _estimator(contestant, s).fit(train))
        judge.components_ = made.components_
        times.append(seconds)
        judged.append(judge.perplexity(held))
    return min(times), float(np.mean(judged))


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement:
    """One contestant on one collection."""
    if cell.task == "memory":
        import gramgraph as gg

        X = large()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seconds, model = cpu(
                lambda: gg.LatentDirichletAllocation(T, method=cell.contestant.split()[1], max_iter=1).fit(X)
            )
        model.transform(X[:1000])
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        return Measurement(seconds, seconds, 1, 1, values={"GB": peak})
    if "X" not in context:
        context["X"] = _collection(cell.row.split()[1])
    X = context["X"]
    if cell.task == "sweep":
        seconds = (_our_sweep if cell.contestant.startswith("gramgraph") else _peer_sweep)(X, 30)
        return Measurement(seconds, seconds, 30, 1, values={"tokens": float(X.sum()) / seconds / 1e6})
    seconds, perplexity = _fits(cell.contestant, X)
    return Measurement(seconds, seconds, SEEDS, 1, values={"perplexity": perplexity})


# ------------------------------------------------------------------------------------------ the report


def _rows(quick: bool) -> list[str]:
    """Task and collection."""
    names = [name for name in FILES if _path(name) is not None and not (quick and name == "ap")] + ["drawn"]
    rows = [f"{task} {name}" for task in ("sweep", "fit") for name in names]
    return rows if quick else [*rows, "memory large"]


def _line(row: str, name: str, found: Result, first: Result) -> list[str]:
    if not isinstance(found, Measurement):
        return [row, name, found.reason, "", ""]
    told = ", ".join(f"{value:.4g} {FIGURES[key]}" for key, value in found.values.items())
    ratio = f"{first.cpu / found.cpu:.2f}" if isinstance(first, Measurement) and not row.startswith("memory") else ""
    return [row, name, f"{found.cpu:.4f}", told, ratio]


FIGURES = {"tokens": "million tokens/s", "perplexity": "perplexity", "GB": "GB at most"}


def report(
    runner: Runner, *, quick: bool = False, limit: float | None = None, tasks: Any = None, **_: Any
) -> tuple[str, list[str]]:
    """The table, and what is wrong with it."""
    results: dict[tuple[str, str, str], Result] = {}
    lines, faults = [], []
    for row in (row for row in _rows(quick) if tasks is None or row in tasks):
        task = row.split()[0]
        for name in CONTESTANTS[task]:
            cell = Cell("topics", row, task, name, 1.0, limit or 300.0, fresh=task == "memory")
            results[row, task, name] = runner.run(cell)
        peer = results[row, task, {"sweep": "tomotopy"}.get(task, CONTESTANTS[task][0])]
        lines += [_line(row, name, results[row, task, name], peer) for name in CONTESTANTS[task]]
        for name in CONTESTANTS["fit"][1:] if task == "fit" else ():
            ours = results[row, task, name]
            if isinstance(ours, Measurement) and isinstance(peer, Measurement):
                own, goal = ours.values["perplexity"], peer.values["perplexity"]
                faults += [f"{row}, {name}: perplexity {own:.0f}, scikit-learn {goal:.0f}"] if own > goal else []
    head = versions(("gramgraph", "scikit-learn", "tomotopy", "numpy"))
    table = markdown(["what", "who", "CPU seconds", "", "× the peer's speed"], lines)
    return f"# Topics\n\n{head}\n\n{table}\n", faults + failures(results)
