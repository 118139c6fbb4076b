"""Collapsed Gibbs sampling of Dirichlet–categorical plate models."""

from __future__ import annotations

import warnings
from itertools import pairwise
from time import monotonic
from typing import Any

import numpy as np

from gramgraph.answers import PlateAnswer
from gramgraph.engines.approximate import whole
from gramgraph.engines.base import PLAIN, Engine, Run
from gramgraph.engines.plates.answers import count_answer
from gramgraph.engines.plates.counts import CountModel, Found, lower_counts
from gramgraph.engines.plates.urns import left_to_right, row_moments
from gramgraph.engines.sampling.chains import HIGH_R_HAT, MixingWarning
from gramgraph.models.plated.model import PlateModel
from gramgraph.questions.plate_question import PlateQuestion
from gramgraph.typing import FloatArray

#: Sweeps that are kept without a budget, over all chains; pieces of a chain whose means tell the standard error.
SWEEPS, PIECES = 4000, 20
#: Importance draws for log p(evidence), and the work (draws · sites · states) that they may take.
PARTICLES, PARTICLE_WORK = 2000, 1_000_000


class _Chain:
    """One chain: states, urns and what it has collected."""

    def __init__(self, model: CountModel, rng: np.random.Generator) -> None:
        self.m, self.rng = model, rng
        self.child_ptr, self.child = model.children()
        self.hidden = model.hidden
        self.value = np.where(model.value >= 0, model.value, 0)
        self.value[self.hidden] = (rng.random(len(self.hidden)) * model.sizes[self.hidden]).astype(np.int64)
        self.cells, self.totals = model.alpha.copy(), model.totals
        self.at = np.concatenate([[0], np.cumsum(model.sizes[self.hidden])]).astype(np.int64)
        self.tally = np.zeros(int(self.at[-1]))
        self.logs = np.empty(int(model.sizes.max(initial=1)))
        self.members = np.empty(1 + int(np.diff(self.child_ptr).max(initial=0)), dtype=np.int64)
        from gramgraph._numerics.plates.collapsed import fill

        m = model
        fill(self.value, m.table, m.choice, m.ptr, m.idx, m.stride, m.offset, m.step, self.cells, self.totals)

    def sweep(self) -> None:
        """One draw of every hidden site."""
        from gramgraph._numerics.plates.collapsed import sweep

        m = self.m
        sweep(
            self.hidden, m.sizes, self.value, m.table, m.choice, m.ptr, m.idx, m.stride, self.child_ptr, self.child,
            m.offset, m.step, self.cells, self.totals, self.rng.random(len(self.hidden)), self.logs, self.members,
            self.tally, self.at,
        )  # fmt: skip


class CollapsedGibbs(Engine):
    """Each hidden state in turn is drawn given all others, the Dirichlet (Beta) parameters integrated out.

    p(z_i = k | rest) is a product of ratios of counts; for topics (n_kw + β)/(n_k + Wβ) · (n_dk + α)/(n_d + Tα). Any
    plate model of discrete variables whose probabilities are tables, constants, Dirichlet or Beta variables. Beliefs
    are Rao–Blackwell averages: of the conditional probabilities from which the states were drawn, not of the draws, and
    of the means of the parameters given the states; joint beliefs of several members are frequencies of draws.

    `budget` is the number of sweeps that are kept, over all chains, or a time ("5s"); `n_chains` chains, each with
    `burn_in` sweeps before (by default a quarter). log p(evidence) is estimated by sequential importance draws
    (`log_evidence_error` is its standard error). `details["standard_error"]` holds errors by variable, from the means
    of pieces of the chains. Cost of a sweep: O(Σ states · (1 + members that a state chooses for)).

    >>> import gramgraph as gg
    >>> text = "theta{simplex 2} -> z[2]; plate draws: z"
    >>> model = gg.BayesianNetwork(text, cpds={"theta": gg.Dirichlet([1.0, 1.0])})
    >>> answer = model.query("z", {"z": [0, 0, None]}, engine="collapsed_gibbs", random_state=0)
    >>> answer["z"].prob("0").round(3).tolist()  # one hidden state: the conditional probability itself
    [1.0, 1.0, 0.75]
    """

    name = "collapsed_gibbs"
    kinds = ("plates",)
    options = ("n_chains", "burn_in")

    def __init__(self, *, n_chains: int = 4, burn_in: int | None = None) -> None:
        super().__init__(n_chains=n_chains, burn_in=burn_in)
        self.n_chains = whole("n_chains", n_chains)
        self.burn_in = None if burn_in is None else whole("burn_in", burn_in, 0)

    def answer(self, model: PlateModel, question: PlateQuestion, run: Run = PLAIN) -> PlateAnswer:  # type: ignore[override]
        """Beliefs with standard errors."""
        counts = lower_counts(question)
        found = self.sampled(counts, _joint_sites(question, counts), run)
        found.details["standard_error"] = found.errors(question)
        return count_answer(question, counts, found, engine=self.name)

    def sampled(self, counts: CountModel, wanted: list[tuple[int, ...]], run: Run) -> _Collected:
        """What the chains collect; a warning where they disagree."""
        found = _Collected(counts, wanted)
        sweeps = max(-(-(run.draws or SWEEPS) // self.n_chains), PIECES)
        end = None if run.seconds is None else monotonic() + run.seconds
        for rng in run.generator.spawn(self.n_chains):
            found.run(_Chain(counts, rng), sweeps, self.burn_in, end)
        log_p, error = _evidence(counts, run.generator)
        r_hat = found.r_hat()
        details = {
            "sweeps": found.sweeps, "log_evidence_error": error, "max_r_hat": r_hat,
            "effective_draws": found.effective(), "n_chains": self.n_chains,
        }  # fmt: skip
        Found.__init__(found, log_p, (found.mean / found.sweeps, found.square / found.sweeps), False, details)
        if r_hat > HIGH_R_HAT:
            warnings.warn(
                f"the chains of engine {self.name!r} disagree (R-hat {r_hat:.3g}): draw more, e.g. "
                f"budget={10 * sweeps * self.n_chains}",
                MixingWarning,
                stacklevel=2,
            )
        return found


def _joint_sites(question: PlateQuestion, counts: CountModel) -> list[tuple[int, ...]]:
    """Hidden sites whose joint frequencies are wanted."""
    out: dict[tuple[int, ...], None] = {}
    for target in question.targets.values():
        if isinstance(target, tuple) and all(name in counts.sites for name, _ in target):
            sites = [counts.sites[name][0] + i for name, i in target]
            out.setdefault(tuple(dict.fromkeys(s for s in sites if counts.value[s] < 0)))
    return list(out)


def _evidence(counts: CountModel, rng: np.random.Generator) -> tuple[float, float]:
    work = float(len(counts.sizes) * max(counts.sizes.max(initial=1), 1))
    n = int(min(PARTICLES, PARTICLE_WORK // max(work, 1.0)))
    return left_to_right(counts, n, rng) if n >= 50 else (np.nan, np.inf)


class _Collected(Found):
    """What the chains have seen, piece by piece."""

    def __init__(self, model: CountModel, wanted: list[tuple[int, ...]]) -> None:
        self.m, self.wanted = model, wanted
        self.hidden = model.hidden
        self.place = {int(s): i for i, s in enumerate(self.hidden)}
        self.at = np.concatenate([[0], np.cumsum(model.sizes[self.hidden])]).astype(np.int64)
        self.pieces: list[FloatArray] = []  # means of conditional probabilities in each piece
        self.owners: list[int] = []  # the chain of each piece
        self.frequencies: dict[tuple[int, ...], list[FloatArray]] = {key: [] for key in wanted}
        self.mean = np.zeros(len(model.alpha))
        self.square = np.zeros(len(model.alpha))
        self.sweeps = self.n_chains = 0

    def run(self, chain: _Chain, sweeps: int, burn_in: int | None, end: float | None) -> None:
        """Sweeps of one chain, after those that are dropped."""
        first = sweeps // 4 if burn_in is None else int(burn_in)
        for _ in range(first):
            chain.sweep()
            if end is not None and monotonic() > end:
                break
        bounds = np.linspace(0, sweeps, PIECES + 1).astype(int)
        for a, b in pairwise(bounds.tolist()):
            chain.tally[:] = 0.0
            tables = {key: np.zeros([int(self.m.sizes[s]) for s in key]) for key in self.wanted}
            for _ in range(b - a):
                chain.sweep()
                for key, table in tables.items():
                    table[tuple(chain.value[list(key)])] += 1.0 / (b - a)
                mean, square = row_moments(self.m, chain.cells, chain.totals)
                self.mean += mean
                self.square += square
            self.sweeps += b - a
            self.pieces.append(chain.tally / (b - a))
            self.owners.append(self.n_chains)
            for key, table in tables.items():
                self.frequencies[key].append(table)
            if end is not None and monotonic() > end:
                break
        self.n_chains += 1

    def table(self, sites: tuple[int, ...]) -> FloatArray:
        """Joint probabilities of hidden sites; one alone by its conditional probabilities."""
        if len(sites) == 1:
            i = self.place[sites[0]]
            return np.asarray(np.mean(self.pieces, axis=0)[self.at[i] : self.at[i + 1]])
        return np.asarray(np.mean(self.frequencies[sites], axis=0)) if sites else np.ones(())

    def marginals(self, model: CountModel, first: int, last: int) -> FloatArray:
        """As those of `Found`, all at once."""
        size = int(model.sizes[first]) if last > first else 0
        out = np.eye(size)[np.maximum(model.value[first:last], 0)] if size else np.zeros((0, 0))
        if size and len(self.hidden):
            own = (self.hidden >= first) & (self.hidden < last)
            at = self.at[:-1][own][:, None] + np.arange(size)
            out[self.hidden[own] - first] = np.mean(self.pieces, axis=0)[at]
        return out

    def errors(self, question: PlateQuestion) -> dict[Any, float]:
        """The largest standard error of each target, from the spread of the pieces."""
        n = len(self.pieces)
        spread = np.std(self.pieces, axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.zeros(len(self.pieces[0]))
        out: dict[Any, float] = {}
        for key, target in question.targets.items():
            if isinstance(target, str) and target in self.m.sites:
                first, last = self.m.sites[target]
                places = [self.place[s] for s in range(first, last) if s in self.place]
                parts = [spread[self.at[i] : self.at[i + 1]] for i in places]
                out[key] = float(np.max(np.concatenate([np.zeros(1), *parts])))
            elif isinstance(target, tuple) and all(name in self.m.sites for name, _ in target):
                out[key] = self._joint_error(target, spread)
        return out

    def _joint_error(self, target: Any, spread: FloatArray) -> float:
        sites = tuple(dict.fromkeys(s for n, i in target if self.m.value[s := self.m.sites[n][0] + i] < 0))
        if not sites:
            return 0.0
        if len(sites) == 1:
            i = self.place[sites[0]]
            return float(spread[self.at[i] : self.at[i + 1]].max())
        tables = np.stack(self.frequencies[sites])
        return float((tables.std(axis=0, ddof=1) / np.sqrt(len(tables))).max())

    def r_hat(self) -> float:
        """The largest ratio of the spread between chains to that within, of any probability."""
        pieces, owners = np.array(self.pieces), np.array(self.owners)
        if not pieces.size or self.n_chains < 2 or len(pieces) < 2 * self.n_chains:
            return 1.0
        chains = [pieces[owners == c] for c in range(self.n_chains)]
        n = min(map(len, chains))
        within = np.mean([part.var(axis=0, ddof=1) for part in chains], axis=0)
        between = np.var([part.mean(axis=0) for part in chains], axis=0, ddof=1)
        moving = within > 1e-16
        return float(np.sqrt((within * (n - 1) / n + between)[moving] / within[moving]).max(initial=1.0))

    def effective(self) -> float:
        """Effective draws of the least certain probability: its variance over its squared standard error."""
        pieces = np.array(self.pieces)
        if not pieces.size or len(pieces) < 2:
            return np.inf
        p = pieces.mean(axis=0)
        error = pieces.var(axis=0, ddof=1) / len(pieces)
        moving = error > 1e-16
        return float(((p * (1.0 - p))[moving] / error[moving]).min(initial=np.inf))
