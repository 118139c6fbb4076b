"""Hidden Markov models that emit numbers, angles, symbols or vectors of any family of distributions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import validate_data

from gramgraph import distributions as _families
from gramgraph._validation import check_positive
from gramgraph.distributions import Bernoulli, Categorical, ExponentialFamily, Gaussian, Normal
from gramgraph.exceptions import ModelError, did_you_mean, listing
from gramgraph.sequences._labels import first_labels
from gramgraph.sequences._reading import LARGEST, joined, offsets_of, one_row
from gramgraph.sequences._unrolled import gaussian_node, table_node
from gramgraph.sequences.hmm import HiddenMarkovModel
from gramgraph.sequences.recursions import likelihoods
from gramgraph.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.conditionals import Conditional
    from gramgraph.variables import Var


@dataclass(frozen=True)
class DistributionEmission:
    """p(x | state) = Π over blocks of columns of a member of a family; rows with NaN in a block do not show it.

    The prior is `strength` observations that look like all data: exp(ν E_data[log p(x | θ)]).
    """

    members: tuple[tuple[Any, ...], ...]  # K × blocks
    blocks: tuple[Any, ...]  # of each: a column, or a slice of columns
    pool: tuple[FloatArray, ...]  # mean of φ over all data, of each block
    strength: float  # ν

    @property
    def n_parameters(self) -> int:
        """Natural parameters of all members (of families that have more than they need, one less)."""
        return sum(m.natural_parameters.size - (not m.minimal) for row in self.members for m in row)

    def likelihoods(self, data: FloatArray, /) -> tuple[FloatArray, FloatArray]:
        """Densities divided by the largest of the row, and its logarithm."""
        return likelihoods(self.logs(data))

    def logs(self, data: FloatArray, /) -> FloatArray:
        """Σ over blocks of log p(x | θ), (N, K); −inf outside the support."""
        out = np.zeros((len(data), len(self.members)))
        for c, columns in enumerate(self.blocks):
            x = data[:, columns]
            seen = _seen(x)
            for k, row in enumerate(self.members):
                if seen.all():
                    out[:, k] += row[c].log_density(x)
                elif seen.any():
                    out[seen, k] += row[c].log_density(x[seen])
        return out

    def update(self, data: FloatArray, gamma: FloatArray, /) -> Self:
        """Weighted maximum likelihood of every member; one that no data determine stays as it was."""
        new = [list(row) for row in self.members]
        for c, columns in enumerate(self.blocks):
            x = data[:, columns]
            seen = _seen(x)
            shown = x if seen.all() else x[seen]
            for k, row in enumerate(new):
                weights = gamma[seen, k] + self.strength / max(len(shown), 1)
                if weights.sum() > 1e-300:
                    row[c] = _or_old(lambda old=row[c], x=shown, w=weights: old.fit(x, weights=w, **old.known), row[c])
        return replace(self, members=tuple(tuple(row) for row in new))

    def moments(self, data: FloatArray, gamma: FloatArray, /) -> tuple[FloatArray, ...]:
        """Of every block Σ gamma, (K,), and Σ gamma φ(x), (K, m)."""
        out: list[FloatArray] = []
        for c, columns in enumerate(self.blocks):
            x = data[:, columns]
            seen = _seen(x)
            first = self.members[0][c]
            g = gamma[seen]
            out += [g.sum(axis=0), g.T @ _columns(first.checked_statistics(x[seen]))]
        return tuple(out)

    def from_moments(self, moments: tuple[FloatArray, ...], /) -> Self:
        """The members whose E φ are the means."""
        new = [list(row) for row in self.members]
        for c, (weights, sums) in enumerate(zip(moments[::2], moments[1::2], strict=True)):
            for k, row in enumerate(new):
                total = float(weights[k]) + self.strength
                if total > 1e-300:
                    mean = (sums[k] + (self.strength * self.pool[c] if self.strength else 0.0)) / total
                    row[c] = _or_old(lambda old=row[c], mu=mean: old.from_mean(mu, **old.known), row[c])
        return replace(self, members=tuple(tuple(row) for row in new))

    def take(self, states: IntArray, /) -> Self:
        """The members of these states."""
        return replace(self, members=tuple(self.members[int(k)] for k in states))

    def log_prior(self) -> float:
        """Σ ν (θᵀ E_data φ − A(θ))."""
        if not self.strength:
            return 0.0
        total = 0.0
        for row in self.members:
            for member, mean in zip(row, self.pool, strict=True):
                theta = member.natural_parameters
                total += float(np.where(mean == 0.0, 0.0, theta * mean).sum()) - member.log_partition
        return self.strength * total

    def draw(self, states: IntArray, rng: np.random.Generator, /) -> FloatArray:
        """Observations, (N, d)."""
        width = max(c + 1 if isinstance(c, int) else c.stop for c in self.blocks)
        out = np.empty((len(states), width))
        for k, row in enumerate(self.members):
            mine = np.flatnonzero(states == k)
            for member, columns in zip(row, self.blocks, strict=True):
                if len(mine):
                    out[mine, columns] = member.sample(len(mine), rng)
        return out

    def nodes(self, z: Var, name: str) -> list[tuple[Var, Conditional]]:
        """A variable a block: tables for symbols, Gaussians given the state for numbers."""
        out = []
        for c in range(len(self.blocks)):
            ms = [row[c] for row in self.members]
            label = name if len(self.blocks) == 1 else f"{name}_{c}"
            if isinstance(ms[0], Normal):
                out.append(
                    gaussian_node(z, label, np.array([[m.mean] for m in ms]), np.array([[[m.variance]] for m in ms]))
                )
            elif isinstance(ms[0], Gaussian):
                out.append(gaussian_node(z, label, np.array([m.mean for m in ms]), np.array([m.cov for m in ms])))
            elif isinstance(ms[0], Categorical):
                out.append(table_node(z, label, np.array([m.probabilities for m in ms])))
            elif isinstance(ms[0], Bernoulli):
                p = np.array([m.density([0.0, 1.0]) for m in ms])
                out.append(table_node(z, label, p))
            else:
                raise ModelError(
                    f"a network has no conditional of the family {type(ms[0]).__name__}; it has Normal, Gaussian, "
                    f"Bernoulli and Categorical."
                )
        return out


def _seen(x: FloatArray) -> Any:
    gaps = np.isnan(x)
    return ~(gaps if gaps.ndim == 1 else gaps.any(axis=1))


def _columns(phi: FloatArray) -> FloatArray:
    return phi[:, None] if phi.ndim == 1 else phi


def _or_old(make: Any, old: Any) -> Any:
    """A member, or the old one where the data have no best fit (no spread, a single value)."""
    try:
        return make()
    except ModelError:
        return old


@dataclass(eq=False, repr=False)
class DistributionHMM(HiddenMarkovModel):
    """A hidden Markov model whose states emit any family of `gramgraph.distributions`: angles, waiting times, ….

    Parameters
    ----------
    n_states : hidden states.
    families : a family or its name ("VonMises", "Gamma", "Laplace", …): of every column, or, for a family of vectors
        ("Gaussian", "Dirichlet", "VonMisesFisher"), of all columns together; or a list with one per column.
    prior : weight of a prior, in observations that look like all data; it keeps states from shrinking to a point.
    start_prior, transition_prior, transition_mask, transition_ties, emission_ties : as in `CategoricalHMM`.
    learning, fixed, n_init, max_iter, tol, n_jobs : as in `CategoricalHMM`.
    init : "kmeans", "random", or a fitted model to start from.
    random_state : seed, or a generator.

    Notes
    -----
    NaN entries were not observed (of a vector: the whole vector).

    Attributes
    ----------
    startprob_ (K,), transmat_ (K, K), distributions_ (of every state a tuple with a distribution a column, or the one
    of the vector), history_, n_iter_, converged_, log_likelihood_.

    Examples
    --------
    >>> truth = DistributionHMM.from_parameters(
    ...     [0.5, 0.5],
    ...     [[0.9, 0.1], [0.1, 0.9]],
    ...     [_families.VonMises(0.0, 8.0), _families.VonMises(3.0, 8.0)],
    ... )
    >>> angles, states = truth.sample(300, random_state=0)
    >>> model = DistributionHMM(2, families="VonMises", random_state=0).fit(angles)
    >>> sorted(abs(round(row[0].mean, 0)) for row in model.distributions_)
    [0.0, 3.0]
    """

    _: KW_ONLY
    families: Any = "Normal"
    prior: float = 0.01

    @classmethod
    def from_parameters(cls, startprob: Any, transmat: Any, distributions: Sequence[Any], **options: Any) -> Self:
        """A model with known numbers; `distributions` has a distribution a state, or a list of them, one per column.

        >>> wait = DistributionHMM.from_parameters([1.0], [[1.0]], [_families.Exponential(2.0)])
        >>> round(wait.score([[0.0]]), 6)
        0.693147
        """
        rows = [tuple(row) if isinstance(row, (list, tuple)) else (row,) for row in distributions]
        kinds = [tuple(type(m) for m in row) for row in rows]
        if not kinds or any(kind != kinds[0] for kind in kinds):
            raise ModelError("distributions must hold, for every state, members of the same families.")
        model = cls(len(startprob), families=kinds[0] if len(kinds[0]) > 1 else kinds[0][0], **options)
        model._set_chain(startprob, transmat)
        if len(rows) != model.n_states:
            raise ModelError(f"distributions must have {model.n_states} entries, one per state; it has {len(rows)}.")
        model.distributions_ = tuple(rows)
        first = rows[0]
        model.n_features_in_ = int(first[0].event_shape[0]) if first[0].event_ndim else len(first)
        model._blocks()
        return model

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive("prior", self.prior, zero=True)

    def _blocks(self) -> tuple[tuple[type[Any], ...], tuple[Any, ...]]:
        """(families, columns of each)."""
        d = self.n_features_in_
        given = self.families
        found = tuple(map(_family, given)) if isinstance(given, (list, tuple)) else (_family(given),)
        if len(found) == 1 and found[0].event_ndim == 1:
            return found, (slice(0, d),)
        if any(family.event_ndim for family in found):
            raise ModelError("a family of vectors stands alone: it takes all columns.")
        found = found * d if len(found) == 1 else found
        if len(found) != d:
            raise ModelError(f"families has {len(found)} entries, but X has {d} columns: give one, or one per column.")
        return found, tuple(range(d))

    def _read(self, X: Any, lengths: Any, *, reset: bool) -> tuple[FloatArray, IntArray]:
        X, lengths = joined(X, lengths)
        X = validate_data(self, X, reset=reset, dtype=np.float64, order="C", ensure_all_finite="allow-nan")
        offsets = offsets_of(len(X), lengths)
        if reset:
            if (np.abs(X) > LARGEST).any():
                column = int(np.argwhere(np.abs(X) > LARGEST)[0][1])
                raise ModelError(f"column {column} of X holds numbers whose squares overflow: divide it.")
            pool = []
            for family, columns in zip(*self._blocks(), strict=True):
                seen = _seen(X[:, columns])
                where = f"column {columns}" if isinstance(columns, int) else "the columns"
                if int(seen.sum()) < self.n_states:
                    raise ModelError(
                        f"n_states is {self.n_states}, but {where} of X has only n_samples={int(seen.sum())} observed "
                        f"rows."
                    )
                try:
                    pool.append(family.fit(X[seen][:, columns]))
                except ModelError as error:
                    raise ModelError(f"{where} of X does not suit {family.__name__}: {error}") from None
            self._pool = tuple(pool)
        return X, offsets

    def _read_one(self, z: Any) -> FloatArray:
        return one_row(z, self.n_features_in_)

    def _begin(
        self, data: FloatArray, offsets: IntArray, rng: np.random.Generator
    ) -> tuple[DistributionEmission, IntArray | None]:
        K = self.n_states
        first = self._made((self._pool,) * K)
        if self.init == "random":
            return first.update(data, rng.dirichlet(np.full(K, 0.5), len(data))), None
        labels = first_labels(_points(data, self._pool, first.blocks), offsets, K, self.transition_mask, rng)
        gamma = np.full((len(data), K), 0.1 / K)
        gamma[np.arange(len(data)), labels] += 0.9
        return first.update(data, gamma), labels

    def _made(self, members: tuple[tuple[Any, ...], ...]) -> DistributionEmission:
        _, blocks = self._blocks()
        pool = getattr(self, "_pool", None)
        means = tuple(np.atleast_1d(m.mean_parameters) for m in pool) if pool else ()
        return DistributionEmission(members, blocks, means, float(self.prior) if pool else 0.0)

    def _emission(self) -> DistributionEmission:
        return self._made(self.distributions_)

    def _store(self, emission: DistributionEmission) -> None:
        self.distributions_ = emission.members


def _family(given: Any) -> type[Any]:
    """A class of distributions that states can emit."""
    known = {
        name: value
        for name in _families.__all__
        if isinstance(value := getattr(_families, name), type)
        and issubclass(value, ExponentialFamily)
        and value is not ExponentialFamily
        and value.event_ndim <= 1
    }
    if isinstance(given, str):
        if given not in known:
            raise ModelError(
                f"{given!r} is not a family of emissions. Families: {listing(known)}.{did_you_mean(given, known)}"
            )
        return known[given]
    if isinstance(given, type) and given in known.values():
        return given
    raise ModelError(f"families must be names or classes of distributions, such as 'VonMises'; got {given!r}.")


def _points(data: FloatArray, pool: tuple[Any, ...], blocks: tuple[Any, ...]) -> FloatArray:
    """What k-means sees: numbers as they are, roots of counts, sufficient statistics (angles: cosine and sine)."""
    out = []
    for member, columns in zip(pool, blocks, strict=True):
        x = data[:, columns]
        seen = _seen(x)
        if member.support in ("real", "vector"):
            out.append(_columns(x))
            continue
        if member.support == "counts":
            out.append(_columns(np.sqrt(x)))
            continue
        phi = _columns(member.checked_statistics(x[seen]))
        full = np.full((len(x), phi.shape[1]), np.nan)
        full[seen] = np.where(np.isfinite(phi), phi, np.nan)
        out.append(full)
    return np.concatenate(out, axis=1)
