"""The door of `BayesianNetwork.fit`: columns against variables, then tables, regressions or EM."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gramgraph._progress import Progress
from gramgraph.data.frames import read_frame
from gramgraph.data.packed import RealColumnError
from gramgraph.data.stream import is_stream, read_again
from gramgraph.learn.em import EMReport
from gramgraph.learn.matching import check_columns
from gramgraph.learn.parameters import fit
from gramgraph.learn.real_rows import with_real_columns
from gramgraph.models import BayesianNetwork

__all__ = ["fit_network"]


def fit_network(
    net: BayesianNetwork,
    data: Any,
    *,
    hidden: Iterable[str],
    prior: Any,
    weights: Any,
    client: Any,
    progress: Progress,
    **options: Any,
) -> tuple[BayesianNetwork, EMReport | None]:
    """The fitted network, and the report of EM, if that was needed; see `BayesianNetwork.fit`."""
    data = data if is_stream(data) else read_frame(data)
    check_columns(net, data, hidden=hidden, weights=weights, stacklevel=4)
    start = with_real_columns(net, data)
    if start.is_discrete:
        try:
            return fit(start, data, prior=prior, weights=weights, client=client, progress=progress, **options)
        except RealColumnError:
            start = with_real_columns(net, data, look=True) if not is_stream(data) or read_again(data) else net
            if start.is_discrete:
                raise
    from gramgraph.learn.continuous import fit_mixed
    from gramgraph.learn.gaussian_stream import fit_gaussian_stream

    found = fit_gaussian_stream(start, data, prior=prior, weights=weights, client=client, progress=progress)
    if found is not None:
        return found, None
    return fit_mixed(start, data, prior=prior, weights=weights, progress=progress, **options)
