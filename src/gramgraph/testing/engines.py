"""Agreement of an engine with the brute-force joint."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.answers import Answer
from gramgraph.engines.base import Engine
from gramgraph.engines.exact.enumeration import Enumeration
from gramgraph.models.base import GraphicalModel
from gramgraph.questions.question import Question
from gramgraph.testing.random_models import random_bayesian_network, random_markov_network, random_question


def check_engine(engine: Engine, *, rounds: int = 20, random_state: int = 0, atol: float = 1e-9) -> None:
    """Assert that the engine answers as enumeration does, on `rounds` random directed and undirected models.

    The models have zeros, single-state variables, noisy-max conditionals and loose parts; the questions have joints,
    gaps, likelihoods and impossible evidence. An engine with a method `mpe` is asked for the most probable assignment
    too. Approximate engines pass with an `atol` of their own.

    Parameters
    ----------
    engine : its name, or the engine.
    rounds : how many models.
    random_state : seed, or a generator.
    atol : how far answers may be off.

    Examples
    --------
    >>> from gramgraph.engines.exact.elimination import Elimination
    >>> check_engine(Elimination(), rounds=2)
    """
    assert isinstance(engine.name, str), "an engine has a name"
    assert isinstance(engine.exact, bool), "an engine says whether it is exact"
    for number in range(rounds):
        rng = np.random.default_rng([random_state, number])
        zeros, single = (0.0, 0.35)[number % 2], (0.0, 0.2)[number // 2 % 2]
        model: GraphicalModel = (
            random_bayesian_network(
                rng, int(rng.integers(1, 8)), zeros=zeros, single=single, max_parents=4, density=0.6, noisy=0.3
            )
            if number % 3
            else random_markov_network(rng, int(rng.integers(1, 7)), zeros=zeros, single=single)
        )
        question = random_question(rng, model, cases=None if number % 4 == 0 else 4)
        where = f"round {number} of random_state={random_state}"
        compare_answers(engine, model, question, atol=atol, where=where)
        if engine.exact and hasattr(engine, "best"):
            compare_mpe(engine, model, question, atol=atol, where=where)


def compare_answers(
    engine: Engine, model: GraphicalModel, question: Question, *, atol: float = 1e-9, where: str = ""
) -> Answer:
    """Assert that marginals, joints and log p(e) are those of the joint table; the engine's answer."""
    truth, found = Enumeration().answer(model, question), engine.answer(model, question)
    assert found.batched == question.batched, f"{where}: one case in, one case out"
    assert list(found) == list(truth), f"{where}: answers {list(found)}, asked {list(truth)}"
    _close(found.log_evidence, truth.log_evidence, atol, f"{where}: log p(e)")
    for key in truth:
        assert found[key].scope == truth[key].scope, f"{where}: scope of {key}"
        _close(found[key].probabilities, truth[key].probabilities, atol, f"{where}: p({key} | e)")
    return found


def compare_mpe(engine: Any, model: GraphicalModel, question: Question, *, atol: float = 1e-9, where: str = "") -> None:
    """Assert that the best value is that of the joint table, and that the assignment attains it."""
    truth = Enumeration().best(model, question).log_prob
    codes, found, *_ = engine.best(model, question)
    assert codes.shape == (question.n_cases, len(model)), f"{where}: one row of states for each case"
    _close(found, truth, atol, f"{where}: log probability of the best assignment")
    for case in range(question.n_cases):
        if truth[case] == -np.inf:
            continue
        names = {var.name: var.states[code] for var, code in zip(model.vars, codes[case], strict=True)}
        value = model.joint_log_prob(names)
        for i, weights in question.soft_weights(case).items():
            value += float(np.log(weights[codes[case, i]]))
        seen = question.hard_evidence(case)
        assert all(codes[case, i] == code for i, code in seen.items()), f"{where}: the assignment holds the evidence"
        _close(value, truth[case], atol, f"{where}: the assignment attains the best value")


def _close(found: Any, truth: Any, atol: float, what: str) -> None:
    """Equal within atol · max(1, |truth|); NaN only where the truth is NaN, -inf only where it is -inf."""
    a, b = np.asarray(found, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    assert a.shape == b.shape, f"{what}: shape {a.shape}, expected {b.shape}"
    assert np.allclose(a, b, rtol=atol, atol=atol, equal_nan=True), f"{what}: {a} is not {b}"
