"""Streams of every kind of model: the batch's answers, constant memory, and the same bits after saving."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import gramgraph.distributions as dist
from gramgraph._numerics import compiling
from gramgraph.exceptions import ImpossibleEvidenceError, ModelError
from gramgraph.sequences import (
    BayesFilter,
    CategoricalHMM,
    CubatureKalmanFilter,
    DistributionHMM,
    DurationHMM,
    DynamicBayesianNetwork,
    ExtendedKalmanFilter,
    GaussianHMM,
    GaussianMixtureHMM,
    InputHMM,
    KalmanFilter,
    MultiCategoricalHMM,
    ParticleFilter,
    PoissonHMM,
    SwitchingKalmanFilter,
    UnscentedKalmanFilter,
)

A = np.array([[0.9, 0.1], [0.2, 0.8]])
PI = [0.3, 0.7]
COV = np.array([[[2.0, 0.5], [0.5, 1.0]], [[1.0, -0.3], [-0.3, 3.0]]])


@dataclass
class Kind:
    """How a stream is made, fed and asked."""

    open: Callable[..., Any]  # open(state=None)
    feed: Callable[[Any, int], Any]  # feed(stream, t): the t-th observation
    many: Callable[[Any, int, int], Any] | None = None  # many(stream, a, b): observations a … b − 1 at once
    tell: Callable[[Any], Any] = lambda found: found  # what `feed` returns, as numbers


def hmm(model: Any, z: Callable[[int], Any]) -> Kind:
    return Kind(
        lambda state=None: model.filter(state=state),
        lambda stream, t: stream.update(z(t)),
        lambda stream, a, b: stream.update_many([z(t) for t in range(a, b)]),
    )


def series(model: Any, y: Callable[[int], Any], *, blocks: bool = False) -> Kind:
    many = (lambda stream, a, b: stream.update_many([y(t) for t in range(a, b)])) if blocks else None
    return Kind(lambda state=None: model.stream(state=state), lambda stream, t: stream.update(y(t)), many)


def wave(t: int) -> float:
    return float(np.nan if t % 17 == 5 else np.sin(0.3 * t) + 0.1 * (t % 7))


def pair(t: int) -> list[float]:
    return [wave(t), wave(t + 4) * 2.0]


def kinds() -> dict[str, Kind]:
    symbols = CategoricalHMM.from_parameters(PI, A, [[0.9, 0.1], [0.3, 0.7]])
    means = [[0.0, 0.0], [1.0, 2.0]]
    linear = {"A": [[0.9, 0.2], [0.0, 0.8]], "Q": np.eye(2) * 0.1, "H": [[1.0, 0.5], [0.0, 1.0]], "R": np.eye(2) * 0.3}
    linear |= {"m0": np.zeros(2), "P0": np.eye(2)}
    bend = (np.sin, lambda x: x**2 / 2)
    noise = {"Q": 0.01, "R": 0.4, "m0": 1.0, "P0": 0.1}
    inputs = InputHMM.from_parameters(symbols, [A, [[0.5, 0.5], [0.4, 0.6]]])
    net = DynamicBayesianNetwork(
        "rain' -> rain{no|yes} -> umbrella{no|yes}; wind' -> wind{no|yes} -> umbrella",
        cpds={"rain": A, "wind": A[::-1], "umbrella": [[[0.8, 0.2], [0.7, 0.3]], [[0.4, 0.6], [0.1, 0.9]]]},
    )
    modes = {"A": 1.0, "Q": [0.01, 4.0], "R": 0.1, "m0": 0.0, "P0": 1.0}

    def row(t: int) -> dict[str, str]:
        return {} if t % 9 == 4 else {"umbrella": "yes" if t % 3 else "no"}

    def act(stream: Any, t: int) -> Any:
        return stream.sense([0.6, 0.4 + 0.1 * (t % 3)]) if t % 2 else stream.act(A)

    return {
        "symbols": hmm(symbols, lambda t: -1 if t % 11 == 3 else (t * t) % 3 % 2),
        "texts": hmm(
            CategoricalHMM.from_parameters(PI, A, [[0.9, 0.1], [0.3, 0.7]], symbols=["a", "b"]), lambda t: "ab"[t % 2]
        ),
        "several": hmm(
            MultiCategoricalHMM.from_parameters(PI, A, [[[0.9, 0.1], [0.3, 0.7]]] * 2),
            lambda t: [t % 2, -1 if t % 5 == 1 else 0],
        ),
        "full": hmm(GaussianHMM.from_parameters(PI, A, means, COV), pair),
        "tied": hmm(GaussianHMM.from_parameters(PI, A, means, COV[0], covariance_type="tied"), pair),
        "diag": hmm(GaussianHMM.from_parameters(PI, A, means, np.ones((2, 2)), covariance_type="diag"), pair),
        "mixture": hmm(
            GaussianMixtureHMM.from_parameters(
                PI, A, [[[0.0], [1.0]], [[3.0], [5.0]]], np.ones((2, 2)), covariance_type="spherical"
            ),
            lambda t: [wave(t)],
        ),
        "counts": hmm(
            PoissonHMM.from_parameters(PI, A, [[1.0, 2.0], [6.0, 0.5]]),
            lambda t: [float(t % 4), np.nan if t % 5 else 1.0],
        ),
        "angles": hmm(
            DistributionHMM.from_parameters(PI, A, [dist.VonMises(0.0, 3.0), dist.VonMises(2.0, 3.0)]),
            lambda t: [wave(t)],
        ),
        "durations": hmm(
            DurationHMM.from_parameters(symbols, [[0.2, 0.5, 0.3], [0.6, 0.4, 0.0]], transmat=[[0, 1], [1, 0]]),
            lambda t: (t // 2) % 2,
        ),
        "inputs": Kind(
            lambda state=None: inputs.filter(state=state),
            lambda stream, t: stream.update(t % 2, t % 3 % 2),
            lambda stream, a, b: stream.update_many([t % 2 for t in range(a, b)], [t % 3 % 2 for t in range(a, b)]),
        ),
        "sense and act": Kind(lambda state=None: BayesFilter.from_state(state) if state else BayesFilter(PI), act),
        "covariance": series(KalmanFilter(**linear), pair, blocks=True),
        "square root": series(KalmanFilter(**linear, form="square_root"), pair, blocks=True),
        "information": series(KalmanFilter(**linear, form="information"), pair, blocks=True),
        "controls": Kind(
            lambda state=None: KalmanFilter(**linear, B=[[1.0], [0.5]], D=[[0.2], [0.0]]).stream(state=state),
            lambda stream, t: stream.update(pair(t), control=[0.1 * (t % 5)]),
            lambda stream, a, b: stream.update_many(
                [pair(t) for t in range(a, b)], controls=[[0.1 * (t % 5)] for t in range(a, b)]
            ),
        ),
        "extended": series(ExtendedKalmanFilter(*bend, **noise), wave),
        "unscented": series(UnscentedKalmanFilter(*bend, **noise), wave),
        "cubature": series(CubatureKalmanFilter(*bend, **noise), wave),
        "particles": series(
            ParticleFilter.gaussian(*bend, **noise, n_particles=50, vectorized=True, random_state=3), wave
        ),
        "auxiliary": series(
            ParticleFilter.gaussian(*bend, **noise, n_particles=50, vectorized=True, auxiliary=True, random_state=3),
            wave,
        ),
        "interacting": series(SwitchingKalmanFilter(A, **modes), wave),
        "drawn modes": series(
            SwitchingKalmanFilter(A, **modes, method="particles", n_particles=30, random_state=1), wave
        ),
        "network": Kind(
            lambda state=None: net.stream(state=state),
            lambda stream, t: stream.update(row(t)),
            lambda stream, a, b: stream.update_many([row(t) for t in range(a, b)]),
            lambda found: np.concatenate([np.atleast_1d(found[name].prob("yes")) for name in ("rain", "wind")]),
        ),
    }


KINDS = kinds()
MANY = [name for name, kind in KINDS.items() if kind.many is not None]


@pytest.mark.parametrize("name", list(KINDS))
def test_a_saved_stream_goes_on_bit_by_bit(name: str) -> None:
    """At every place: before the first observation, after it, in the middle."""
    kind = KINDS[name]
    for stop in (0, 1, 23):
        whole = kind.open()
        for t in range(stop):
            kind.feed(whole, t)
        again = kind.open(state=json.loads(json.dumps(whole.state)))
        for t in range(stop, 50):
            one, two = kind.tell(kind.feed(whole, t)), kind.tell(kind.feed(again, t))
            assert np.array_equal(one, two)
        assert json.dumps(whole.state) == json.dumps(again.state)
        assert whole.log_likelihood == again.log_likelihood


@pytest.mark.parametrize("name", MANY)
def test_blocks_are_observations_one_by_one(name: str) -> None:
    kind = KINDS[name]
    assert kind.many is not None
    one, blocks = kind.open(), kind.open()
    singles = np.array([kind.tell(kind.feed(one, t)) for t in range(40)])
    cuts = (0, 1, 2, 19, 40)
    parts = [kind.tell(kind.many(blocks, a, b)) for a, b in pairwise(cuts)]
    if name == "network":  # variables stand after each other
        parts = [part.reshape(2, -1).T for part in parts]
    np.testing.assert_allclose(np.concatenate(parts), singles, rtol=0, atol=1e-12)
    assert blocks.steps == one.steps == 40
    assert blocks.log_likelihood == pytest.approx(one.log_likelihood, rel=1e-12)


def test_streams_give_the_answers_of_the_batch() -> None:
    symbols = CategoricalHMM.from_parameters(PI, A, [[0.9, 0.1], [0.3, 0.7]])
    z, u = [0, 1, 1, -1, 0, 0, 1], [0, 1, 0, 1, 1, 0, 0]
    inputs = InputHMM.from_parameters(symbols, [A, [[0.5, 0.5], [0.4, 0.6]]])
    stream = inputs.filter()
    np.testing.assert_allclose(stream.update_many(z, u), inputs.filter_proba(z, u), atol=1e-13)
    assert stream.log_likelihood == pytest.approx(inputs.score(z, u), rel=1e-12)
    stays = DurationHMM.from_parameters(symbols, [[0.2, 0.5, 0.3], [0.6, 0.4, 0.0]], transmat=[[0, 1], [1, 0]])
    watched = stays.filter()
    for t, symbol in enumerate(z):
        belief = watched.update(symbol)
        np.testing.assert_allclose(belief, stays.predict_proba(z[: t + 1])[-1], atol=1e-12)
        assert watched.log_likelihood == pytest.approx(stays.score(z[: t + 1]), rel=1e-12)
        np.testing.assert_allclose(watched.remaining.sum(axis=1), belief, atol=1e-14)
    np.testing.assert_allclose(watched.predict(2), stays.predict_proba([*z, -1, -1])[-1], atol=1e-12)
    np.testing.assert_allclose(stream.predict([1, 0]), inputs.filter_proba([*z, -1, -1], [*u, 1, 0])[-1], atol=1e-13)
    y = np.array([0.0, 0.1, np.nan, 3.0, 2.0])
    for method in ("imm", "particles"):
        model = SwitchingKalmanFilter(A, Q=[0.01, 4.0], R=0.1, method=method, n_particles=40, random_state=0)
        want, stream = model.filter(y), model.stream()
        for t in range(len(y)):
            assert np.array_equal(stream.update(y[t]), want.modes[t])
            assert np.array_equal(stream.mean, want.means[t]) and np.array_equal(stream.covariance, want.covariances[t])
    for filter_ in (ExtendedKalmanFilter, UnscentedKalmanFilter):
        model = filter_(lambda x, u: np.sin(x) + u, lambda x: x**2, Q=0.1, R=0.2, m0=1.0, P0=0.1)
        want, stream = model.filter(y, controls=np.arange(5.0)), model.stream()
        for t in range(len(y)):
            assert np.array_equal(stream.update(y[t], control=None if t == 0 else t - 1.0), want.means[t])
        assert stream.log_likelihood == pytest.approx(want.log_likelihood, rel=1e-12)


def test_an_impossible_observation_changes_nothing() -> None:
    model = CategoricalHMM.from_parameters([1.0, 0.0], np.eye(2), np.eye(2))
    stream = model.filter()
    stream.update_many([0, 0])
    before = stream.state
    with pytest.raises(ImpossibleEvidenceError, match="observation 4 has probability zero"):
        stream.update_many([0, 0, 1, 0])
    assert stream.state == before
    singular = KalmanFilter(1.0, 0.0, 1.0, 0.0, 0.0, 1.0).stream()
    singular.update(1.0)
    before = singular.state
    with pytest.raises(ModelError, match="observation 1 is not positive definite"):
        singular.update(2.0)
    assert singular.state == before
    for bad in (np.inf, [1.0, 2.0], "x"):
        with pytest.raises(ModelError, match="an observation has 1 finite numbers"):
            singular.update(bad)
    far = GaussianHMM.from_parameters(PI, A, [[0.0], [1.0]], [[1.0], [1.0]], covariance_type="diag").filter()
    assert np.isfinite(far.update([1e100])).all()  # far is not impossible
    with pytest.raises(ModelError, match="finite"):
        far.update([np.inf])


@pytest.mark.parametrize("name", list(KINDS))
def test_states_of_other_streams_are_refused(name: str) -> None:
    for bad in ({}, {"belief": [0.5, 0.5]}, [1.0], {**KINDS[name].open().state, "log_likelihood": "many"}):
        if bad == {} and name == "sense and act":
            continue
        with pytest.raises(ModelError, match="state must"):
            KINDS[name].open(state=bad)


@pytest.mark.parametrize("name", list(KINDS))
def test_a_broken_state_is_refused(name: str) -> None:
    kind = KINDS[name]
    stream = kind.open()
    for t in range(3):
        kind.feed(stream, t)
    good = stream.state
    for key in good:
        for value in ("x", {}, float("nan"), [float("nan")] * 2, -3 if key == "steps" else float("inf")):
            if key == "generator" and value == float("inf"):
                continue
            with pytest.raises(ModelError, match="state|control"):
                kind.open(state={**good, key: value})
        if key not in ("control", "past", "particles"):
            with pytest.raises(ModelError, match="state"):
                kind.open(state={**good, key: None})


@pytest.mark.parametrize("name", list(KINDS))
def test_what_is_no_observation_changes_nothing_and_streams_share_nothing(name: str) -> None:
    kind = KINDS[name]
    stream, other = kind.open(), kind.open()
    fresh = json.dumps(other.state)
    for t in range(3):
        found = kind.feed(stream, t)
    before = json.dumps(stream.state)
    take = stream.sense if name == "sense and act" else stream.update
    if name == "inputs":
        take = partial(stream.update, u=0)
    for bad in ("no symbol", object(), np.zeros((2, 2, 2)), [1.0] * 9):
        with pytest.raises((ModelError, ValueError)):
            take(bad)
        assert json.dumps(stream.state) == before
    if isinstance(found, np.ndarray):
        found[...] = 7.0
    for part in ("belief", "mean", "covariance", "modes", "particles", "weights"):
        values = getattr(stream, part, None)
        if values is not None:
            values[...] = 7.0
    assert json.dumps(stream.state) == before and json.dumps(other.state) == fresh


def test_a_particle_stream_survives_what_its_functions_do() -> None:
    def move(x: Any, rng: np.random.Generator) -> Any:
        x += rng.standard_normal(x.shape)  # in place
        return x

    def weigh(z: Any, x: Any) -> Any:
        if z == "fail":
            raise ZeroDivisionError
        return np.where(np.abs(x[:, 0] - z) < 3.0, 0.0, -np.inf)

    model = ParticleFilter(lambda n, rng: rng.standard_normal((n, 1)), move, weigh, n_particles=50, random_state=0)
    stream, calm = model.stream(), model.stream()
    for z in (0.0, 0.5):
        stream.update(z), calm.update(z)
    before = stream.state
    with pytest.raises(ZeroDivisionError):
        stream.update("fail")
    with pytest.raises(ImpossibleEvidenceError, match="stay as"):
        stream.update(1e6)
    assert stream.state == before
    assert (stream.update(1.0) == calm.update(1.0)).all()


SHORT = {"particles": 200, "auxiliary": 200, "drawn modes": 100, "angles": 300, "interacting": 300}


@pytest.mark.parametrize("name", list(KINDS))
def test_streams_do_not_grow(name: str) -> None:
    """What is kept does not depend on how many updates there were."""
    kind = KINDS[name]
    n = SHORT.get(name, 500)
    with compiling.tier("compiled"):  # else the compiler itself may be loaded while memory is measured
        stream = kind.open()
        for t in range(n):
            kind.feed(stream, t)
        tracemalloc.start()
        for t in range(n):
            kind.feed(stream, t)
        before = tracemalloc.get_traced_memory()[0]
        for t in range(n):
            kind.feed(stream, t)
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
    assert grown < 16_384


def resident() -> int:
    """Bytes of memory that the process holds now."""
    with open("/proc/self/statm") as pages:
        return int(pages.read().split()[1]) * 4096


def grown(update: Callable[[Any], Any], block: list[Any], times: int) -> int:
    """Bytes that the process holds more after `times` turns through the block than after a few."""
    for z in block * 3:
        update(z)
    before = resident()
    for _ in range(times):
        for z in block:
            update(z)
    return resident() - before


ONE_BY_ONE = {
    "symbols": [0, 1, 1, -1, 0],
    "diag": [[0.1, 0.2], [1.0, np.nan], [0.3, -0.4], [0.0, 1.0], [2.0, 2.0]],
    "durations": [0, 1, 1, -1, 0],
    "sense and act": [0, 1, 2, 3, 4],
    "square root": [[0.1, 0.2], [1.0, np.nan], [0.3, -0.4], [0.0, 1.0], [2.0, 2.0]],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(ONE_BY_ONE))
def test_ten_million_updates_in_constant_memory(name: str) -> None:
    stream, block = KINDS[name].open(), ONE_BY_ONE[name] * 200
    update = stream.update if name != "sense and act" else (lambda t: KINDS[name].feed(stream, t))
    assert grown(update, block, 10**7 // len(block)) < 4 << 20
    assert np.isfinite(stream.log_likelihood)
    again = KINDS[name].open(state=json.loads(json.dumps(stream.state)))
    for z in block[:20]:
        assert np.array_equal(update(z), again.update(z) if name != "sense and act" else KINDS[name].feed(again, z))


@pytest.mark.slow
@pytest.mark.parametrize("name", MANY)
def test_ten_million_updates_in_blocks(name: str) -> None:
    n = 2_000
    stream, blocks = KINDS[name].open(), []
    recorded = type("Recorder", (), {"update_many": lambda self, *args, **more: blocks.append((args, more))})()
    KINDS[name].many(recorded, 0, n)  # type: ignore[misc]
    (args, more) = blocks[0]
    if name not in ("texts", "network"):
        args = tuple(np.array(part) for part in args)
    times = 10**7 // (10 * n) // (10 if name in ("angles", "network", "texts") else 1)  # these take longer
    assert grown(lambda _: stream.update_many(*args, **more), [0] * 10, times) < 8 << 20
    assert np.isfinite(stream.log_likelihood)
