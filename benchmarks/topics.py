"""Topic models against tomotopy (tokens per second) and scikit-learn (seconds at equal held-out perplexity).

`python -m benchmarks topics`. One thread, CPU time. Collections: those below `kernel/lda` of the reference data, and
one that is drawn from the model (2,000 documents of 150 words, 5,000 words, 20 topics). A tenth of the documents is
held out. Sweeps are counted until the left-to-right perplexity of the held-out documents is no higher than that of
scikit-learn's batch fit, both judged by the same estimate. Two rows of each collection: the usual priors of each
library, and scikit-learn's priors for both. The last row is the peak memory of 100,000 documents of 100 words, a new
process each.
"""

from __future__ import annotations

import gzip
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import installed, one_thread, versions
from benchmarks.networks import data_folder

__all__ = ["report"]

T = 20
SEEDS = 3
STEPS = (10, 15, 20, 25, 30, 40, 60, 100, 150)


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


def collections(quick: bool) -> dict[str, Any]:
    """Name → counts."""
    folder = data_folder()
    found = {}
    if folder is not None:
        for name, file in (("reuters", "reuters.ldac.gz"), ("ap", "ap.dat.gz")):
            path = Path(folder) / "kernel" / "lda" / file
            if path.exists() and not (quick and name == "ap"):
                found[name] = read_ldac(path)
    return {**found, "drawn": drawn(400 if quick else 2000)}


def our_rate(X: Any, sweeps: int) -> float:
    """Tokens per second of the best sweep, uniform numbers included."""
    from gramgraph.machines.topics.collection import Documents
    from gramgraph.machines.topics.gibbs import Chain

    tokens = Documents.of(X).tokens()
    chain = Chain(tokens, np.full(T, 0.1), np.full((T, X.shape[1]), 0.01), 0)
    return len(tokens.words) / min(cpu(chain.sweep)[0] for _ in range(sweeps))


def peer_rate(X: Any, sweeps: int) -> float | None:
    """The same of tomotopy, by groups of five sweeps."""
    if not installed("tomotopy"):
        return None
    import tomotopy

    model = tomotopy.LDAModel(k=T, alpha=0.1, eta=0.01, seed=1)
    for i in range(X.shape[0]):
        row = X[[i]]
        model.add_doc([str(w) for w in np.repeat(row.indices, row.data)])
    model.optim_interval = model.burn_in = 0
    model.train(1, workers=1)
    return model.num_words / min(cpu(lambda: model.train(5, workers=1))[0] / 5 for _ in range(max(1, sweeps // 5)))


def against_variational(X: Any, same_priors: bool) -> tuple[float, float, float, float, int]:
    """(their seconds, their perplexity, our seconds, our perplexity, sweeps), means over seeds."""
    from sklearn.decomposition import LatentDirichletAllocation as Peer

    import gramgraph as gg

    order = np.random.default_rng(0).permutation(X.shape[0])
    n = X.shape[0] // 10
    held, train = X[order[:n]], X[order[n:]]
    judge = gg.LatentDirichletAllocation(T, max_iter=1, random_state=0).fit(train)
    prior = {"topic_word_prior": 1.0 / T} if same_priors else {}

    def judged(components: Any) -> float:
        judge.components_ = components
        return judge.perplexity(held)

    theirs = [cpu(lambda s=s: Peer(T, random_state=s).fit(train)) for s in range(SEEDS)]
    goal = float(np.mean([judged(made.components_) for _, made in theirs]))
    for steps in STEPS:
        ours = [
            cpu(lambda s=s, n=steps: gg.LatentDirichletAllocation(T, max_iter=n, random_state=s, **prior).fit(train))
            for s in range(SEEDS)
        ]
        reached = float(np.mean([judged(made.components_) for _, made in ours]))
        if reached <= goal:
            break
    return min(t for t, _ in theirs), goal, min(t for t, _ in ours), reached, steps


_MEMORY = """
import sys
from benchmarks.topics import large
print(large(sys.argv[1]))
"""


def large(method: str) -> float:
    """Peak memory in GB of a fit of 100,000 documents of 100 words."""
    import scipy.sparse

    import gramgraph as gg

    rng = np.random.default_rng(0)
    words = (rng.random(10_000_000) ** 3 * 50_000).astype(np.int32)
    ptr = np.arange(0, 10_000_001, 100)
    X = scipy.sparse.csr_matrix((np.ones(len(words), np.int32), words, ptr), shape=(100_000, 50_000))
    X.sum_duplicates()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = gg.LatentDirichletAllocation(T, method=method, max_iter=1, random_state=0).fit(X)
    model.transform(X[:1000])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def report(runner: Any = None, *, quick: bool = False, **_: Any) -> tuple[str, list[str]]:
    """The tables as text, and what is wrong with them."""
    one_thread()
    found, faults = collections(quick), []
    rates = ["| collection | million tokens/s | tomotopy | ratio |", "|---|---|---|---|"]
    fits = ["| collection | priors | scikit-learn, s | perplexity | gramgraph, s | perplexity | sweeps | ratio |",
            "|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for name, X in found.items():
        our_rate(X, 1)
        ours, theirs = our_rate(X, 30), peer_rate(X, 30)
        ratio = f"{ours / theirs:.2f}" if theirs else "—"
        rates.append(f"| {name} | {ours / 1e6:.1f} | {theirs / 1e6:.1f} | {ratio} |" if theirs else
                     f"| {name} | {ours / 1e6:.1f} | not installed | — |")  # fmt: skip
        for same in (False, True):
            t, p, own_t, own_p, sweeps = against_variational(X, same)
            kind = "the same" if same else "usual"
            fits.append(f"| {name} | {kind} | {t:.2f} | {p:.0f} | {own_t:.3f} | {own_p:.0f} | {sweeps} | "
                        f"{t / own_t:.1f} |")  # fmt: skip
            if own_p > p:
                faults.append(f"{name}: perplexity {own_p:.0f} after {sweeps} sweeps, scikit-learn {p:.0f}")
    memory = []
    for method in () if quick else ("gibbs", "variational", "online"):
        done = subprocess.run([sys.executable, "-c", _MEMORY, method], capture_output=True, text=True, check=True)
        memory.append(f"{method} {float(done.stdout):.2f} GB")
    if memory:
        memory = ["", f"Peak memory of 100,000 documents of 100 words: {', '.join(memory)}.", ""]
    told = versions(("gramgraph", "scikit-learn", "tomotopy", "numpy"))
    return "\n".join(["# Topics", "", told, "", *rates, "", *fits, *memory, ""]), faults
