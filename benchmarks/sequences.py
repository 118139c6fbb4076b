"""Series and sequences of everyday size: structural series, smoothing, short chains.

`python -m benchmarks sequences [--tasks "structural" "HMM" …]` (parts of names). Each row is a task with its peer, both
warm and in one process: fits of structural series (statsmodels' `UnobservedComponents` with the exact diffuse
likelihood, made and fitted in the timed call), smoothing with 24 states (`smooth`, in the form with covariances),
GaussianHMM with 2 states on 200 rows (hmmlearn), and conditional random fields on one long, a few tiny and single short
sequences (sklearn-crfsuite; on the long one with the memory of 40 steps that ours has, which makes it twice as fast).
Fits must not end below the peer's likelihood by more than 1e-3 (objectives of random fields: 1e-3 relative); everything
else agrees to 1e-6.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import Cell, Measurement, Runner, measure, versions
from benchmarks.tables import Ratio, Result, Target, difference, failures, markdown, ratio_of, shown, summary

__all__ = ["report", "run_cell"]

OURS = "gramgraph"
#: row → (peer, whether the answer is a value to be reached rather than numbers to be equal, ratio that is wanted)
ROWS = {
    "structural: level, 100 steps": ("statsmodels", True, 3.0),
    "structural: trend and season 12, 144 steps": ("statsmodels", True, 3.0),
    "structural: level and season 24, 1,000 steps": ("statsmodels", True, 3.0),
    "smoothing: 24 states, 1,000 steps": ("statsmodels", False, 3.0),
    "GaussianHMM, 200 rows: predict": ("hmmlearn", False, 3.0),
    "GaussianHMM, 200 rows: score": ("hmmlearn", False, 3.0),
    "CRF, one sequence of 20,000: fit": ("sklearn_crfsuite", True, 2.0),
    "CRF, 20 tiny sequences: fit": ("sklearn_crfsuite", True, 2.0),
    "CRF, 5 tokens: predict_single": ("sklearn_crfsuite", False, 2.0),
}
Work = tuple[Callable[[], Any], Any]  # what is timed, and its answer


def series(T: int, period: int) -> np.ndarray:
    """A level that walks, a season and noise."""
    rng, t = np.random.default_rng(T), np.arange(T)
    season = 3.0 * np.sin(2.0 * np.pi * t / period) + np.cos(4.0 * np.pi * t / period) if period > 1 else 0.0
    return 10.0 + np.cumsum(0.5 * rng.normal(size=T)) + season + rng.normal(size=T)


def _structural(row: str, ours: bool) -> Work:
    from gramgraph.sequences import Level, Season, StructuralModel, Trend

    T = int(row.split()[-2].replace(",", ""))
    period = 12 if "12" in row else 24 if "24" in row else 1
    y = series(T, period)
    level = Trend() if "trend" in row else Level()
    pieces = (level, Season(period)) if period > 1 else (level,)
    if ours:
        return lambda: StructuralModel(pieces).fit(y), lambda model: np.array([model.log_likelihood_])
    from statsmodels.tsa.statespace.structural import UnobservedComponents

    options = {"level": "lltrend" if "trend" in row else "llevel", "seasonal": period if period > 1 else None}

    def fit() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it says where it did not converge
            return UnobservedComponents(y, **options, use_exact_diffuse=True).fit(disp=False)

    return fit, lambda found: np.array([found.llf])


def _smoothing(row: str, ours: bool) -> Work:
    from gramgraph.sequences import Level, Season

    y, at = series(1000, 24), np.array([1.0, 0.25, 0.001])
    if ours:
        model = Level() + Season(24)
        kalman = model._filter(at, model._rows(len(y), None)).set_params(form="covariance")
        return lambda: kalman.smooth(y), lambda found: np.concatenate([found.means, found.covariances[:, 0]], axis=1)
    from statsmodels.tsa.statespace.structural import UnobservedComponents

    peer = UnobservedComponents(y, level="llevel", seasonal=24, use_exact_diffuse=True)
    return lambda: peer.smooth(at), lambda found: np.concatenate(
        [found.smoothed_state.T, found.smoothed_state_cov[0].T], axis=1
    )


def _hmm(row: str, ours: bool) -> Work:
    import gramgraph as gg

    rng = np.random.default_rng(0)
    start, A = np.array([0.6, 0.4]), np.array([[0.9, 0.1], [0.2, 0.8]])
    means, covs = np.array([[0.0, 0.0], [2.0, 1.0]]), np.array([np.eye(2), 2.0 * np.eye(2)])
    X = rng.normal(size=(200, 2)) + means[np.repeat(rng.integers(0, 2, 20), 10)]
    if ours:
        model: Any = gg.GaussianHMM.from_parameters(start, A, means, covs)
    else:
        from hmmlearn.hmm import GaussianHMM

        model = GaussianHMM(2, covariance_type="full")
        model.startprob_, model.transmat_, model.means_, model.covars_ = start, A, means, covs
    method = getattr(model, row.split()[-1])
    return lambda: method(X), lambda found: np.atleast_1d(np.asarray(found, dtype=np.float64))


def _sentence(T: int, rng: np.random.Generator) -> tuple[list[dict[str, Any]], list[str]]:
    X, y, z = [], [], 0
    for _ in range(T):
        z = int(rng.integers(5)) if rng.random() < 0.4 else z
        X.append({"word": f"w{rng.integers(30) + 10 * z}", "shape": f"s{rng.integers(5) + z}", "bias": 1.0})
        y.append(f"L{z}")
    return X, y


def _crf(row: str, ours: bool) -> Work:
    from gramgraph.sequences import LinearChainCRF

    rng = np.random.default_rng(0)
    lengths = [20_000] if "20,000" in row else rng.integers(3, 7, size=20)
    X, y = zip(*(_sentence(int(T), rng) for T in lengths), strict=True)
    X, y = list(X), list(y)
    if ours:
        make: Any = LinearChainCRF
    else:
        from sklearn_crfsuite import CRF as make
    if "single" in row:
        model = make(c2=1.0).fit(X, y)
        x = _sentence(5, rng)[0]
        return lambda: model.predict_single(x), lambda found: np.array([int(label[1:]) for label in found], dtype=float)

    # With more memory than by default the peer is twice as fast on the long sequence: it gets what ours takes.
    options = {} if ours or "20,000" not in row else {"num_memories": 40}
    return lambda: make(c2=1.0, **options).fit(X, y), lambda model: np.array([-_objective(model, X, y)])


def _objective(model: Any, X: Any, y: Any) -> float:
    """−Σ log p(y | x) + ‖w‖² by its definition, at the weights of a model of either library."""
    states, steps, classes = model.state_features_, model.transition_features_, sorted(model.classes_)
    w = np.array([*states.values(), *steps.values()])
    log_p = sum(_log_p(states, steps, classes, *pair) for pair in zip(X, y, strict=True))
    return float(w @ w) - log_p


def _log_p(states: Any, steps: Any, classes: list[str], tokens: Any, labels: list[str]) -> float:
    """log p(labels | tokens)."""
    E = np.zeros((len(tokens), len(classes)))
    for t, token in enumerate(tokens):
        names = [f"{key}:{value}" if isinstance(value, str) else key for key, value in token.items()]
        E[t] = [sum(states.get((name, label), 0.0) for name in names) for label in classes]
    A = np.array([[steps.get((a, b), 0.0) for b in classes] for a in classes])
    at = [classes.index(label) for label in labels]
    score = E[np.arange(len(at)), at].sum() + A[at[:-1], at[1:]].sum()
    alpha = E[0]
    for row in E[1:]:
        alpha = np.logaddexp.reduce(alpha[:, None] + A, axis=0) + row
    return float(score - np.logaddexp.reduce(alpha))


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement:
    """One contestant on one row."""
    kind = {"structural": _structural, "smoothing": _smoothing, "GaussianHMM": _hmm, "CRF": _crf}
    made = kind[cell.row.replace(",", ":").split(":")[0]]
    call, answer = made(cell.row, cell.contestant == OURS)
    found = answer(call())
    cpu, wall, repeats = measure(call, budget=cell.budget)
    return Measurement(cpu, wall, repeats, 1, answers=(found,))


def report(
    runner: Runner,
    *,
    tasks: Any = None,
    quick: bool = False,
    budget: float | None = None,
    limit: float | None = None,
    with_peers: Any = ("statsmodels", "hmmlearn", "sklearn_crfsuite"),
    **_: Any,
) -> tuple[str, list[str]]:
    """The table, and what went wrong on our side."""
    results: dict[tuple[str, str, str], Result] = {}
    ratios: list[Ratio] = []
    lines, faults = [], []
    for row, (peer, reached, wanted) in ROWS.items():
        if (tasks and not any(part in row for part in tasks)) or (quick and not tasks and "1,000" in row):
            continue
        for name in (OURS, *(other for other in with_peers if other == peer)):
            cell = Cell("sequences", row, "time", name, budget or (0.2 if quick else 1.0), limit or 120.0)
            results[row, "time", name] = runner.run(cell)
        mine, other = results[row, "time", OURS], results.get((row, "time", peer))
        ratio = ratio_of(mine, other)
        ratios += [ratio] if ratio else []
        gap = _gap(row, mine, other, reached, faults)
        lines.append([row, shown(mine), shown(other), ratio or "", f"{wanted:g}", gap])
    text = f"# Series and sequences of everyday size\n\n{versions([OURS, *with_peers, 'numpy', 'numba'])}\n\n"
    text += markdown(["task", OURS, "peer", "ratio", "wanted", "difference"], lines)
    text += f"\n\n{summary(ratios, Target(each=2.0))}\n"
    return text, failures(results) + faults


def _gap(row: str, mine: Result, peer: Result | None, reached: bool, faults: list[str]) -> str:
    if not isinstance(mine, Measurement) or not isinstance(peer, Measurement):
        return ""
    if not reached:
        gap = difference(mine, peer)
        if not gap <= 1e-6:
            faults.append(f"{row}: answers differ by {gap:.2g}")
        return f"{gap:.1g}"
    a, b = float(mine.answers[0][0]), float(peer.answers[0][0])
    if not a >= b - (1e-3 * abs(b) if row.startswith("CRF") else 1e-3):
        faults.append(f"{row}: {a:.6f} is below the peer's {b:.6f}")
    return f"{a - b:+.1g}"
