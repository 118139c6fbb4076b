"""Metropolis–Hastings with proposals of the user."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gramgraph.engines.approximate import whole
from gramgraph.engines.sampling.blankets import log_weight
from gramgraph.engines.sampling.chains import OPTIONS, ChainEngine, Moves, Setting
from gramgraph.exceptions import OptionError
from gramgraph.typing import Array


class SiteMoves(Moves):
    """As many single-variable proposals a sweep as there are free variables, each to another state at random."""

    def __init__(self, setting: Setting, steps: int | None) -> None:
        super().__init__(setting)
        self.steps = len(setting.compiled.variables) if steps is None else steps
        self.accepted = self.proposed = 0

    def move(self, state: Array, rng: np.random.Generator) -> None:
        """One sweep of proposals."""
        from gramgraph._numerics.sampling.chains import metropolis_sweep

        if len(self.setting.compiled.variables):
            self.accepted += metropolis_sweep(*self.setting.compiled, rng.random((self.steps, 3)), state)
            self.proposed += self.steps

    def report(self) -> dict[str, float]:
        """The share of accepted proposals."""
        return {"acceptance": self.accepted / max(self.proposed, 1)}


class UserMoves(SiteMoves):
    """Proposals of a function."""

    def __init__(self, setting: Setting, steps: int | None, proposal: Any) -> None:
        super().__init__(setting, 1 if steps is None else steps)
        self.proposal = proposal
        self.n = setting.cases.low.n_visible
        self.fixed = np.ones(len(setting.compiled.sizes), np.bool_)
        self.fixed[setting.compiled.variables] = False

    def move(self, state: Array, rng: np.random.Generator) -> None:
        """`steps` proposals."""
        s = self.setting
        log_p = log_weight(s.compiled, s.part, state)
        for _ in range(self.steps):
            new, log_ratio = self._propose(state, rng)
            self.proposed += 1
            log_new = log_weight(s.compiled, s.part, new)
            if np.log1p(-rng.random()) <= log_new - log_p + log_ratio:
                state[:], log_p = new, log_new
                self.accepted += 1

    def _propose(self, state: Array, rng: np.random.Generator) -> tuple[Array, float]:
        """What the user's function gives, after a check."""
        given = self.proposal(state[: self.n].astype(np.int64), rng)
        if isinstance(given, np.ndarray):
            given = (given, 0.0)
        if not isinstance(given, tuple) or len(given) != 2:
            raise OptionError(f"proposal returns (new state, log ratio), or an array, not {type(given).__name__}")
        new, log_ratio = np.asarray(given[0]), float(given[1])
        if new.shape != (self.n,) or not np.issubdtype(new.dtype, np.integer):
            raise OptionError(f"a proposed state is an array of {self.n} whole numbers, one for each variable")
        if log_ratio != log_ratio:
            raise OptionError("the log ratio of a proposal is not a number")
        sizes, free = self.setting.compiled.sizes[: self.n], ~self.fixed[: self.n]
        if ((new < 0) | (new >= sizes))[free].any():
            v = int(np.flatnonzero(((new < 0) | (new >= sizes)) & free)[0])
            name = self.setting.cases.low.variables[v].name
            raise OptionError(f"the proposal gives {name} the state number {new[v]}; it has {sizes[v]} states, from 0")
        out = state.copy()
        out[: self.n][free] = new[free]
        return out, log_ratio


class Metropolis(ChainEngine):
    """Proposals that are accepted with probability min(1, p(new)/p(old) · q(old | new)/q(new | old)).

    `proposal(state, rng)` returns (new state, log q(old | new)/q(new | old)), where a state is an array of state
    numbers in the order of `model.variables`, and 0 stands for a symmetric proposal (the new state alone will do);
    changes to observed variables are ignored. Without it another state of a variable chosen at random is proposed.
    `steps` proposals make one sweep (one of the user's, else as many as there are free variables). Cost of a user's
    proposal: O(all factors). Options and answers else as of `engine="gibbs"`; `details["acceptance"]`.

    >>> import gramgraph as gg
    >>> net = gg.models.ising_grid(2, 2, coupling=1.5)
    >>> def flip_all_or_one(state, rng):
    ...     if rng.random() < 0.5:
    ...         return 1 - state, 0.0
    ...     state[rng.integers(len(state))] ^= 1
    ...     return state
    >>> answer = net.query("x0_0", engine="metropolis", proposal=flip_all_or_one, random_state=0, budget=4000)
    >>> abs(answer["x0_0"].prob("+1") - 0.5) < 0.05, answer.details["acceptance"] > 0.4
    (True, True)
    """

    name = "metropolis"
    options: ClassVar[tuple[str, ...]] = (*OPTIONS, "proposal", "steps")

    def moves(self, setting: Setting, options: dict[str, Any]) -> Moves:
        """The user's proposals, or single sites."""
        steps, proposal = options.get("steps"), options.get("proposal")
        steps = None if steps is None else whole("steps", steps)
        if proposal is None:
            return SiteMoves(setting, steps)
        if not callable(proposal):
            raise OptionError(f"proposal is a function (state, rng) → (new state, log ratio), not {proposal!r}")
        return UserMoves(setting, steps, proposal)
