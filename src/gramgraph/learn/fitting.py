"""The door of `BayesianNetwork.fit`: columns against variables, then tables, regressions or EM."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gramgraph._progress import Progress
from gramgraph._validation import check_jobs
from gramgraph.data.frames import read_frame
from gramgraph.data.packed import RealColumnError
from gramgraph.data.stream import is_stream, read_again
from gramgraph.exceptions import OptionError
from gramgraph.learn.matching import check_columns
from gramgraph.learn.parameters import fit
from gramgraph.learn.real_rows import as_frame, with_real_columns
from gramgraph.models import BayesianNetwork
from gramgraph.variables import Circle, Points, Positive, Sphere


def _has_own_kinds(net: BayesianNetwork) -> bool:
    """Whether some family is none of tables, linear Gaussians and their kin: an angle, a kernel, a blend."""
    if any(isinstance(var.domain, (Circle, Points, Positive, Sphere)) for var in net.vars):
        return True
    return any(c is not None and c.kind in ("kernel", "blend") for c in net.conditionals)


def _by_families(
    net: BayesianNetwork,
    start: BayesianNetwork,
    data: Any,
    conditional: Any,
    prior: Any,
    weights: Any,
    options: Any,
    progress: Progress,
) -> tuple[BayesianNetwork, Any]:
    from gramgraph.learn.families import fit_families

    if prior is not None or weights is not None:
        raise OptionError(
            "kinds of conditionals are fitted without prior= and weights=. Give them as options of the kind instead, "
            "as in gg.Table(prior='bdeu')"
        )
    return fit_families(
        start,
        as_frame(start, data),
        conditional=conditional,
        kinds=net.kinds,
        random_state=options.get("random_state"),
        progress=progress,
    )


def fit_network(
    net: BayesianNetwork,
    data: Any,
    *,
    hidden: Iterable[str],
    prior: Any,
    weights: Any,
    client: Any,
    progress: Progress,
    conditional: Any = None,
    method: str = "em",
    n_jobs: int = 1,
    **options: Any,
) -> tuple[BayesianNetwork, Any]:
    """The fitted network, and the report of EM or of how kinds were chosen; see `BayesianNetwork.fit`."""
    n_jobs = check_jobs(n_jobs)
    data = data if is_stream(data) else read_frame(data)
    check_columns(net, data, hidden=hidden, weights=weights, stacklevel=4)
    start = with_real_columns(net, data, look=conditional is not None)
    if method not in ("em", "mcem"):
        raise OptionError(f"method is 'em' or 'mcem' (Monte Carlo EM), not {method!r}")
    if method == "mcem" and (conditional is not None or net.kinds or not start.is_discrete):
        raise OptionError("Monte Carlo EM (method='mcem') learns tables of discrete variables alone")
    if conditional is not None or net.kinds or _has_own_kinds(start):
        return _by_families(net, start, data, conditional, prior, weights, options, progress)
    if start.is_discrete:
        try:
            return fit(
                start, data, prior=prior, weights=weights, client=client, progress=progress, method=method,
                n_jobs=n_jobs, **options,
            )  # fmt: skip
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
