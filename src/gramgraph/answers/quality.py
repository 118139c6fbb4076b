"""How far an answer can be trusted: one word, and the reason for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

#: A sampler whose chains disagree more, or with fewer effective draws, is not to be trusted.
TRUSTED_R_HAT, TRUSTED_DRAWS = 1.1, 50
#: An observation that is nearer to the data than this counts as one of them (1 inside, 0 far away).
TRUSTED_SUPPORT = 0.5
#: Quadrature whose stated error is larger, in standard deviations or nats, is not to be trusted.
TRUSTED_NODES = 0.1
#: Bounds of log p(evidence) that are further apart, in nats, say little about the rest of the answer.
TRUSTED_INTERVAL = 10.0


class Quality(str):
    """ "exact", "checked" (approximate, and its diagnostics are good) or "unreliable", with the `reason` in words.

    Parameters
    ----------
    word : "exact", "checked" or "unreliable".
    reason : why, in a sentence.

    Examples
    --------
    >>> import gramgraph as gg
    >>> quality = gg.datasets.asia().query("lung").quality
    >>> quality == "exact", quality.reason
    (True, 'enumeration computes the answer without approximation')
    """

    __slots__ = ("_reason",)
    _reason: str

    def __new__(cls, word: str, reason: str) -> Quality:
        """One of the three words, and its reason."""
        made = super().__new__(cls, word)
        made._reason = reason
        return made

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return str(self), self._reason

    @property
    def reason(self) -> str:
        """Why, in words."""
        return self._reason

    def __repr__(self) -> str:
        return f"{self!s}: {self.reason}"


def judge(engine: str, exact: bool, details: Mapping[str, Any], log_evidence: Any) -> Quality:
    """The quality of an answer, from what its engine tells about the run."""
    far = [name for name, near in dict(details.get("support") or {}).items() if np.any(near < TRUSTED_SUPPORT)]
    if far:
        return Quality("unreliable", f"what was observed of {', '.join(far)} lies far from the data")
    if exact:
        return Quality("exact", f"{engine} computes the answer without approximation")
    good: list[str] = []
    bad: list[str] = []
    for told in (_settled, _chains, _draws, _nodes, _bounds, _fit):
        text, passed = told(details, log_evidence)
        if text:
            (good if passed else bad).append(text)
    if bad:
        return Quality("unreliable", f"{engine}: {', '.join(bad)}")
    if good:
        return Quality("checked", f"{engine}: {', '.join(good)}")
    return Quality("unreliable", f"{engine} is approximate and tells nothing about its error")


def _settled(details: Mapping[str, Any], _: Any) -> tuple[str, bool]:
    """Messages and bounds that came to rest, and whether anything ended them early."""
    found = details.get("converged")
    if found is None:
        early = details.get("stopped")
        return (f"stopped early ({early})", False) if early else ("", True)
    lost = int(np.sum(~np.atleast_1d(found)))
    if not lost:
        return "converged", True
    return ("NOT converged" if np.ndim(found) == 0 else f"NOT converged in {lost} of {len(found)} cases"), False


def _chains(details: Mapping[str, Any], _: Any) -> tuple[str, bool]:
    r_hat = details.get("max_r_hat")
    if r_hat is None:
        return "", True
    worst = float(np.max(r_hat, initial=1.0))
    return f"R-hat up to {worst:.3g}", worst <= TRUSTED_R_HAT


def _draws(details: Mapping[str, Any], _: Any) -> tuple[str, bool]:
    draws = details.get("min_effective_draws", details.get("effective_draws"))
    if draws is None or isinstance(draws, Mapping):
        return "", True
    least = float(np.min(draws, initial=np.inf))
    if least == np.inf:  # every variable that was asked for was certain
        return "no variance left to estimate", True
    enough = least >= TRUSTED_DRAWS
    return f"{'at least' if enough else 'only'} {least:,.0f} effective draws", enough


def _nodes(details: Mapping[str, Any], _: Any) -> tuple[str, bool]:
    """What quadrature says about its own error: in standard deviations of the beliefs, and of log p(evidence)."""
    found = details.get("node_error")
    if found is None:
        return "", True
    worst, log_p = (float(np.max(details[name], initial=0.0)) for name in ("node_error", "log_evidence_error"))
    good = worst <= TRUSTED_NODES and log_p <= TRUSTED_NODES
    return f"stated error {worst:.2g} standard deviations, {log_p:.2g} of log p(evidence)", good


def _bounds(details: Mapping[str, Any], log_evidence: Any) -> tuple[str, bool]:
    """Bounds of log p(evidence): an estimate that had to be moved onto one of them contradicts it."""
    found = details.get("log_evidence_interval")
    if found is None:
        return "", True
    low, high = (np.atleast_1d(np.asarray(end, dtype=np.float64)) for end in found)
    at = np.atleast_1d(np.asarray(log_evidence, dtype=np.float64))
    moved = int((((at <= low) | (at >= high)) & (high - low > 1e-6 * (1.0 + np.abs(high)))).sum())
    if moved:
        where = "" if len(at) == 1 else f" in {moved} of {len(at)} cases"
        return f"its estimate of log p(evidence) lay outside of proved bounds{where}", False
    apart = float(np.max(high - low, initial=0.0))
    return f"log p(evidence) lies within proved bounds at most {apart:.2g} apart", apart <= TRUSTED_INTERVAL


def _fit(details: Mapping[str, Any], _: Any) -> tuple[str, bool]:
    gap = details.get("soft_evidence_gap")
    return ("", True) if gap is None else (f"soft evidence met up to {gap:.1g}", True)
