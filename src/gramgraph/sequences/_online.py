"""Online EM of hidden Markov models: running averages of expected statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gramgraph._validation import generator
from gramgraph.exceptions import ModelError
from gramgraph.sequences._training import in_own_order
from gramgraph.sequences.baum_welch import expectations, shared
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.sequences.hmm import HiddenMarkovModel


def stepwise(model: HiddenMarkovModel, X: Any, lengths: Any, step: float | None) -> Any:
    """One batch: `HiddenMarkovModel.partial_fit`.

    Statistics are kept a row (those of first states a sequence), and multiplied by the rows so far before an update, so
    that priors weigh as much as they do in `fit`.
    """
    fresh = not hasattr(model, "transmat_")
    model._check_parameters()
    data, offsets = model._read(X, lengths, reset=fresh)
    data, offsets, _ = in_own_order(data, offsets)
    if fresh:
        chain, emission = model._first(data, offsets, generator(model.random_state))
    else:
        chain, emission = model._chain(model.startprob_, model.transmat_), model._emission()
    running: tuple[FloatArray, ...] | None = getattr(model, "statistics_", None)
    batch, rows = (int(model.n_batches_), int(model.n_seen_)) if running is not None else (0, 0)
    eta = (batch + 1.0) ** -0.6 if step is None else float(step)
    if not 0.0 < eta <= 1.0:
        raise ModelError(f"step must lie above 0 and be at most 1; it is {step!r}.")
    found = expectations(chain, emission, data, offsets, model.n_jobs)
    ties = model._ties()
    n = int(offsets[-1])
    new = (found.start_counts, found.transition_counts, *emission.moments(data, shared(found.probabilities, ties)))
    new = tuple(part / n for part in new)
    if running is not None:
        new = tuple((1.0 - eta) * old + eta * part for old, part in zip(running, new, strict=True))
    rows += n
    fixed = tuple(model.fixed)
    chain = chain.update(rows * new[0], rows * new[1], fixed)
    if "emissions" not in fixed:
        model._store(emission.from_moments(tuple(rows * part for part in new[2:])))
    elif fresh:
        model._store(emission)
    model.startprob_, model.transmat_ = chain.start, chain.transition
    model.statistics_, model.n_batches_, model.n_seen_ = new, batch + 1, rows  # type: ignore[attr-defined]
    model.log_likelihood_ = found.log_likelihood
    return model
