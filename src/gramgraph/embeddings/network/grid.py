"""Images as Markov random fields: one density ratio between neighbors, one between a pixel and its observation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.embeddings.network.axes import LineAxis, Placed, numbers_of
from gramgraph.embeddings.network.candidates import Pair
from gramgraph.embeddings.network.density import line_density
from gramgraph.embeddings.network.ends import End
from gramgraph.embeddings.network.stack import Edge, fit_edge
from gramgraph.exceptions import ModelError, OptionError
from gramgraph.typing import Array, FloatArray

__all__ = ["GridAnswer", "KernelGrid", "learn_grid"]

_POWERS = (1.0, 0.7, 0.5, 0.35, 0.25)


@dataclass(frozen=True, eq=False)
class GridAnswer:
    """Beliefs about every pixel: posterior masses on the cells, and how propagation ended.

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


@dataclass(frozen=True, eq=False)
class KernelGrid:
    """p(x) ∝ Π_v p(x_v) Π_(s,t) r(x_s, x_t)^power on the pixels of an image, and p(y_v | x_v) of what is observed.

    All pixels share their tables, so that a model is a few kilobytes, and the cost of a sweep of belief propagation,
    8 m² operations a pixel with m cells, does not depend on how many levels of gray there are. `learn_grid` makes it.

    >>> import gramgraph as gg
    >>> rng = np.random.default_rng(0)
    >>> clean = np.add.outer(np.sin(np.arange(40) / 6.0), np.cos(np.arange(40) / 8.0))
    >>> model = gg.learn_grid(clean, clean + 0.3 * rng.normal(size=clean.shape))
    >>> answer = model.query(clean + 0.3 * rng.normal(size=clean.shape))
    >>> bool(np.abs(answer.mean() - clean).mean() < 0.12)
    True
    """

    axis: LineAxis
    observed: LineAxis
    edge: Edge  # between neighbors, symmetric
    noise: Edge  # between a pixel and its observation
    power: float  # of the ratio between neighbors

    def query(
        self, image: Any, *, max_iter: int = 30, tol: float = 1e-2, damping: float = 0.2, power: float | None = None
    ) -> GridAnswer:
        """Beliefs about all pixels given a noisy image; NaN pixels were not observed.

        Loopy belief propagation by scans: right, left, down and up make a sweep, until no mass of a belief moves by
        more than `tol`, or `max_iter` sweeps.
        """
        y = np.asarray(image, dtype=np.float64)
        if y.ndim != 2 or min(y.shape) < 1:
            raise ModelError(f"an image has two axes; this has shape {y.shape}.")
        if not 0.0 <= damping < 1.0 or max_iter < 1:
            raise OptionError(f"damping lies from 0 to below 1, max_iter from 1; they are {damping!r}, {max_iter!r}.")
        likelihood = self._likelihood(y)
        R = _tempered(self.edge.R, self.power if power is None else power)
        return _scans(self.axis, R, likelihood, max_iter, tol, damping)

    def _likelihood(self, y: FloatArray) -> Array:
        """r(x, y) on the cells of x for every pixel, (height, width, m)."""
        at: Placed = self.observed.place(y.ravel())
        R = np.asarray(self.noise.R, dtype=np.float32).T
        found = R[at.a] * (1.0 - at.f).astype(np.float32)[:, None] + R[at.b] * at.f.astype(np.float32)[:, None]
        near = (at.near * at.known).astype(np.float32)[:, None]
        return np.asarray(1.0 + near * (found - 1.0), dtype=np.float32).reshape(*y.shape, self.axis.m)

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
    model = KernelGrid(axis, seen, between, noise, 1.0)
    if power != "auto":
        if isinstance(power, (str, bool)) or not 0.0 < power <= 1.0:
            raise OptionError(f"power must be 'auto' or a number above 0 up to 1; it is {power!r}.")
        return KernelGrid(axis, seen, between, noise, float(power))
    errors = []
    for trial in _POWERS:
        found = [model.query(b, power=trial, max_iter=10).mean() for b in second[:1]]
        errors.append(float(np.mean([((m - a) ** 2).mean() for m, a in zip(found, first, strict=False)])))
    return KernelGrid(axis, seen, between, noise, _POWERS[int(np.argmin(errors))])


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
