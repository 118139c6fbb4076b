"""Every model of sequences that the package defines holds to one contract: classes are found, not listed.

A hidden Markov model of a new kind of emission is made with two states and given the first data below that it takes.
One that needs other arguments has an example here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, clone

import gramgraph as gg
from gramgraph import sequences as S
from gramgraph.exceptions import GramGraphError
from gramgraph.sequences.hmm import HiddenMarkovModel
from gramgraph.testing import find_classes

RNG = np.random.default_rng(0)
NUMBERS = np.repeat([0.1, 4.2, 0.3], 8)[:, None] + RNG.normal(size=(24, 1))
COUNTS = np.round(np.abs(NUMBERS))
#: Data that an emission may take, tried in this order.
DATA = {"numbers": NUMBERS, "counts": COUNTS, "labels": np.where(NUMBERS[:, 0] > 2, "high", "low")}
HMM = {"random_state": 0, "max_iter": 4}
BASES = {"HiddenMarkovModel", "WrappedModel", "GaussianFilter"}


def _inputs() -> tuple[Any, tuple[Any, ...]]:
    return S.InputHMM(S.CategoricalHMM(2, **HMM), n_inputs=2), (DATA["labels"], np.arange(24) % 2)


def _graphs() -> tuple[Any, tuple[Any, ...]]:
    y = [np.repeat([0, 1], 3), np.repeat([1, 0], 3)]
    X = [(np.c_[labels + 0.1, np.ones(6)], [(i, i + 1) for i in range(5)]) for labels in y]
    return S.GraphCRF(max_iterations=3), (X, y)


def _pictures() -> tuple[Any, tuple[Any, ...]]:
    y = [np.repeat([[0, 1]], 4, axis=0), np.repeat([[1, 0]], 4, axis=0)]
    return S.GridCRF(max_iterations=3), ([np.dstack([labels + 0.1, np.ones(labels.shape)]) for labels in y], y)


def _drift(kind: type) -> tuple[Any, tuple[Any, ...]]:
    return kind(lambda x: 0.9 * x, lambda x: x, [[0.1]], [[0.2]], [0.0], [[1.0]]), ()


#: An unfitted model and what its `fit` is given; nothing for models that are not fitted.
Example = Callable[[], tuple[Any, tuple[Any, ...]]]
EXAMPLES: dict[type, Example] = {
    S.CategoricalHMM: lambda: (S.CategoricalHMM(2, **HMM), (DATA["labels"],)),
    S.CubatureKalmanFilter: lambda: _drift(S.CubatureKalmanFilter),
    S.DurationHMM: lambda: (S.DurationHMM(S.GaussianHMM(2, **HMM), max_duration=4), (NUMBERS,)),
    S.ExtendedKalmanFilter: lambda: _drift(S.ExtendedKalmanFilter),
    S.GraphCRF: _graphs,
    S.GridCRF: _pictures,
    S.InputHMM: _inputs,
    S.KalmanFilter: lambda: (S.KalmanFilter(1.0, 0.1, 1.0, 1.0, 0.0, 1.0, max_iter=2), (NUMBERS,)),
    S.PoissonHMM: lambda: (S.PoissonHMM(2, **HMM), (COUNTS,)),
    S.StructuralModel: lambda: (S.StructuralModel((S.Level(),), max_iter=5), (NUMBERS[:, 0],)),
    S.SwitchingKalmanFilter: lambda: (S.SwitchingKalmanFilter([[0.9, 0.1], [0.1, 0.9]], Q=[0.01, 4.0], R=0.1), ()),
    S.UnscentedKalmanFilter: lambda: _drift(S.UnscentedKalmanFilter),
}
#: Models made of functions, which have no place in files.
WITHOUT_FILES = (S.CubatureKalmanFilter, S.ExtendedKalmanFilter, S.UnscentedKalmanFilter)


def found() -> list[type]:
    return [kind for kind in find_classes(BaseEstimator, "sequences") if kind.__name__ not in BASES]


def example(kind: type) -> tuple[Any, tuple[Any, ...]]:
    """An unfitted model of this kind, and data for its `fit`."""
    if kind in EXAMPLES:
        return EXAMPLES[kind]()
    try:
        model = kind(2, **HMM) if issubclass(kind, HiddenMarkovModel) else kind()
    except TypeError as error:
        raise AssertionError(f"{kind.__name__} needs arguments: write an example of it in {__file__}.") from error
    for data in DATA.values():
        try:
            clone(model).fit(data)
        except (GramGraphError, ValueError):
            continue
        return model, (data,)
    raise AssertionError(f"{kind.__name__} takes none of {list(DATA)}: write an example of it in {__file__}.")


def check(kind: type, folder: Path) -> None:
    """The contract for a class of models of sequences, whoever wrote it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, data = example(kind)
        check_parameters(model)
        if data:
            model = check_fit(model, data)
        if isinstance(model, HiddenMarkovModel):
            check_emission(model, data[0])
        if kind not in WITHOUT_FILES:
            check_files(model, folder)


def check_parameters(model: Any) -> None:
    given = model.get_params(deep=False)
    again = clone(model)
    assert given.keys() == again.get_params(deep=False).keys()
    assert repr(again.set_params(**given)) == repr(model), f"{type(model).__name__}: parameters do not come back"
    assert not [name for name in vars(model) if name.endswith("_")], "a constructor learns nothing"


def check_fit(model: Any, data: tuple[Any, ...]) -> Any:
    before = repr(data)
    again = clone(model)
    assert model.fit(*data) is model, f"{type(model).__name__}.fit returns the model"
    assert repr(data) == before, f"{type(model).__name__}.fit changed its data"
    assert learned(again.fit(*data)) == learned(model), f"{type(model).__name__}: one seed, one answer"
    return model


def check_emission(model: HiddenMarkovModel, X: Any) -> None:
    """log p(x₁ … x₄) is the sum over all paths of states, and learning never lowered the objective."""
    few = X[:4]
    logs = model._emission().logs(model._read(few, None, reset=False)[0])
    K = len(model.startprob_)
    with np.errstate(divide="ignore"):
        start, step = np.log(model.startprob_), np.log(model.transmat_)
    paths = [
        start[z[0]] + sum(step[a, b] for a, b in pairwise(z)) + sum(logs[t, k] for t, k in enumerate(z))
        for z in product(range(K), repeat=4)
    ]
    assert model.score(few) == pytest.approx(logsumexp(paths), rel=1e-9), f"{type(model).__name__}.score"
    np.testing.assert_allclose(model.predict_proba(few).sum(axis=1), 1.0)
    history = np.asarray(model.history_)
    assert (np.diff(history) >= -1e-7 * np.abs(history[:-1])).all(), f"{type(model).__name__}: the objective fell"
    drawn, states = model.sample(5, random_state=1)
    assert len(drawn) == len(states) == 5


def check_files(model: Any, folder: Path) -> None:
    name = type(model).__name__
    try:
        gg.write(model, folder / "model.gg")
    except GramGraphError as error:
        raise AssertionError(f"{name} has no form in files: {error}") from error
    again = gg.read(folder / "model.gg")
    assert type(again) is type(model) and learned(again) == learned(model), f"{name} comes back from a file changed"


def learned(model: Any) -> str:
    """All that a fit left behind, every digit of it."""
    with np.printoptions(threshold=10**6, floatmode="unique"):
        parts = {k: v for k, v in sorted(vars(model).items()) if k.endswith("_") and not k.startswith("_")}
        return repr({k: learned(v) if isinstance(v, BaseEstimator) else v for k, v in parts.items()})


@pytest.mark.parametrize("kind", found(), ids=lambda kind: kind.__name__)
def test_contract(kind: type, tmp_path: Path) -> None:
    check(kind, tmp_path)


def test_every_model_is_public() -> None:
    hidden = {kind.__name__ for kind in found()} - set(S.__all__)
    assert not hidden, f"add a line in sequences/__init__.py for {hidden}"


NEW = """
from gramgraph.sequences.gaussian import GaussianHMM

class {name}HMM(GaussianHMM):
    '''An emission of its own.'''

    def score(self, X, lengths=None):
        return super().score(X, lengths) {change}
"""


@pytest.mark.parametrize("name, change, wrong", [("Unsaved", "", "no form in files"), ("Wrong", "* 1.01", "score")])
def test_the_contract_finds_a_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, change: str, wrong: str
) -> None:
    before = set(found())
    (tmp_path / f"{name.lower()}.py").write_text(NEW.format(name=name, change=change))
    monkeypatch.setattr(S, "__path__", [*S.__path__, str(tmp_path)])
    [kind] = set(found()) - before
    assert kind.__name__ == f"{name}HMM"
    with pytest.raises(AssertionError, match=wrong):
        check(kind, tmp_path)
    with pytest.raises(AssertionError, match=name):
        test_every_model_is_public()
