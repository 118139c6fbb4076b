"""A model that loads is sound, and small things that formats of others do."""

from __future__ import annotations

import json
from typing import Any

import pytest

import gramgraph as gg
from gramgraph.exceptions import ModelError, ParseError
from gramgraph.io import native, net, uai


def _hmm(**changes: Any) -> bytes:
    model = gg.GaussianHMM.from_parameters(
        [0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [[0.0, 1.0], [2.0, 3.0]], [[[2.0, 0.5], [0.5, 1.0]]] * 2
    )
    top = json.loads(native.dumps(model))
    for key, value in changes.items():
        top["attributes"][key]["array"] = value
    return json.dumps(top).encode()


def test_the_model_is_sound_as_it_is() -> None:
    assert native.loads(_hmm()).covars_.shape == (2, 2, 2)


@pytest.mark.parametrize(
    "changes",
    [
        {"means_": [[float("nan"), 1.0], [2.0, 3.0]]},
        {"means_": [[float("inf"), 1.0], [2.0, 3.0]]},
        {"covars_": [[[2.0, 0.5], [0.4, 1.0]]] * 2},
        {"covars_": [[[1.0, 2.0], [2.0, 1.0]]] * 2},
        {"transmat_": [[0.9, 0.2], [0.2, 0.8]]},
        {"startprob_": [-0.5, 1.5]},
    ],
)
def test_unsound_numbers_of_an_hmm_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ParseError):
        native.loads(_hmm(**changes))


def test_unsound_gaussian_factors_and_noise_are_refused() -> None:
    x, y = gg.real("x"), gg.real("y")
    factor = gg.factors.GaussianFactor((x, y), [[2.0, 0.5], [0.5, 1.0]], [0.1, 0.2])
    top = json.loads(native.dumps(gg.MarkovNetwork.from_parts([x, y], [factor])))
    for precision in ([[2.0, 0.5], [0.4, 1.0]], [[2.0, float("nan")], [0.5, 1.0]]):
        top["factors"][0]["precision"] = precision
        with pytest.raises(ParseError):
            native.loads(json.dumps(top).encode())
    kalman = json.loads(native.dumps(gg.KalmanFilter(1.0, 0.1, 1.0, 1.0, 0.0, 1.0)))
    assert native.from_object(kalman).Q == 0.1
    kalman["parameters"]["Q"] = -0.1
    with pytest.raises(ParseError):
        native.from_object(kalman)


def test_comments_of_other_programs() -> None:
    plain = b"MARKOV\n2\n2 2\n1\n2 0 1\n4\n1 2 3 4\n"
    noted = b"# made by hand\nMARKOV # kind\n2\n2 2\n1\n2 0 1\n\n4 # entries\n1 2 3 4\n# end\n"
    assert uai.loads(noted) == uai.loads(plain)
    text = b"""/// a comment; with marks { ( "
    net { } node a { /// states
      states = ("no" "yes"); }
    potential (a) { data = (0.25 /// first; really
      0.75); } // end"""
    assert net.loads(text).conditional("a").table().tolist() == [0.25, 0.75]


@pytest.mark.parametrize("suffix", ["bif", "xmlbif", "net", "xdsl", "uai", "fg"])
def test_discrete_formats_say_what_to_write_instead(suffix: str, tmp_path: Any) -> None:
    model = gg.BayesianNetwork("a{real}", cpds={"a": gg.LinearGaussian("a", (), {}, 0.0, sd=1.0)})
    with pytest.raises(ModelError, match=r"a is real-valued: write \.json instead"):
        gg.write(model, tmp_path / f"model.{suffix}")
    assert not list(tmp_path.iterdir())
