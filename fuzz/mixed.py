"""Networks of labelled and real-valued variables: a mixture over all labels, one Gaussian each, is the truth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from fuzz.trials import Trial, Wrong, close
from fuzz.truth import log, log_sum
from fuzz.worlds import Numbers
from gramgraph.conditionals import ConditionalLinearGaussian, LinearGaussian, Table
from gramgraph.exceptions import ImpossibleEvidenceError
from gramgraph.models import BayesianNetwork
from gramgraph.variables import Real, Var, discrete

__all__ = ["trials"]


@dataclass(frozen=True)
class _Mixed:
    """Labelled variables first, then real ones, each list in topological order, with the numbers of both."""

    model: Any
    labelled: tuple[Var, ...]
    real: tuple[Var, ...]
    tables: tuple[tuple[tuple[int, ...], np.ndarray], ...]  # (parents, child), logs
    linear: tuple[tuple[tuple[int, ...], tuple[int, ...], np.ndarray, np.ndarray, np.ndarray], ...]

    def about(self) -> str:
        lines = []
        for var in (*self.labelled, *self.real):
            lines.append(str(self.model.conditional(var.name).to_fields()))
        return "\n".join(lines)

    def components(self) -> Iterator[tuple[tuple[int, ...], float, np.ndarray, np.ndarray]]:
        """(labels, log p(labels), mean, covariance of the real variables given them)."""
        n = len(self.real)
        for labels in product(*(range(var.size) for var in self.labelled)):
            weight = sum(float(logs[tuple(labels[i] for i in scope)]) for scope, logs in self.tables)
            A, b, s = np.zeros((n, n)), np.zeros(n), np.zeros(n)
            for i, (choosing, parents, slopes, intercept, sd) in enumerate(self.linear):
                at = tuple(labels[j] for j in choosing)
                A[i, list(parents)] = slopes[at]
                b[i], s[i] = intercept[at], sd[at]
            inverse = np.linalg.inv(np.eye(n) - A)
            yield labels, weight, inverse @ b, (inverse * s**2) @ inverse.T


def trials(rng: np.random.Generator) -> Iterator[Trial]:
    """Three cases of evidence on labels and numbers: beliefs, means, variances, log density."""
    world = _draw(rng)
    for _ in range(3):
        seen = {i: int(rng.integers(var.size)) for i, var in enumerate(world.labelled) if rng.random() < 0.25}
        read = {i: float(2.0 * rng.normal()) for i in range(len(world.real)) if rng.random() < 0.35}
        check = partial(_check, world, seen, read)
        yield Trial(f"query(None, {_evidence(world, seen, read)})", check, world.about)


def _evidence(world: _Mixed, seen: dict[int, int], read: dict[int, float]) -> dict[str, Any]:
    labels = {world.labelled[i].name: world.labelled[i].states[s] for i, s in seen.items()}
    return labels | {world.real[i].name: value for i, value in read.items()}


def _draw(rng: np.random.Generator) -> _Mixed:
    numbers = Numbers(zeros=float(rng.choice([0.0, 0.2])))
    labelled = tuple(discrete(f"d{i}", int(rng.integers(2, 4))) for i in range(int(rng.integers(0, 4))))
    real = tuple(Var(f"x{i}", Real()) for i in range(int(rng.integers(1, 5))))
    conditionals: list[Any] = []
    tables, linear = [], []
    for i, var in enumerate(labelled):
        mine = [j for j in range(i) if rng.random() < 0.5]
        values = numbers.rows(rng, (*(labelled[j].size for j in mine), var.size))
        conditionals.append(Table(var, tuple(labelled[j] for j in mine), values))
        tables.append(((*mine, i), log(values)))
    for i, var in enumerate(real):
        choosing = tuple(j for j in range(len(labelled)) if rng.random() < 0.4)
        parents = tuple(j for j in range(i) if rng.random() < 0.6)
        shape = tuple(labelled[j].size for j in choosing)
        slopes, intercept = rng.normal(size=(*shape, len(parents))), 2.0 * rng.normal(size=shape)
        sd = 10.0 ** rng.uniform(-1.0, 0.5, size=shape)
        covariance, scope = (sd**2)[..., None, None], tuple(real[j] for j in parents)
        if choosing:
            families = (*(labelled[j] for j in choosing), *scope)
            made: Any = ConditionalLinearGaussian(var, families, slopes[..., None, :], intercept[..., None], covariance)
        else:
            made = LinearGaussian(var, scope, slopes[None, :], intercept[None], covariance)
        conditionals.append(made)
        linear.append((choosing, parents, slopes, intercept, sd))
    model = BayesianNetwork.from_parts((*labelled, *real), conditionals)
    return _Mixed(model, labelled, real, tuple(tables), tuple(linear))


def _check(world: _Mixed, seen: dict[int, int], read: dict[int, float]) -> None:
    given, free = list(read), [i for i in range(len(world.real)) if i not in read]
    value = np.array([read[i] for i in given])
    shape = tuple(var.size for var in world.labelled)
    logs = np.full(shape, -np.inf)
    means, variances = np.zeros((*shape, len(free))), np.zeros((*shape, len(free)))
    for labels, weight, mean, cov in world.components():
        if any(labels[i] != s for i, s in seen.items()):
            continue
        S, cross = cov[np.ix_(given, given)], cov[np.ix_(free, given)]
        off = value - mean[given]
        if given:
            gain = np.linalg.solve(S, cross.T).T
            weight += -0.5 * float(off @ np.linalg.solve(S, off)) - 0.5 * float(np.linalg.slogdet(2 * np.pi * S)[1])
            means[labels] = mean[free] + gain @ off
            variances[labels] = np.diag(cov[np.ix_(free, free)] - gain @ cross.T)
        else:
            means[labels], variances[labels] = mean[free], np.diag(cov)[free]
        logs[labels] = weight
    log_z = float(log_sum(logs))
    try:
        answer = world.model.query(None, _evidence(world, seen, read))
    except ImpossibleEvidenceError:
        if log_z > -np.inf:
            raise
        return
    if log_z == -np.inf:
        raise Wrong("impossible evidence was answered")
    if not answer.exact:
        raise Wrong("exact is False")
    close(answer.log_evidence, log_z, "log density of the evidence", atol=1e-8, rtol=1e-9)
    p = np.exp(logs - log_z)
    for i, var in enumerate(world.labelled):
        if i not in seen:
            truth = p.sum(axis=tuple(j for j in range(p.ndim) if j != i))
            close(answer[var.name].probabilities, truth, f"p({var.name} | e)", atol=1e-9)
    for k, i in enumerate(free):
        mean = float((p * means[..., k]).sum())
        var_ = float((p * (variances[..., k] + (means[..., k] - mean) ** 2)).sum())
        belief = answer[world.real[i].name]
        close(np.squeeze(belief.mean()), mean, f"mean of {world.real[i].name}", atol=1e-8, rtol=1e-8)
        close(np.squeeze(belief.var()), var_, f"variance of {world.real[i].name}", atol=1e-8, rtol=1e-7)
