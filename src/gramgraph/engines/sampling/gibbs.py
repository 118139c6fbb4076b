"""Gibbs sampling, compiled: each variable is drawn given its Markov blanket; also by colors."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph._numerics.compiling import expect_calls
from gramgraph.engines.sampling.blankets import NUMBERS, compile_case, compile_rows
from gramgraph.engines.sampling.chains import HIGH_R_HAT, ChainEngine, MixingWarning, Moves, Setting, diagnose
from gramgraph.typing import Array, FloatArray

__all__ = ["HIGH_R_HAT", "ColoredGibbs", "Gibbs", "MixingWarning", "compile_case", "diagnose"]


class GibbsMoves(Moves):
    """Sweeps over the variables in the order of `compiled`."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.rows = compile_rows(setting.compiled)
        self.weights = int(setting.compiled.sizes.max(initial=1))

    def expect(self, runs: int) -> None:
        """So many calls of `run` lie ahead."""
        from gramgraph._numerics.sampling.draws import gibbs

        expect_calls(gibbs, runs)

    def run(self, state: Array, sweeps: int, rng: np.random.Generator, counts: FloatArray) -> None:
        """Sweeps; targets that are one free variable are counted as they are drawn."""
        from gramgraph._numerics.sampling.draws import gibbs

        n, t = len(self.setting.compiled.variables), self.tally
        block = max(NUMBERS // max(n, 1), 1)
        weights, room = np.empty(self.weights), np.empty((min(block, sweeps), n))
        for first in range(0, sweeps, block):
            numbers = room[: sweeps - first]
            rng.random(out=numbers)
            gibbs(
                *self.setting.compiled, *self.rows, numbers, state, weights, t.column, counts, t.ptr, t.idx, t.stride,
                t.at,
            )  # fmt: skip
        counts[t.fixed] += sweeps


class Gibbs(ChainEngine):
    """Each variable in turn is drawn given its Markov blanket, in `n_chains` chains.

    Works on directed and undirected models. `budget` is the number of sweeps that are kept, over all chains, or a time
    ("5s"); `error` asks for a standard error and goes on until every probability has it (or the time is over, or 64
    times the budget is spent). `burn_in` sweeps are dropped first; by default a sixth of the chain, more while the
    chains disagree. `start` is a dict of first states (the others at random). `keep=True` keeps the draws for
    `gg.io.to_arviz`; `n_jobs` runs chains in threads, with the same numbers. Cost of a sweep: O(variables) where the
    blankets are small, else O(Σ_v factors of v × variables of each).

    `details`: the standard errors come from the means of pieces of the chains, `r_hat` from halves of chains (1 is
    mixed; above 1.1 there is a `MixingWarning`), `effective_draws` from both. log p(e) is not estimated: it is NaN.
    Zeros in the tables can lock a chain into a part of the states for ever; there is a warning when there are zeros
    among the unobserved variables, and chains start from different draws, so that R-hat can tell.

    >>> import gramgraph as gg
    >>> net = gg.models.ising_grid(2, 2, coupling=0.3, field=0.1)
    >>> answer = net.query("x0_0", engine="gibbs", random_state=0)
    >>> error = answer.details["standard_error"]["x0_0"]
    >>> exact = net.query("x0_0")
    >>> bool((abs(answer["x0_0"].probabilities - exact["x0_0"].probabilities) < 4 * error).all())
    True
    >>> answer.details["max_r_hat"] < 1.01
    True
    """

    name = "gibbs"

    def moves(self, setting: Setting, options: dict[str, Any]) -> Moves:
        """Sweeps in the order of the variables."""
        return GibbsMoves(setting)


class ColoredMoves(GibbsMoves):
    """Sweeps color by color."""

    def __init__(self, setting: Setting) -> None:
        from gramgraph._numerics.sampling.chains import color_greedily

        c = setting.compiled
        color = color_greedily(c.variables, c.var_ptr, c.other_ptr, c.other_idx, len(c.sizes))[c.variables]
        self.n_colors = int(color.max(initial=-1)) + 1
        ordered = c.variables[np.argsort(color, kind="stable")]
        super().__init__(setting._replace(compiled=c._replace(variables=ordered)))

    def report(self) -> dict[str, float]:
        """How many colors there are."""
        return {"n_colors": self.n_colors}


class ColoredGibbs(ChainEngine):
    """Gibbs sampling color by color: no two variables of a color share a factor, so that a color is drawn as one.

    Given the other colors the variables of one are independent; on a grid the two colors are a checkerboard. Draws
    inside a color do not wait for each other, which is faster on large models. Options and answers as of
    `engine="gibbs"`; `details["n_colors"]`.

    >>> import gramgraph as gg
    >>> net = gg.models.ising_grid(3, 3, coupling=0.3, field=0.1)
    >>> answer = net.query("x1_1", engine="colored_gibbs", random_state=0)
    >>> int(answer.details["n_colors"])
    2
    >>> abs(answer["x1_1"].prob("+1") - net.query("x1_1")["x1_1"].prob("+1")) < 0.02
    True
    """

    name = "colored_gibbs"

    def moves(self, setting: Setting, options: dict[str, Any]) -> Moves:
        """Sweeps color by color."""
        return ColoredMoves(setting)
