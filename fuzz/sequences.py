"""Hidden Markov models of a few steps: the sum over all paths is the truth."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from fuzz.trials import Trial, Wrong, close
from fuzz.truth import Joint, log
from fuzz.worlds import Numbers

__all__ = ["trials"]


def trials(rng: np.random.Generator) -> Iterator[Trial]:
    """Scores, posteriors and best paths of several short sequences; tiny transitions now and then."""
    import gramgraph as gg

    k, lengths = int(rng.integers(1, 4)), rng.integers(1, 7, size=int(rng.integers(1, 4))).tolist()
    numbers = Numbers(float(rng.choice([0.0, 0.3])), 0.0, float(rng.choice([0.0, 0.0, -300.0])))
    start, step = numbers.rows(rng, (k,)), numbers.rows(rng, (k, k))
    if rng.random() < 0.5:
        symbols = int(rng.integers(2, 5))
        emit = numbers.rows(rng, (k, symbols))
        X = rng.integers(0, symbols, size=(sum(lengths), 1))
        hmm: Any = gg.CategoricalHMM.from_parameters(start, step, emit)
        logs = log(emit)[:, X[:, 0]].T
    else:
        mean, sd = rng.normal(size=(k, 1)), rng.uniform(0.1, 2.0, size=(k, 1))
        X = rng.normal(size=(sum(lengths), 1)) * float(rng.choice([1.0, 30.0]))
        hmm = gg.GaussianHMM.from_parameters(start, step, mean, sd**2, covariance_type="diag")
        logs = (-0.5 * ((X[:, None, :] - mean) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2 * np.pi)).sum(axis=2)

    def about() -> str:
        numbers = {name: np.asarray(value).tolist() for name, value in vars(hmm).items() if name.endswith("_")}
        return f"{hmm!r} {numbers}\nX = {X.tolist()}, lengths = {lengths}"

    for what in ("score", "posteriors", "path"):
        yield Trial(f"HMM: {what}", partial(_check, hmm, start, step, logs, X, lengths, what), about)


def _check(
    hmm: Any, start: np.ndarray, step: np.ndarray, logs: np.ndarray, X: np.ndarray, lengths: list[int], what: str
) -> None:
    k = len(start)
    joints, at = [], 0
    for n in lengths:
        factors: list[Any] = [((0,), log(start))]
        factors += [((t, t + 1), log(step)) for t in range(n - 1)]
        factors += [((t,), logs[at + t]) for t in range(n)]
        joints.append(Joint([k] * n, factors))
        at += n
    if any(joint.best == -np.inf for joint in joints):
        return  # impossible sequences: the classes of scikit-learn's kind have no one answer
    if what == "score":
        close(hmm.score(X, lengths), sum(joint.log_z for joint in joints), "score", atol=1e-8, rtol=1e-9)
    elif what == "posteriors":
        truth = np.concatenate([[joint.belief((t,)) for t in range(len(joint.sizes))] for joint in joints])
        close(hmm.predict_proba(X, lengths), truth, "predict_proba", atol=1e-9)
    else:
        value, path = hmm.decode(X, lengths)
        close(value, sum(joint.best for joint in joints), "value of the best path", atol=1e-8, rtol=1e-9)
        found, at = 0.0, 0
        for joint, n in zip(joints, lengths, strict=True):
            found += float(joint.logs[tuple(int(s) for s in path[at : at + n])])
            at += n
        if not abs(found - value) <= 1e-8 * max(1.0, abs(value)):
            raise Wrong(f"the path has {found}, not {value}")
