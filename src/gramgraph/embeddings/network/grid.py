"""Images as Markov random fields: one density ratio between neighbors, one between a pixel and its observation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from threading import RLock
from typing import Any

import numpy as np

from gramgraph.answers.quality import Quality, judge
from gramgraph.cells.axes import Axis, LineAxis, Placed
from gramgraph.cells.columns import numbers_of
from gramgraph.cells.density import line_density
from gramgraph.embeddings.network.candidates import Pair
from gramgraph.embeddings.network.edge_ends import End
from gramgraph.embeddings.network.edge_mixture import Edge, fit_edge
from gramgraph.exceptions import ModelError, OptionError
from gramgraph.factors import TableFactor
from gramgraph.graphs import UndirectedGraph
from gramgraph.models.markov_network import MarkovNetwork
from gramgraph.models.on_cells import CellModel
from gramgraph.typing import Array, FloatArray
from gramgraph.variables import Var

_POWERS = (1.0, 0.7, 0.5, 0.35, 0.25)


@dataclass(frozen=True, eq=False)
class GridAnswer:
    """Beliefs about every pixel: posterior masses on the cells, and how propagation ended.

    Parameters
    ----------
    axis : the cells of the variable.
    weights : (height, width, m) posterior masses of the cells.
    sweeps : how many were taken.
    residual : largest change of a belief's mass in the last one.
    converged : whether it fell below the tolerance.

    Examples
    --------
    >>> import gramgraph as gg
    >>> clean = np.add.outer(np.arange(20.0), np.arange(20.0))
    >>> noisy = clean + np.random.default_rng(0).normal(size=(20, 20))
    >>> answer = gg.learn_grid(clean, noisy, cells=16).query(noisy)
    >>> answer.weights.shape, answer.mean().shape, bool(answer.sd().min() > 0.0)
    ((20, 20, 16), (20, 20), True)
    """

    axis: LineAxis
    weights: Array  # (height, width, m)
    sweeps: int
    residual: float  # largest change of a belief's mass in the last sweep
    converged: bool

    def __repr__(self) -> str:
        h, w, m = self.weights.shape
        state = "converged" if self.converged else f"not converged, residual {self.residual:.2g}"
        return f"GridAnswer({h} × {w} pixels, {m} cells, {self.sweeps} sweeps, {state})"

    @property
    def quality(self) -> Quality:
        """ "checked" where propagation settled, else "unreliable"; with a `reason`."""
        return judge("loopy propagation by scans", False, {"converged": self.converged}, None)

    def mean(self) -> FloatArray:
        """Posterior mean of every pixel, (height, width)."""
        return self.axis.moments(self.weights)[0]

    def sd(self) -> FloatArray:
        """Posterior standard deviation of every pixel."""
        return self.axis.moments(self.weights)[1]

    def mode(self) -> FloatArray:
        """The anchor of the most probable cell of every pixel, by posterior density."""
        height = self.weights / self.axis.q * self.axis.density.values[self.axis.anchors]
        return np.asarray(self.axis.grid_values[self.axis.anchors[height.argmax(axis=2)]])


class KernelGrid(CellModel, MarkovNetwork):
    """p(x) ∝ Π_v p(x_v) Π_(s,t) r(x_s, x_t)^power on the pixels of an image, and p(y_v | x_v) of what is observed.

    All pixels share their tables, so that a model is a few kilobytes, and the cost of a sweep of belief propagation,
    8 m² operations a pixel with m cells, does not depend on how many levels of gray there are. `learn_grid` makes it.

    As a Markov network its variables are the pixels `x0_0`, `x0_1`, … of an image of this `shape`, row by row, then
    their observations `y0_0`, …; `on(height, width)` is the same field of another size.

    Parameters
    ----------
    pixel : cells of a clean pixel.
    observed : cells of a noisy one.
    edge : ratio of two neighbors, symmetric.
    noise : ratio of a pixel and its observation.
    power : by which the ratio is tempered.
    shape : (height, width), or None for any.

    Examples
    --------
    >>> import gramgraph as gg
    >>> rng = np.random.default_rng(0)
    >>> clean = np.add.outer(np.sin(np.arange(40) / 6.0), np.cos(np.arange(40) / 8.0))
    >>> model = gg.learn_grid(clean, clean + 0.3 * rng.normal(size=clean.shape))
    >>> answer = model.query(clean + 0.3 * rng.normal(size=clean.shape))
    >>> bool(np.abs(answer.mean() - clean).mean() < 0.12)
    True
    >>> small = model.on(2, 2)
    >>> small.variables[:5], small.markov_blanket("x0_0"), small.is_separated("x0_0", "x1_1", given=["x0_1", "x1_0"])
    (('x0_0', 'x0_1', 'x1_0', 'x1_1', 'y0_0'), ('x0_1', 'x1_0', 'y0_0'), True)
    """

    closed_from = np.inf  # complete rows are asked on the tables too

    def __init__(
        self,
        pixel: LineAxis,
        observed: LineAxis,
        edge: Edge,  # between neighbors, symmetric
        noise: Edge,  # between a pixel and its observation
        power: float,  # of the ratio between neighbors
        shape: tuple[int, int] = (1, 1),
    ) -> None:
        self.pixel, self.observed, self.edge, self.noise, self.power = pixel, observed, edge, noise, power
        self.shape = (int(shape[0]), int(shape[1]))
        self.is_discrete, self.name, self.metadata = False, "", {}
        self.plans, self.lock = {}, RLock()

    def __repr__(self) -> str:
        h, w = self.shape
        return f"KernelGrid({h} × {w} pixels, {self.pixel.m} cells, power {self.power:g})"

    def on(self, height: int, width: int) -> KernelGrid:
        """The same field on an image of another size."""
        return KernelGrid(self.pixel, self.observed, self.edge, self.noise, self.power, (height, width))

    # Variables are made when the first question about them comes: an image has many.

    @cached_property
    def cell_axes(self) -> tuple[Axis, ...]:  # type: ignore[override]
        """The axes of all pixels, then of their observations."""
        places = list(np.ndindex(*self.shape))
        return (
            *(self.pixel.renamed(f"x{i}_{j}") for i, j in places),
            *(self.observed.renamed(f"y{i}_{j}") for i, j in places),
        )

    @cached_property
    def vars(self) -> tuple[Var, ...]:  # type: ignore[override]
        """All variables."""
        return tuple(axis.var for axis in self.cell_axes)

    @cached_property
    def positions(self) -> dict[str, int]:  # type: ignore[override]
        """Name → position."""
        return {axis.name: v for v, axis in enumerate(self.cell_axes)}

    @cached_property
    def graph(self) -> UndirectedGraph:
        """Neighbors, and every pixel with its observation."""
        return UndirectedGraph.from_edges(2 * self.shape[0] * self.shape[1], self._pairs)

    @cached_property
    def _pairs(self) -> list[tuple[int, int]]:
        at = np.arange(self.shape[0] * self.shape[1]).reshape(self.shape)
        pairs = [(at[:, :-1], at[:, 1:]), (at[:-1], at[1:]), (at, at + at.size)]
        return [(int(a), int(b)) for left, right in pairs for a, b in zip(left.ravel(), right.ravel(), strict=True)]

    @cached_property
    def ratios(self) -> tuple[tuple[tuple[int, ...], FloatArray], ...]:  # type: ignore[override]
        """Neighbors with the tempered ratio, and every pixel with its observation."""
        n = self.shape[0] * self.shape[1]
        between = np.asarray(self.edge.R, dtype=np.float64) ** self.power
        noise = np.asarray(self.noise.R, dtype=np.float64)
        return tuple(((a, b), between if b < n else noise) for a, b in self._pairs)

    @cached_property
    def cells(self) -> MarkovNetwork:  # type: ignore[override]
        """The same field on its cells, a discrete `MarkovNetwork`."""
        variables = [axis.cell_var for axis in self.cell_axes]
        factors = [TableFactor((var,), np.asarray(axis.q)) for var, axis in zip(variables, self.cell_axes, strict=True)]
        factors += [TableFactor((variables[a], variables[b]), table) for (a, b), table in self.ratios]
        return MarkovNetwork.from_parts(variables, factors)

    @cached_property
    def stored_factors(self) -> Any:  # type: ignore[override]
        """The tables on cells."""
        return self.cells.stored_factors

    def faults(self) -> list[str]:
        """Everything that is wrong with the tables on cells."""
        return self.cells.faults()

    def to_markov_network(self) -> Any:
        """The same field on its cells, a discrete `MarkovNetwork` for which every engine works."""
        return self.cells

    def fit(self, clean: Any, noisy: Any, **options: Any) -> KernelGrid:  # type: ignore[override]
        """A field learned from other images; options are those of `learn_grid`."""
        return learn_grid(clean, noisy, **options)

    def query(  # type: ignore[override]
        self,
        targets: Any = None,
        evidence: Any = None,
        *,
        max_iter: int = 30,
        tol: float = 1e-2,
        damping: float = 0.2,
        power: float | None = None,
        **options: Any,
    ) -> Any:
        """Beliefs about all pixels given a noisy image, or, as of every model, about targets given evidence.

        Of an image (NaN pixels were not observed) loopy belief propagation by scans: right, left, down and up make a
        sweep, until no mass of a belief moves by more than `tol`, or `max_iter` sweeps.
        """
        if not _is_image(targets):
            return super().query(targets, evidence, **options)
        y = np.asarray(targets, dtype=np.float64)
        if y.ndim != 2 or min(y.shape) < 1:
            raise ModelError(f"an image has two axes; this has shape {y.shape}.")
        if not 0.0 <= damping < 1.0 or max_iter < 1:
            raise OptionError(f"damping lies from 0 to below 1, max_iter from 1; they are {damping!r}, {max_iter!r}.")
        R = _tempered(self.edge.R, self.power if power is None else power)
        return _scans(self.pixel, R, self._likelihood(y), max_iter, tol, damping)

    def _likelihood(self, y: FloatArray) -> Array:
        """r(x, y) on the cells of x for every pixel, (height, width, m)."""
        at: Placed = self.observed.place(y.ravel())
        R = np.asarray(self.noise.R, dtype=np.float32).T
        found = R[at.a] * (1.0 - at.f).astype(np.float32)[:, None] + R[at.b] * at.f.astype(np.float32)[:, None]
        near = (at.near * at.known).astype(np.float32)[:, None]
        return np.asarray(1.0 + near * (found - 1.0), dtype=np.float32).reshape(*y.shape, self.pixel.m)

    def save(self, path: Any) -> None:
        """Write a container with a checksum, as `gg.write(model, "model.gg")` does.

        >>> import os, tempfile
        >>> import gramgraph as gg
        >>> clean = np.add.outer(np.arange(20.0), np.arange(20.0))
        >>> model = gg.learn_grid(clean, clean + np.random.default_rng(0).normal(size=(20, 20)), cells=16)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(os.path.join(folder, "model.gg"))
        ...     type(gg.embeddings.KernelGrid.load(os.path.join(folder, "model.gg"))).__name__
        'KernelGrid'
        """
        from gramgraph.embeddings.network.files import save

        save(self, path)

    @staticmethod
    def load(path: Any) -> KernelGrid:
        """The field in a file that `save` wrote, or in an .npz of version 0.1.0; a `ParseError` for anything else."""
        from gramgraph.embeddings.network.files import load

        return load(path, "kernel_grid")  # type: ignore[no-any-return]


def _is_image(value: Any) -> bool:
    """Whether numbers were given, not names."""
    if value is None or isinstance(value, (str, tuple)) or not np.size(value):
        return False
    try:
        return np.asarray(value).dtype.kind in "fiub"
    except ValueError:  # names and tuples of names
        return False


def _tempered(R: Any, power: float) -> Array:
    """R to a power; not balanced again, as that would sharpen what the power has softened."""
    return np.ascontiguousarray(np.asarray(R, dtype=np.float64) ** power, dtype=np.float32)


def _scans(axis: LineAxis, R: Array, likelihood: Array, max_iter: int, tol: float, damping: float) -> GridAnswer:
    base = likelihood * axis.q.astype(np.float32)
    messages = [np.ones_like(base) for _ in range(4)]  # heard from the left, right, top, bottom
    belief = _normalized(base.copy())
    residual, sweeps = np.inf, 0
    while sweeps < max_iter and residual > tol:
        for k in range(4):
            _scan(base, messages, k, R, damping if sweeps else 0.0)
        new = base.copy()
        for message in messages:
            new *= message
        new = _normalized(new)
        residual = float(np.abs(new - belief).max())
        belief, sweeps = new, sweeps + 1
    return GridAnswer(axis, belief, sweeps, residual, residual <= tol)


def _normalized(values: Array) -> Array:
    total = values.sum(axis=2, keepdims=True)
    return np.asarray(values / np.maximum(total, 1e-30))


def _scan(base: Array, messages: list[Array], k: int, R: Array, damping: float) -> None:
    """Send along one direction from edge to edge; line i + 1 hears line i after that has heard its own neighbor."""
    flip = (lambda a: a) if k in (0, 2) else (lambda a: a[::-1])
    turn = (lambda a: a.swapaxes(0, 1)) if k < 2 else (lambda a: a)
    own = flip(turn(messages[k]))
    others = [flip(turn(messages[j])) for j in range(4) if j // 2 != k // 2]
    start = flip(turn(base))
    for i in range(1, len(own)):
        sent = start[i - 1] * own[i - 1]
        for message in others:
            sent = sent * message[i - 1]
        sent /= np.maximum(sent.sum(axis=1, keepdims=True), 1e-30)
        new = sent @ R
        own[i] = new if not damping else (1.0 - damping) * new + damping * own[i]


def learn_grid(
    clean: Any, noisy: Any, *, cells: int = 64, power: float | str = "auto", edge: str = "kernel"
) -> KernelGrid:
    """Learn a field of gray levels from a clean image (or several) and its noisy version.

    `clean` and `noisy` are arrays (height, width), or lists of them, of equal shapes. Neighboring pixels give the ratio
    between neighbors, pairs (clean, noisy) the observation; both as edges of `learn_tree`. On graphs with cycles the
    same information arrives on many ways: `power` tempers the ratio between neighbors; "auto" takes the one of 1, 0.7,
    0.5, 0.35 and 0.25 with the smallest squared error on the given images.

    Parameters
    ----------
    clean, noisy : images before and after the noise.
    edge : kind of the edges, as in `learn_tree`.
    cells : cells on the axis of gray levels.
    power : exponent of the ratio between neighbors, or "auto".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> clean = np.repeat(np.repeat(rng.random((4, 4)), 8, axis=0), 8, axis=1)
    >>> field = learn_grid(clean, clean + 0.1 * rng.normal(size=(32, 32)))
    >>> type(field).__name__
    'KernelGrid'
    """
    first, second = _images(clean, "clean"), _images(noisy, "noisy")
    if [a.shape for a in first] != [b.shape for b in second]:
        raise ModelError("clean and noisy images must have equal shapes, one noisy image for each clean one.")
    x, y = np.concatenate([a.ravel() for a in first]), np.concatenate([b.ravel() for b in second])
    axis = LineAxis.on("pixel", line_density(x), x, cells)
    seen = LineAxis.on("observed", line_density(y), y, cells)
    left = np.concatenate([np.concatenate([a[:, :-1].ravel(), a[:-1].ravel()]) for a in first])
    right = np.concatenate([np.concatenate([a[:, 1:].ravel(), a[1:].ravel()]) for a in first])
    pairs = Pair(End(axis, np.concatenate([left, right])), End(axis, np.concatenate([right, left])))
    between = fit_edge(pairs, edge)
    R = np.asarray(between.R, dtype=np.float64)
    between = Edge("pixel", "neighbor", 0.5 * (R + R.T), between.gain, between.parts, between.negative_mass)
    noise = fit_edge(Pair(End(axis, x), End(seen, y)), edge)
    model = KernelGrid(axis, seen, between, noise, 1.0, first[0].shape)
    if power != "auto":
        if isinstance(power, (str, bool)) or not 0.0 < power <= 1.0:
            raise OptionError(f"power must be 'auto' or a number above 0 up to 1; it is {power!r}.")
        return KernelGrid(axis, seen, between, noise, float(power), first[0].shape)
    errors = []
    for trial in _POWERS:
        found = [model.query(b, power=trial, max_iter=10).mean() for b in second[:1]]
        errors.append(float(np.mean([((m - a) ** 2).mean() for m, a in zip(found, first, strict=False)])))
    return KernelGrid(axis, seen, between, noise, _POWERS[int(np.argmin(errors))], first[0].shape)


def _images(images: Any, name: str) -> list[FloatArray]:
    many = list(images) if isinstance(images, (list, tuple)) and np.ndim(images[0]) == 2 else [images]
    out = []
    for image in many:
        array = np.asarray(image)
        if array.ndim != 2 or min(array.shape) < 2:
            raise ModelError(f"{name}: an image has two axes of at least 2 pixels; one has shape {array.shape}.")
        values = numbers_of(array.ravel(), name)
        if np.isnan(values).any():
            raise ModelError(f"{name}: a model is learned from images without missing pixels.")
        out.append(values.reshape(array.shape))
    return out
