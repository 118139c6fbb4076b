"""Filter, smoother and likelihood of one series (T, o) under a checked model, in every form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gramgraph._numerics.state_space.kalman import kalman_filter, rts_smoother, scores_backward
from gramgraph.exceptions import ModelError
from gramgraph.sequences._diffuse import FlatGaussian, Head, backward, open_start
from gramgraph.sequences._information import information_filter, information_smoother
from gramgraph.sequences._kalman_states import FilteredStates, SettledFiltered, SettledSmoothed, SmoothedStates
from gramgraph.sequences._settled import Settled
from gramgraph.sequences._square_root import rooted_filter, stacked
from gramgraph.sequences._state_space import Model
from gramgraph.typing import FloatArray

_BLOCK = 4096
_BACK = 64  # steps whose matrices are multiplied together on the way back
_FIRST = 256  # steps in which covariances should settle


def filtered(model: Model, y: FloatArray, shift: FloatArray | None, form: str = "covariance") -> FilteredStates:
    """Moments given the observations so far; `shift` (T, s) is added to every move."""
    if model.flat is not None:
        head, rest = open_start(model, y, shift)
        return _after_head(head, None if rest is None else filtered(rest, *_from(len(head.logs), y, shift), form))
    if form == "information":
        return FilteredStates(*information_filter(model, y, shift))
    rooted = form == "square_root"
    settled = None if rooted or model.varying or shift is not None else settled_from(model, y)
    if settled is None:
        return _step_by_step(model, y, shift=shift, rooted=rooted)
    found = settled.filter(y)._asdict()
    stacks = {name: found.pop(name) for name in ("covariances", "predicted_covariances")}
    return SettledFiltered(stacks, found)


def smoothed(
    model: Model, y: FloatArray, shift: FloatArray | None, form: str = "covariance", room: int = 0
) -> SmoothedStates:
    """Moments given all observations, after so many steps of `room` (unless they settled)."""
    if model.flat is not None:
        head, rest = open_start(model, y, shift)
        n = len(head.logs)
        later = None if rest is None else smoothed(rest, *_from(n, y, shift), form, n)
        return _before_rest(model, head, rest, later)
    if form == "information":
        return _after_room(SmoothedStates(*information_smoother(model, y, shift)), room)
    rooted = form == "square_root"
    settled = None if rooted or model.varying or shift is not None else settled_from(model, y)
    if settled is not None:
        found = settled.smooth(y)
        stacks = {"covariances": found.covariances, "cross_covariances": found.cross}
        return SettledSmoothed(stacks, {"means": found.means, "log_likelihood": found.log_likelihood})
    by_scores = _by_scores(model, y, shift, rooted, room)
    if by_scores is not None:
        return by_scores
    return _after_room(_by_gains(model, _step_by_step(model, y, shift=shift, rooted=rooted)), room)


def _by_scores(model: Model, y: FloatArray, shift: FloatArray | None, rooted: bool, room: int) -> SmoothedStates | None:
    """Backward without inverse covariances of states; None where an observation is nearly without noise.

    Covariances given all observations take the place of the filtered ones, and covariances of neighbors that of the
    predicted ones, as soon as these have been read: new memory takes longer than the sums.
    """
    T, s = len(y), model.n_states
    covs, ahead = np.empty((room + T, s, s)), np.empty((room + T, s, s))
    seen = _step_by_step(model, y, shift=shift, rooted=rooted, covs=covs[room:], pred_covs=ahead[room:])
    (A, at), (H, ht), (R, rt) = stacked(model.A, T), stacked(model.H, T), stacked(model.R, T)
    means, r, N = np.empty((room + T, s)), np.zeros(s), np.zeros((s, s))
    moments = seen.means, seen.covariances, seen.predicted_means, seen.predicted_covariances
    blocks = np.empty((4, min(_BACK, T), s, s))
    for hi in range(T, 0, -_BACK):
        lo = max(hi - _BACK, 0)
        C, infos, W, product = blocks[:, : hi - lo]
        if not scores_backward(A, at, H, ht, R, rt, y, lo, hi, *moments, r, N, means[room:], C, infos):
            return None
        np.matmul(C, infos, out=W)
        end = min(hi, T - 1)
        if end > lo:
            later = seen.predicted_covariances[lo + 1 : end + 1]
            np.matmul(W[: end - lo], later, out=product[: end - lo])
            np.subtract(C[: end - lo], product[: end - lo], out=later)
        here = seen.covariances[lo:hi]
        here -= np.matmul(W, C.transpose(0, 2, 1), out=product)
        np.copyto(product, here.transpose(0, 2, 1))
        here += product
        here *= 0.5
    return SmoothedStates(means, covs, ahead[1:], seen.log_likelihood)


def _after_room(states: SmoothedStates, room: int) -> SmoothedStates:
    """The same states after so many steps that are still to be written."""
    if not room:
        return states

    def after(M: FloatArray) -> FloatArray:
        return np.concatenate([np.empty((room, *M.shape[1:])), M])

    moments = after(states.means), after(states.covariances), after(states.cross_covariances)
    return SmoothedStates(*moments, states.log_likelihood)


def _by_gains(model: Model, seen: FilteredStates) -> SmoothedStates:
    """Backward by the gains of Rauch, Tung and Striebel."""
    T, s = seen.means.shape
    means, covs, gains = np.empty((T, s)), np.empty((T, s, s)), np.empty((T, s, s))
    A, at = stacked(model.A, T)
    rts_smoother(
        A, at, seen.means, seen.covariances, seen.predicted_means, seen.predicted_covariances,
        means, covs, gains,
    )  # fmt: skip
    return SmoothedStates(means, covs, gains[:-1] @ covs[1:], seen.log_likelihood)


def log_likelihood_of(model: Model, y: FloatArray, shift: FloatArray | None, form: str = "covariance") -> float:
    """log p(y): block after block, so that a long series needs no memory for its covariances."""
    if model.flat is not None:
        head, rest = open_start(model, y, shift)
        first = float(head.logs.sum())
        return first if rest is None else first + log_likelihood_of(rest, *_from(len(head.logs), y, shift), form)
    if form == "information":
        return float(information_filter(model, y, shift)[-1].sum())
    if model.varying or shift is not None or form == "square_root":
        return _step_by_step(model, y, shift=shift, rooted=True).log_likelihood
    settled = settled_from(model, y)
    if settled is not None:
        return settled.log_likelihood(y)
    total, start = 0.0, (model.m0, model.P0)
    for first_row in range(0, len(y), _BLOCK):
        try:
            seen = _step_by_step(model, y[first_row : first_row + _BLOCK], start)
        except ModelError as error:
            raise ModelError(f"in the steps from {first_row}: {error}") from None
        total += seen.log_likelihood
        start = model.A @ seen.means[-1], model.A @ seen.covariances[-1] @ model.A.T + model.Q
    return total


def _from(n: int, y: FloatArray, shift: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
    return y[n:], None if shift is None else shift[n:]


def _after_head(head: Head, tail: FilteredStates | None) -> FilteredStates:
    """The first steps and what came after them."""
    means, covs, ahead, ahead_covs = head.moments()
    if tail is None:
        return FilteredStates(means, covs, ahead, ahead_covs, head.logs)
    rows = {
        "means": np.concatenate([means, tail.means]),
        "predicted_means": np.concatenate([ahead, tail.predicted_means]),
        "log_likelihoods": np.concatenate([head.logs, tail.log_likelihoods]),
    }
    first = {"covariances": covs, "predicted_covariances": ahead_covs}
    if isinstance(tail, SettledFiltered):
        return SettledFiltered({name: tail.stack(name).after(part) for name, part in first.items()}, rows)
    return FilteredStates(**rows, **{name: np.concatenate([part, getattr(tail, name)]) for name, part in first.items()})


def _before_rest(model: Model, head: Head, rest: Model | None, later: SmoothedStates | None) -> SmoothedStates:
    """The first steps given what came after them, and that."""
    s, n = model.n_states, 0 if later is None or isinstance(later, SettledSmoothed) else len(head.logs)
    last = None if later is None else FlatGaussian(later.means[n], later.covariances[n], np.zeros((s, 0)))
    beliefs, cross = backward(model, head, rest, last)
    moments = [belief.moments() for belief in beliefs]
    means, covs = np.array([m for m, _ in moments]), np.array([P for _, P in moments])
    total = float(head.logs.sum())
    if later is None:
        return SmoothedStates(means, covs, cross, total)
    total += later.log_likelihood
    first = {"covariances": covs, "cross_covariances": cross}
    if isinstance(later, SettledSmoothed):
        stacks = {name: later.stack(name).after(part) for name, part in first.items()}
        return SettledSmoothed(stacks, {"means": np.concatenate([means, later.means]), "log_likelihood": total})
    for name, part in {"means": means, **first}.items():
        getattr(later, name)[: len(part)] = part
    return replace(later, log_likelihood=total)


def _step_by_step(
    model: Model,
    y: FloatArray,
    start: tuple[FloatArray, FloatArray] | None = None,
    *,
    shift: FloatArray | None = None,
    rooted: bool = False,
    covs: FloatArray | None = None,
    pred_covs: FloatArray | None = None,
) -> FilteredStates:
    """One step after the other; `covs` and `pred_covs` are memory for covariances."""
    T, s = len(y), model.n_states
    m0, P0 = (model.m0, model.P0) if start is None else start
    means, pred_means, logs = np.empty((T, s)), np.empty((T, s)), np.empty(T)
    covs = np.empty((T, s, s)) if covs is None else covs
    pred_covs = np.empty((T, s, s)) if pred_covs is None else pred_covs
    if rooted or model.varying or shift is not None:
        done = rooted_filter(
            model, y, m0, P0, shift=shift, means=means, covs=covs, pred_means=pred_means, pred_covs=pred_covs, logs=logs
        )
    else:
        same = np.zeros(T, dtype=np.int64)
        done = kalman_filter(
            model.A[None], model.Q[None], same, model.H, model.R[None], same, y, m0, P0,
            means, covs, pred_means, pred_covs, logs,
        )  # fmt: skip
    if done < T:
        raise ModelError(
            f"the covariance of the observation at step {done} is not positive definite: R and H P Hᵀ leave a "
            f"direction without noise. Try: a positive definite R."
        )
    return FilteredStates(means, covs, pred_means, pred_covs, logs)


def settled_from(model: Model, y: FloatArray) -> Settled | None:
    """The constant gain of a long series without gaps, when its covariances settle within the first steps."""
    if len(y) < 2 * _FIRST or np.isnan(y).any():
        return None
    return Settled.of(model, _step_by_step(model, y[:_FIRST]))
