"""Files that version 0.1.0 wrote are read, and their models answer as they did then."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import gramgraph as gg
from fuzz.saved import probe
from gramgraph.learn.checkpoint import Checkpoint

FOLDER = Path(__file__).parent / "files_0_1_0"
ANSWERS = json.loads((FOLDER / "answers.json").read_text())
MODELS = sorted(p.name for p in FOLDER.glob("*.json") if p.name != "answers.json")


def check(model: object, name: str) -> None:
    # Messages of a grid are single-precision products, whose last digits depend on the processor.
    np.testing.assert_allclose(probe(model), ANSWERS[name], rtol=1e-6 if name == "kernel_grid" else 1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_json(name: str) -> None:
    check(gg.read(FOLDER / name), name.removesuffix(".json"))


@pytest.mark.parametrize(
    "name, cls",
    [
        ("kernel_tree", "KernelTree"),
        ("kernel_network", "KernelNetwork"),
        ("kernel_grid", "KernelGrid"),
        ("spectral_hmm", "SpectralHMM"),
        ("linear_chain_crf", "LinearChainCRF"),
    ],
)
def test_archives(name: str, cls: str) -> None:
    check(getattr(gg if cls in gg.__all__ else gg.embeddings, cls).load(FOLDER / f"{name}.npz"), name)


@pytest.mark.parametrize("suffix", ["bif", "fg", "net", "uai", "xdsl", "xmlbif"])
def test_foreign_formats(suffix: str) -> None:
    model = gg.read(next(FOLDER.glob(f"*.{suffix}")))
    kind = "markov_network" if suffix == "fg" else "bayesian_network"
    numbers = [value for value in ANSWERS[kind] if value != 1.0 or kind != "bayesian_network"]
    assert sorted(set(probe(model)) - {0.0, 1.0}) == sorted(set(numbers) - {0.0, 1.0})


@pytest.mark.parametrize("name, key", [("search", "steps"), ("bootstrap", "done")])
def test_checkpoints(name: str, key: str, tmp_path: Path) -> None:
    path = tmp_path / "note"
    shutil.copy(FOLDER / f"{name}.checkpoint", path)
    noted = json.loads(path.read_text())
    assert Checkpoint(path, name, noted["about"]).begin() == noted["state"]
    assert noted["state"][key] > 0
