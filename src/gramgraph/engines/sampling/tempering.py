"""Parallel tempering: replicas at several temperatures exchange states."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gramgraph.engines.approximate import between, whole
from gramgraph.engines.sampling.blankets import compile_rows, log_weight, softened
from gramgraph.engines.sampling.chains import OPTIONS, ChainEngine, Moves, Setting
from gramgraph.typing import Array

TEMPERATURES, HOTTEST = 8, 0.1
#: What stands for a zero in the tables of the hot replicas, which may cross it.
CROSSED = 1e-6


class TemperedMoves(Moves):
    """States are (temperatures, variables), the first row at temperature one."""

    def __init__(self, setting: Setting, n_temperatures: int, hottest: float) -> None:
        super().__init__(setting)
        powers = np.linspace(1.0, hottest, n_temperatures)
        c = setting.compiled
        self.levels = [c, *(softened(c, CROSSED, float(power)) for power in powers[1:])]
        self.rows = [compile_rows(level) for level in self.levels]
        self.tried, self.swapped = 0, 0

    def start(self, rng: np.random.Generator) -> Array:
        """The same possible state at every temperature."""
        return np.repeat(super().start(rng)[None], len(self.levels), axis=0)

    def current(self, state: Array) -> Array:
        """The replica at temperature one."""
        return np.asarray(state[0])

    def move(self, state: Array, rng: np.random.Generator) -> None:
        """A Gibbs sweep at every temperature, then exchanges between neighbors, even and odd pairs by turns."""
        from gramgraph._numerics.sampling.chains import gibbs_many

        c = self.setting.compiled
        weights = np.empty(int(c.sizes.max(initial=1)))
        for t, (level, rows) in enumerate(zip(self.levels, self.rows, strict=True)):
            gibbs_many(*level, *rows, rng.random((1, len(c.variables))), state[t : t + 1], weights)
        part = self.setting.part
        for t in range(int(rng.integers(2)), len(self.levels) - 1, 2):
            low, high = self.levels[t], self.levels[t + 1]
            gain = log_weight(low, part, state[t + 1]) + log_weight(high, part, state[t])
            gain -= log_weight(low, part, state[t]) + log_weight(high, part, state[t + 1])
            self.tried += 1
            if np.log1p(-rng.random()) <= gain:
                self.swapped += 1
                state[[t, t + 1]] = state[[t + 1, t]]

    def report(self) -> dict[str, float]:
        """The share of accepted exchanges."""
        return {"swaps": self.swapped / max(self.tried, 1)}


class Tempering(ChainEngine):
    """Each chain is a ladder of replicas p(x)^β with β from 1 down to `hottest`, which exchange states.

    Hot replicas move freely (their tables have no zeros) and hand what they find down the ladder: for distributions of
    several separate parts, in which Gibbs sampling stays where it began. Options `n_temperatures` (8) and `hottest`
    (0.1); else options and answers as of `engine="gibbs"`. Cost: n_temperatures Gibbs sweeps, and O(factors) for every
    exchange. `details["swaps"]`: the share of accepted exchanges, which should not be near zero.

    >>> import gramgraph as gg
    >>> net = gg.models.ising_grid(3, 3, coupling=1.5)
    >>> answer = net.query("x0_0", engine="tempering", random_state=0, budget=4000)
    >>> answer.details["max_r_hat"] < 1.1, abs(answer["x0_0"].prob("+1") - 0.5) < 0.1
    (True, True)
    """

    name = "tempering"
    options: ClassVar[tuple[str, ...]] = (*OPTIONS, "n_temperatures", "hottest")
    locks = False

    def moves(self, setting: Setting, options: dict[str, Any]) -> Moves:
        """The ladder of one case."""
        number = whole("n_temperatures", options.get("n_temperatures", TEMPERATURES), 2)
        return TemperedMoves(setting, number, between("hottest", options.get("hottest", HOTTEST), 0.0, 1.0))
