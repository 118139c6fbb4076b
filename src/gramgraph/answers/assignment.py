"""One assignment of states with its probability: the answer to "what is most probable"."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import islice
from typing import Any

from gramgraph import _show
from gramgraph.answers.frozen import Frozen
from gramgraph.answers.quality import Quality

#: States that are printed.
SHOWN_STATES = 200


class Assignment(Frozen):
    """One assignment of states with the logarithm of its probability.

    Parameters
    ----------
    assignment : the state of each variable.
    log_prob : logarithm of its probability.
    exact : whether no assignment is more probable.
    bound : what no assignment can exceed, where it is known.

    Examples
    --------
    >>> import gramgraph as gg
    >>> best = gg.datasets.sprinkler().map_query({"wet": "yes"})
    >>> sorted(best.assignment) == sorted(set(gg.datasets.sprinkler().variables) - {"wet"})
    True
    """

    assignment: dict[str, Any]
    log_prob: float
    exact: bool
    bound: float

    def __init__(
        self, assignment: Mapping[str, str], log_prob: float, *, exact: bool = True, bound: float | None = None
    ) -> None:
        above = log_prob if bound is None else bound
        self._hold(assignment=dict(assignment), log_prob=log_prob, exact=exact, bound=above)

    @property
    def gap(self) -> float:
        """How much larger the log_prob of any other assignment can be: `bound` less `log_prob`, 0 when proved best."""
        return max(self.bound - self.log_prob, 0.0)

    @property
    def quality(self) -> Quality:
        """ "exact" where it is proved best, "checked" with a bound of the rest, else "unreliable"; with a `reason`."""
        if self.exact:
            return Quality("exact", "proved to be the most probable assignment")
        if self.gap < math.inf:
            return Quality("checked", f"no assignment has a log probability that is larger by more than {self.gap:.3g}")
        return Quality("unreliable", "the best assignment that was found; nothing bounds the others")

    @property
    def reason(self) -> str:
        """Why the `quality` is what it is, in words."""
        return self.quality.reason

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Assignment):
            return NotImplemented
        return self.assignment == other.assignment and self.log_prob == other.log_prob

    __hash__ = None  # type: ignore[assignment]

    def to_frame(self) -> Any:
        """A DataFrame with the columns variable and state."""
        import pandas as pd

        return pd.DataFrame({"variable": list(self.assignment), "state": list(self.assignment.values())})

    def _title(self) -> str:
        return f"log p = {self.log_prob:.6g}" + ("" if self.exact else f" (not proved best; bound {self.bound:.6g})")

    def __repr__(self) -> str:
        shown, left = self._shown()
        inside = ", ".join([*(_show.clean(f"{name}={state}") for name, state in shown), *left])
        return f"Assignment({inside or 'nothing unobserved'}; {self._title()})"

    def __str__(self) -> str:
        shown, left = self._shown()
        return "\n".join([self._title(), _show.text_table(("", ""), shown), *left])

    def _repr_html_(self) -> str:
        shown, left = self._shown()
        return _show.html_table(("variable", "state"), [*shown, *((text, "") for text in left)], caption=self._title())

    def _shown(self) -> tuple[list[tuple[str, str]], list[str]]:
        """The first states, and in words how many there are beyond."""
        more = len(self.assignment) - SHOWN_STATES
        return list(islice(self.assignment.items(), SHOWN_STATES)), [f"… {more:,} more"] if more > 0 else []
