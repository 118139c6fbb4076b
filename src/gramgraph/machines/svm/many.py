"""Many two-class machines of one set of points: the problems as arrays, solved together or one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from gramgraph._threads import in_threads
from gramgraph.machines.svm.classes import pairs_of
from gramgraph.machines.svm.dual import row_type
from gramgraph.machines.svm.machine import Machine, Settings, fit_machine
from gramgraph.machines.svm.products import PowerRows
from gramgraph.machines.svm.rows import GramRows, Source, most_steps
from gramgraph.typing import Array, FloatArray, IntArray

_LARGE = 2e6  # squares of points, summed over problems, from which threads are worth their start
_PARTS = 4  # stretches of problems a thread: their work is not known beforehand


@dataclass(frozen=True)
class Problems:
    """Problem q asks for points[first[q]:first[q + 1]], with side +1 or −1."""

    points: IntArray
    first: IntArray
    side: FloatArray

    def __len__(self) -> int:
        return len(self.first) - 1

    def part(self, q: int) -> tuple[IntArray, FloatArray]:
        """Points and sides of problem q."""
        here = slice(int(self.first[q]), int(self.first[q + 1]))
        return self.points[here], self.side[here]

    @property
    def number(self) -> IntArray:
        """The problem of every entry of points."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))

    @classmethod
    def of(cls, parts: Sequence[tuple[IntArray, FloatArray]]) -> Problems:
        """From points and sides of each."""
        sizes = [len(points) for points, _ in parts]
        return cls(
            np.concatenate([points for points, _ in parts]),
            np.concatenate([[0], np.cumsum(sizes)]),
            np.concatenate([side for _, side in parts]),
        )


def pair_problems(label: IntArray, n_classes: int, points: IntArray | None = None) -> Problems:
    """First class (+1) against second (−1), for every pair of the classes 0 … k − 1 of `label` (of all points)."""
    here = np.arange(len(label)) if points is None else points
    members = [here[label[here] == c] for c in range(n_classes)]
    pairs = pairs_of(n_classes)
    sizes = np.array([[len(members[i]), len(members[j])] for i, j in pairs])
    ends = np.concatenate([[0], np.cumsum(sizes.sum(axis=1))])
    side = np.repeat(np.tile([1.0, -1.0], len(pairs)), sizes.ravel())
    return Problems(np.concatenate([members[c] for pair in pairs for c in pair]), ends, side)


def rest_problems(label: IntArray, n_classes: int) -> Problems:
    """Every class (+1) against the rest (−1); two classes make one problem, the second against the first."""
    classes = [1] if n_classes == 2 else range(n_classes)
    return Problems.of([(np.arange(len(label)), np.where(label == c, 1.0, -1.0)) for c in classes])


@dataclass(frozen=True)
class Machines:
    """decision_q(x) = Σ weights[i, q] k(x_i, x) + intercepts[q], for all problems at once."""

    weights: FloatArray  # (n, q)
    intercepts: FloatArray  # (q,)
    bound: Array  # (n,): a multiplier stands at its upper bound in some problem
    objectives: FloatArray  # (q,)
    iterations: IntArray  # (q,)
    converged: bool
    curved: bool
    least_nu: float = 0.0  # the least that leaves a margin in all problems, where the one asked for does not


def solve_paths(
    source: GramRows | PowerRows, problems: Problems, weight: FloatArray, costs: FloatArray, settings: Settings
) -> tuple[FloatArray, FloatArray]:
    """β (costs, entries of points) and (q, costs, 5): level, objective, steps, converged, curved; costs grow.

    `weight` is that of every entry of `problems.points`.
    """
    from gramgraph._numerics.svm import svm_batch as svm_whole

    most = most_steps(settings.max_iter, source.n)
    if isinstance(source, GramRows):
        W, power, scale, offset = source.K, 0, 1.0, 0.0
    else:
        size = int(np.diff(problems.first).max())
        dtype = row_type(float(costs.max()) * float(weight.max()), source, settings.tol, size)
        W, power, scale, offset = source.coordinates(dtype), source.power, source.scale, source.offset
    limits = float(settings.tol), int(most), bool(settings.shrinking)

    def work(some: slice) -> tuple[FloatArray, FloatArray]:
        first = problems.first[some.start : some.stop + 1]
        here = slice(int(first[0]), int(first[-1]))
        points, side = problems.points[here], problems.side[here]
        kernel, largest = (W, power, scale, offset, source.diag), int(np.diff(first).max())
        found: tuple[FloatArray, FloatArray] = svm_whole.solve_paths(
            *kernel, points, first - first[0], side, weight[here], costs, *limits, np.empty((largest, largest), W.dtype)
        )
        return found

    parts = in_threads(work, _shares(problems, settings.n_jobs), settings.n_jobs)
    return np.concatenate([beta for beta, _ in parts], axis=1), np.concatenate([told for _, told in parts])


def _shares(problems: Problems, n_jobs: int) -> list[slice]:
    """Problems in stretches of about equal work, several a thread; one where the work is not worth a second thread."""
    squares = np.cumsum(np.diff(problems.first).astype(np.float64) ** 2)
    n_parts = min(len(problems), _PARTS * n_jobs) if n_jobs > 1 and squares[-1] > _LARGE else 1
    wanted = squares[-1] * np.arange(1, n_parts) / n_parts
    cuts = np.unique(np.concatenate([[0], np.searchsorted(squares, wanted) + 1, [len(problems)]]))
    return [slice(int(a), int(b)) for a, b in pairwise(cuts)]


def fit_together(source: GramRows | PowerRows, problems: Problems, weight: FloatArray, settings: Settings) -> Machines:
    """All machines from one precomputed matrix or from products, without leaving compiled code: C-SVC, a finite C."""
    beta, told = solve_paths(source, problems, weight[problems.points], np.array([settings.C]), settings)
    W = np.zeros((source.n, len(problems)))
    W[problems.points, problems.number] = beta[0]
    bound = np.zeros(source.n, np.bool_)
    bound[problems.points[np.abs(beta[0]) >= settings.C * weight[problems.points]]] = True
    return Machines(
        W,
        -told[:, 0, 0],
        bound,
        told[:, 0, 1],
        told[:, 0, 2].astype(np.int32),
        bool(told[:, 0, 3].all()),
        bool(told[:, 0, 4].any()),
    )


def fit_apart(
    source: Source, problems: Problems, weight: FloatArray, settings: Settings, names: Sequence[tuple[Any, Any]]
) -> Machines:
    """One machine after the other; `names` of the two sides, the −1 side first, serve error messages."""
    W, bound = np.zeros((source.n, len(problems))), np.zeros(source.n, np.bool_)
    large = float((np.diff(problems.first).astype(np.float64) ** 2).sum()) > _LARGE
    n_jobs = settings.n_jobs if large else 1

    def work(q: int) -> Machine:
        points, side = problems.part(q)
        alone = n_jobs == 1 and len(points) == source.n  # a source keeps what it has laid out, for one search
        part = source if alone else source.subset(points)
        return fit_machine(part, side, weight[points], settings, names=names[q])

    machines = in_threads(work, range(len(problems)), n_jobs)
    for q, machine in enumerate(machines):
        points, _ = problems.part(q)
        W[points, q] = machine.beta
        bound[points[machine.bound]] = True
    return Machines(
        W,
        np.array([machine.intercept for machine in machines]),
        bound,
        np.array([machine.objective for machine in machines]),
        np.array([machine.iterations for machine in machines], np.int32),
        all(machine.converged for machine in machines),
        any(machine.curved for machine in machines),
        max((machine.least_nu for machine in machines), default=0.0),
    )
