"""Families one by one: a kind of conditional for every arrow, given, mixed or chosen by left-out likelihood."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gramgraph._progress import Progress, reporting
from gramgraph.cells.mixture_weights import mixture_weights
from gramgraph.conditionals import (
    Blend,
    Boosted,
    Conditional,
    ConditionalLinearGaussian,
    GaussianCopula,
    KernelConditional,
    Kind,
    LinearGaussian,
    Predictor,
    Softmax,
    Table,
)
from gramgraph.conditionals.continuous import log_density
from gramgraph.exceptions import ModelError, OptionError, did_you_mean, listing
from gramgraph.learn.family_report import FamilyReport
from gramgraph.models import BayesianNetwork
from gramgraph.typing import Array, FloatArray, RandomState
from gramgraph.variables import Circle, Points, Positive, Real, Sphere, Var

_LEAST = 0.01  # a kind with less weight than this is left out
_FEW = 40  # rows below which kinds are not compared
#: Rows at most → folds. Of few rows each fit leaves out few: kinds that learn more from more rows are underrated else.
_FOLDS = ((1_000, 10), (10_000, 5), (np.inf, 3))


@dataclass(frozen=True, eq=False)
class Sample:
    """The rows of one family that have no gaps: values as conditionals take them, and as a frame."""

    child: Var
    parents: tuple[Var, ...]
    values: dict[Var, Array]
    frame: Any
    random_state: RandomState = 0

    def __len__(self) -> int:
        return len(self.frame)

    def take(self, rows: Any) -> Sample:
        """Some of the rows."""
        values = {var: x[rows] for var, x in self.values.items()}
        return Sample(self.child, self.parents, values, self.frame.iloc[rows], self.random_state)


# ---------------------------------------------------------------------------------------------------- kinds


def _moments_fit(sample: Sample, **options: Any) -> Conditional:
    """Tables, linear Gaussians and softmax curves, by the learner of whole networks."""
    from gramgraph.learn.continuous import fit_family_of
    from gramgraph.learn.parameters import fit

    family = (*sample.parents, sample.child)
    parents: list[list[int]] = [[] for _ in sample.parents] + [list(range(len(sample.parents)))]
    net = BayesianNetwork.from_parts(family, [None] * len(family), parents=parents, check=False)
    if net.is_discrete:
        return fit(net, sample.frame, **options)[0].conditional(sample.child.name)
    return fit_family_of(net, len(family) - 1, sample.frame, **options)


def _table(sample: Sample, **options: Any) -> Conditional:
    if not all(var.is_discrete for var in (*sample.parents, sample.child)):
        raise ModelError(f"a table of {sample.child.name} needs labelled states in its whole family")
    return _moments_fit(sample, **options)


def _linear(sample: Sample, **options: Any) -> Conditional:
    if not _plain_line(sample.child) or any(isinstance(var.domain, (Circle, Sphere)) for var in sample.parents):
        raise ModelError(
            f"a linear Gaussian of {sample.child!r} given {listing(map(repr, sample.parents)) or 'nothing'}"
        )
    return _moments_fit(sample, **options)


def _softmax(sample: Sample, **options: Any) -> Conditional:
    if not sample.child.is_discrete:
        raise ModelError(f"a softmax is one of a discrete variable; {sample.child.name} is {sample.child!r}")
    return _moments_fit(sample, **options)


def _copula(sample: Sample, **options: Any) -> Conditional:
    return GaussianCopula.fit(sample.child, sample.parents, sample.frame, **options)


def _kernel(sample: Sample, **options: Any) -> Conditional:
    options = {"random_state": sample.random_state, **options}
    return KernelConditional.fit(sample.child, sample.parents, sample.frame, **options)


def _predictor(sample: Sample, estimator: Any = None, **options: Any) -> Conditional:
    estimator = _default_estimator(sample.child) if estimator is None else estimator
    return Predictor.fit(sample.child, sample.parents, estimator, sample.frame, **options)


def _default_estimator(child: Var) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    made = HistGradientBoostingClassifier if child.is_discrete else HistGradientBoostingRegressor
    return made(max_iter=100, learning_rate=0.08, min_samples_leaf=10, random_state=0)


def _predictor_folds(sample: Sample, fold: Array) -> tuple[Conditional, FloatArray]:
    return Predictor.fit_folds(sample.child, sample.parents, _default_estimator(sample.child), sample.frame, fold)


def _boosted(sample: Sample, maker: Boosted | None = None, **options: Any) -> Conditional:
    made = Boosted(**options) if maker is None else maker
    return made.fit(sample.child, sample.parents, sample.frame)


#: Word of a kind → how it is fitted. A new kind that can be fitted is one line.
FITTERS: dict[str, Callable[..., Conditional]] = {
    "table": _table,
    "linear_gaussian": _linear,
    "conditional_linear_gaussian": _linear,
    "softmax": _softmax,
    "gaussian_copula": _copula,
    "kernel": _kernel,
    "predictor": _predictor,
    "boosted": _boosted,
}

#: Kinds that learn from all rows and from all but one fold at once, for less than one by one.
FOLDS: dict[str, Callable[[Sample, Array], tuple[Conditional, FloatArray]]] = {"predictor": _predictor_folds}


class Candidate(NamedTuple):
    """A kind that "auto" and "choose" look at, simplest first, and for which families."""

    kind: str
    applies: Callable[[Var, tuple[Var, ...]], bool]


def _plain_line(var: Var) -> bool:
    return isinstance(var.domain, Real) and not isinstance(var.domain, (Circle, Positive, Sphere))


def _numbers(variables: tuple[Var, ...]) -> bool:
    """Whether none of them takes sets or strings."""
    return not any(isinstance(var.domain, Points) for var in variables)


def _some_real(variables: tuple[Var, ...]) -> bool:
    return any(not var.is_discrete for var in variables)


def _scalar_line(var: Var) -> bool:
    return isinstance(var.domain, Real) and var.dimension == 1 and not isinstance(var.domain, Circle)


#: What "auto" mixes and "choose" chooses from, the simplest first. A new kind is one line.
CANDIDATES: tuple[Candidate, ...] = (
    Candidate("table", lambda y, x: y.is_discrete and all(v.is_discrete for v in x)),
    Candidate("softmax", lambda y, x: y.is_discrete and _some_real(x) and _numbers(x)),
    Candidate(
        "linear_gaussian",
        lambda y, x: _plain_line(y) and not any(isinstance(v.domain, (Circle, Points, Sphere)) for v in x),
    ),
    Candidate("gaussian_copula", lambda y, x: _scalar_line(y) and bool(x) and all(_scalar_line(v) for v in x)),
    Candidate(
        "kernel",
        lambda y, x: len(x) <= 4 and (not y.is_discrete or any(not v.is_discrete for v in x)),
    ),
    # Of labels boosted trees say the same, and can be written to files.
    Candidate("predictor", lambda y, x: _numbers(x) and _scalar_line(y) and _plain_line(y) and _some_real(x)),
    Candidate("boosted", lambda y, x: _numbers(x) and y.is_discrete and _some_real(x)),
)


def default_kind(child: Var, parents: tuple[Var, ...]) -> Kind:
    """The kind of a family for which none was named: as plain as its domains allow."""
    odd = (Circle, Points, Positive, Sphere)
    if (
        not _numbers(parents)
        or isinstance(child.domain, odd)
        or (not child.is_discrete and any(isinstance(var.domain, (Circle, Sphere)) for var in parents))
    ):
        return Kind(KernelConditional)
    if not child.is_discrete:
        return Kind(LinearGaussian)
    return Kind(Softmax) if any(not var.is_discrete for var in parents) else Kind(Table)


def fit_family(sample: Sample, kind: Kind) -> Conditional:
    """One conditional of the kind that was asked for."""
    fitter = FITTERS.get(kind.cls.kind)
    if fitter is None:
        known = listing(FITTERS)
        raise ModelError(f"{kind!r} of {sample.child.name} cannot be learned from data; these can: {known}")
    try:
        return fitter(sample, **kind.options)
    except TypeError as error:
        if "unexpected keyword" in str(error):
            raise OptionError(f"{kind!r} of {sample.child.name}: {error}") from None
        raise


# ---------------------------------------------------------------------------------------------------- networks


def fit_families(
    net: BayesianNetwork,
    frame: Any,
    *,
    conditional: Any = None,
    kinds: Mapping[str, Kind] | None = None,
    random_state: RandomState = None,
    progress: Progress = False,
) -> tuple[BayesianNetwork, FamilyReport]:
    """Every conditional from the rows that know its family; see `BayesianNetwork.fit`."""
    mode, named = _read_choice(net, conditional, dict(kinds or {}))
    seed = 0 if random_state is None else random_state
    made: list[Conditional] = []
    weights: dict[str, Any] = {}
    left: dict[str, Any] = {}
    rows: dict[str, int] = {}
    notes: dict[str, str] = {}
    with reporting(progress, len(net.vars)) as report:
        for v, var in enumerate(net.vars):
            parents = tuple(net.vars[p] for p in net.parent_positions[v])
            sample = sample_of(net, var, parents, frame, seed)
            rows[var.name] = len(sample)
            kind = named.get(var.name) or (None if mode else _kept_kind(net.conditionals[v], var, parents))
            if kind is not None:
                found, share = fit_family(sample, kind), {kind.cls.kind: 1.0}
                scores: dict[str, float] = {}
            else:
                assert mode is not None
                found, share, scores, note = choose_family(sample, mode)
                if note:
                    notes[var.name] = note
            made.append(found)
            weights[var.name], left[var.name] = share, scores
            if report is not None:
                report(v + 1)
    out = BayesianNetwork.from_parts(
        net.vars, made, parents=net.parent_positions, name=net.name, metadata=dict(net.metadata), check=False
    )
    return out, FamilyReport(weights, left, rows, notes)


def _read_choice(net: BayesianNetwork, given: Any, kinds: dict[str, Kind]) -> tuple[str | None, dict[str, Kind]]:
    """("auto", "choose" or None for what is not named, kinds by variable)."""
    if isinstance(given, Mapping):
        mode = None
        for name, kind in given.items():
            if name is ...:
                mode = kind
                continue
            net.index(name)
            if isinstance(kind, Boosted):
                kind = Kind(Boosted, {"maker": kind})
            if not isinstance(kind, Kind):
                raise OptionError(f"conditional[{name!r}] is a kind such as gg.KernelConditional(), not {kind!r:.60}")
            kinds[name] = kind
        given = mode
    given = Kind(Boosted, {"maker": given}) if isinstance(given, Boosted) else given
    if isinstance(given, Kind):
        return None, {**dict.fromkeys(net.variables, given), **kinds}
    words = ("auto", "choose")
    if given is not None and given not in words:
        raise OptionError(
            f"conditional is 'auto', 'choose', a kind such as gg.KernelConditional(), or a dict of kinds by variable; "
            f"not {given!r:.60}.{did_you_mean(given, words)}"
        )
    return given, kinds


def _kept_kind(own: Conditional | None, child: Var, parents: tuple[Var, ...]) -> Kind:
    """The kind that a network already has for a family, else the default."""
    if isinstance(own, Predictor):
        return Kind(Predictor, {"estimator": own.estimator})
    if (
        own is not None
        and own.kind in FITTERS
        and not isinstance(own, (Table, LinearGaussian, ConditionalLinearGaussian))
    ):
        return Kind(type(own))
    return default_kind(child, parents)


def sample_of(net: BayesianNetwork, child: Var, parents: tuple[Var, ...], frame: Any, seed: Any) -> Sample:
    """The rows that know a whole family."""
    from gramgraph.learn.real_rows import read_real
    from gramgraph.models.layout import layout_of

    family = (*parents, child)
    part = BayesianNetwork.from_parts(family, [None] * len(family), parents=[[] for _ in family], check=False)
    columns = [c for var in family for c in _columns(var, frame)]
    question = read_real(part, frame[columns])
    layout = layout_of(part)
    whole = np.ones(len(frame), dtype=bool)
    values: dict[Var, Array] = {}
    labelled = {v: j for j, v in enumerate(question.observed)}
    for v, var in enumerate(family):
        if isinstance(var.domain, Points):
            values[var] = np.asarray(question.points[v], dtype=object)
            whole &= np.array([x is not None for x in question.points[v]], dtype=bool)
            continue
        x = question.codes[:, labelled[v]] if var.is_discrete else question.X[:, layout.components(v)]
        values[var] = x
        whole &= x >= 0 if var.is_discrete else ~np.isnan(x).any(axis=1)
    if whole.sum() < 2:
        known = "one row knows" if whole.any() else "no row knows"
        raise ModelError(f"{known} the whole family of {child.name}; at least 2 are needed")
    rows = np.flatnonzero(whole)
    return Sample(child, parents, {var: x[rows] for var, x in values.items()}, frame[columns].iloc[rows], seed)


def _columns(var: Var, frame: Any) -> list[str]:
    if var.name in frame:
        return [var.name]
    names = [c for c in frame.columns if str(c).rpartition("[")[0] == var.name]
    if not names:
        raise ModelError(f"there is no column {var.name!r}; families are fitted from observed columns only")
    return names


# ---------------------------------------------------------------------------------------------------- choosing


def choose_family(sample: Sample, mode: str) -> tuple[Conditional, dict[str, float], dict[str, float], str]:
    """(conditional, weights by kind, left-out log density per row by kind, a note): kinds mixed by the likelihood of
    rows that were left out, or the simplest within one standard error of the best."""
    kinds = [c.kind for c in CANDIDATES if c.applies(sample.child, sample.parents)]
    if not kinds:
        kinds = ["kernel"]
    smooth: dict[str, Any] = {"table": {"prior": "bdeu"}, "predictor": {"cv": 3}}
    if len(kinds) == 1 or len(sample) < _FEW:
        kind = kinds[0]
        note = "" if len(kinds) == 1 else f"too few rows ({len(sample)}) to compare kinds"
        return FITTERS[kind](sample, **smooth.get(kind, {})), {kind: 1.0}, {}, note
    L, failed, known = _left_out(sample, kinds, smooth)
    kinds = [kind for kind in kinds if kind not in failed]
    means = {kind: float(row.mean()) for kind, row in zip(kinds, L, strict=True)}
    if mode == "choose":
        w = np.eye(len(kinds))[_simplest(L)]
    else:
        w = mixed_weights(L)
        means["mixture"] = float(log_mix(L, w).mean())
    made: list[tuple[str, float, Conditional]] = []
    for kind, weight in zip(kinds, w, strict=True):
        if weight > 0.0:
            found = known[kind] if kind in known else FITTERS[kind](sample, **smooth.get(kind, {}))
            made.append((kind, float(weight), found))
    note = f"could not be fitted: {', '.join(failed)}" if failed else ""
    share = {kind: weight for kind, weight, _ in made}
    if len(made) == 1:
        return made[0][2], share, means, note
    return Blend(sample.child, sample.parents, [c for _, _, c in made], list(share.values())), share, means, note


def _left_out(
    sample: Sample, kinds: list[str], options: Mapping[str, Any]
) -> tuple[FloatArray, list[str], dict[str, Conditional]]:
    """log density of every row by a fit to the other folds, (kinds, rows); kinds that could not be fitted; what was
    fitted to all rows on the way."""
    n = len(sample)
    folds = next(count for most, count in _FOLDS if n <= most)
    which = np.random.default_rng(0).permutation(n) % folds
    L = np.full((len(kinds), n), -np.inf)
    failed: list[str] = []
    known: dict[str, Conditional] = {}
    for i, kind in enumerate(kinds):
        try:
            if kind in FOLDS:
                known[kind], L[i] = FOLDS[kind](sample, which)
                continue
            for fold in range(folds):
                c = FITTERS[kind](sample.take(np.flatnonzero(which != fold)), **options.get(kind, {}))
                rows = np.flatnonzero(which == fold)
                L[i, rows] = log_density(c, {var: x[rows] for var, x in sample.values.items()})
        except (ModelError, ValueError, np.linalg.LinAlgError):
            failed.append(kind)
    keep = [i for i, kind in enumerate(kinds) if kind not in failed]
    if not keep:
        raise ModelError(f"no kind of conditional could be fitted for {sample.child.name}: tried {listing(kinds)}")
    return np.maximum(np.nan_to_num(L[keep], nan=-700.0), -700.0), failed, known


def mixed_weights(L: FloatArray) -> FloatArray:
    """Weights that maximize the left-out likelihood of the mixture."""
    if len(L) == 1:
        return np.ones(1)
    w = mixture_weights(np.exp(np.maximum(L - L.max(axis=0), -60.0)))
    w[w < _LEAST] = 0.0
    return np.asarray(w / w.sum())


def log_mix(L: FloatArray, w: FloatArray) -> FloatArray:
    """log Σ wᵢ exp Lᵢ of every row."""
    top = L.max(axis=0)
    return np.asarray(top + np.log(w @ np.exp(np.maximum(L - top, -700.0))))


def _simplest(L: FloatArray) -> int:
    """The first row whose mean is within one standard error of the best one's."""
    best = int(L.mean(axis=1).argmax())
    for i in range(len(L)):
        gap = L[best] - L[i]
        if gap.mean() <= gap.std() / np.sqrt(len(gap)):
            return i
    return best
