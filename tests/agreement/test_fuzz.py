"""A fixed portion of the random tests: so many worlds of each kind, the same ones at every run."""

from __future__ import annotations

import pytest

from fuzz.models import run
from fuzz.trials import KINDS

#: Worlds of each kind for `make test-all`; `make test` sees the first half of them, in about 20 seconds. A new kind has
#: its number here.
WORLDS = {"tables": 80, "extreme": 60, "soft": 40, "approximate": 12, "mixed": 100, "sequences": 100, "estimators": 25}


def test_every_kind_has_its_portion():
    assert set(WORLDS) == set(KINDS)


@pytest.mark.parametrize("part", [2, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", WORLDS)
def test_random_worlds(kind, part):
    worlds = WORLDS[kind] // part
    (tally,) = run([kind], seed=2024, worlds=worlds, show=False)
    assert tally.questions > worlds
    assert not tally.faults, "\n\n".join(map(str, tally.faults[:3]))


def test_a_wrong_answer_is_a_fault_that_can_be_seen_again(monkeypatch):
    import gramgraph.questions.ask as ask

    real = ask.log_evidence
    monkeypatch.setattr(ask, "log_evidence", lambda *args, **options: real(*args, **options) + 1e-6)
    (tally,) = run(["tables"], seed=0, worlds=1, show=False)
    assert tally.faults
    first = tally.faults[0]
    assert "log" in str(first)
    assert f"--replay {first.seed}:{first.number}" in str(first)
