"""Networks, fields and spectral models keep every bit in files; broken files are told, never run."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph.exceptions import ParseError

RNG = np.random.default_rng


def network():
    rng = RNG(0)
    a, b = rng.normal(size=(2, 400))
    frame = pd.DataFrame({"a": a, "b": b, "c": a * b + 0.2 * rng.normal(size=400), "k": np.where(a > 0, "u", "v")})
    return gg.learn_dag(frame, "a -> c <- b; a -> k", cells=12), lambda net: net.log_likelihood(frame.head(40))


def field():
    clean = np.add.outer(np.sin(np.arange(24) / 4.0), np.cos(np.arange(24) / 5.0))
    noisy = clean + 0.2 * RNG(0).normal(size=clean.shape)
    return gg.learn_grid(clean, noisy, cells=16), lambda net: net.query(noisy).mean()


def spectral():
    state = np.cumsum(RNG(0).random(1500) < 0.1) % 2
    x = np.where(state, 1.0, -1.0) + 0.5 * RNG(1).normal(size=1500)
    return gg.embeddings.learn_spectral_hmm(x, 2, cells=20), lambda model: model.filter(x[:50])


@pytest.mark.parametrize("make", [network, field, spectral])
def test_files_keep_every_bit(make, tmp_path):
    model, numbers = make()
    model.save(tmp_path / "model.npz")
    gg.write(model, tmp_path / "model.json")
    for read in (type(model).load(tmp_path / "model.npz"), gg.read(tmp_path / "model.json")):
        assert type(read) is type(model)
        assert np.array_equal(numbers(read), numbers(model))
    with pytest.raises(ParseError, match="expected a kernel_tree"):
        gg.embeddings.KernelTree.load(tmp_path / "model.npz")


@pytest.mark.parametrize("make", [network, field, spectral])
def test_broken_files_are_told(make, tmp_path):
    model, _ = make()
    gg.write(model, tmp_path / "model.json")
    model.save(tmp_path / "model.npz")
    data = (tmp_path / "model.npz").read_bytes()
    (tmp_path / "half.npz").write_bytes(data[: len(data) // 2])
    with pytest.raises(ParseError):
        type(model).load(tmp_path / "half.npz")
    good = json.loads((tmp_path / "model.json").read_text())
    for change in (
        {"axes": good["axes"][:-1]},
        {"axes": None},
        {"arrays": dict(list(good["arrays"].items())[:-1])},
        {"arrays": {k: {**v, "dtype": "|O"} for k, v in good["arrays"].items()}},
        {"arrays": {k: {**v, "shape": [1, *v["shape"]]} for k, v in good["arrays"].items()}},
        {"version": 9},
    ):
        (tmp_path / "bad.json").write_text(json.dumps({**good, **change}))
        with pytest.raises(ParseError):
            gg.read(tmp_path / "bad.json")


def test_a_network_with_a_cycle_or_without_sums_is_no_network(tmp_path):
    model, _ = network()
    gg.write(model, tmp_path / "model.json")
    good = json.loads((tmp_path / "model.json").read_text())
    families = [dict(f) for f in good["families"]]
    families[0]["parents"] = ["k"]
    (tmp_path / "bad.json").write_text(json.dumps({**good, "families": families}))
    with pytest.raises(ParseError, match="family"):
        gg.read(tmp_path / "bad.json")
    table = good["arrays"]["family0.table"]
    ones = {**table, "base64": good["arrays"]["axis0.near"]["base64"][: len(table["base64"])]}
    (tmp_path / "bad.json").write_text(json.dumps({**good, "arrays": {**good["arrays"], "family0.table": ones}}))
    with pytest.raises(ParseError):
        gg.read(tmp_path / "bad.json")
