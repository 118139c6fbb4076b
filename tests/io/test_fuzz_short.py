"""A few hundred broken files for every parser, the same at every run; `make fuzz` runs many more."""

from __future__ import annotations

import warnings

import pytest

from fuzz.fuzz_parsers import run
from fuzz.mutate import documents, targets
from gramgraph.io.registry import FORMATS, load_format


@pytest.mark.parametrize("name", targets())
def test_broken_files_give_a_model_or_a_parse_error(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tally = run(name, seconds=600.0, seed=1, timeout=60.0, limit=300, keep=False)
    assert tally.inputs == 300
    assert not tally.crashes, tally.line()
    if name != "archive":  # there every byte is under a checksum
        assert tally.models > 5  # some accidents do no harm
        assert len(tally.kinds) > 1  # and others are noticed in different ways


@pytest.mark.filterwarnings("ignore::gramgraph.exceptions.ModelWarning")
@pytest.mark.parametrize("name", sorted(FORMATS))
def test_the_documents_are_sound(name: str) -> None:
    assert len(documents(name)) > 1
    for data in documents(name):
        assert load_format(name).loads(data, source="<seed>", normalize=True) is not None
