"""Kept draws of chain samplers for ArviZ."""

from __future__ import annotations

from typing import Any

from gramgraph.answers import Answer, Belief
from gramgraph.exceptions import OptionError


def to_arviz(answer: Answer, *, names: list[str] | None = None) -> Any:
    """The draws of a chain sampler as ArviZ's InferenceData (a DataTree from ArviZ 1.0 on), for its plots and tables.

    The answer must have been asked for with `keep=True`. Each target is a variable of dimensions (chain, draw) that
    holds state numbers, with the labels in its attribute `states`; `names` picks some of them. Needs `arviz`
    (`pip install 'gramgraph[mcmc]'`).

    Parameters
    ----------
    answer : of a chain sampler, asked for with `keep=True`.
    names : which targets; None for all.

    Examples
    --------
    >>> import gramgraph as gg
    >>> net = gg.models.ising_grid(2, 2, coupling=0.3)
    >>> answer = net.query("x0_0", engine="gibbs", keep=True, budget=400, random_state=0)
    >>> answer.details["chains"]["x0_0"].shape  # gg.io.to_arviz(answer) hands these on
    (4, 100)
    """
    chains = answer.details.get("chains")
    if chains is None:
        raise OptionError(
            'the answer holds no draws: ask a chain sampler to keep them, as in query(…, engine="gibbs", keep=True)'
        )
    for name in names or ():
        if name not in chains:
            raise OptionError(f"{name!r} has no kept draws. Kept: {', '.join(list(chains)[:20])}")
    try:
        import arviz
    except ImportError:
        raise OptionError("arviz is not installed: pip install 'gramgraph[mcmc]'") from None
    posterior = {name: chains[name] for name in (chains if names is None else names)}
    if int(arviz.__version__.split(".")[0]) >= 1:
        data = arviz.from_dict({"posterior": posterior})
    else:
        data = arviz.from_dict(posterior=posterior)
    for name in posterior:
        if name in answer and isinstance(belief := answer[name], Belief):
            data["posterior"][name].attrs["states"] = list(belief.scope[0].states)
    return data
