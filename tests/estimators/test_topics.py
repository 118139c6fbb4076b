"""Latent Dirichlet allocation: what it reads, what it learns, streams, checkpoints, files."""

from __future__ import annotations

import gzip
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import gramgraph as gg
from gramgraph.exceptions import ModelError, ModelWarning, OptionError, ParseError
from gramgraph.machines.topics.gibbs import GibbsFit

CONTRACT = [
    gg.LatentDirichletAllocation(3, max_iter=20, random_state=0),
    gg.LatentDirichletAllocation(3, method="collapsed", learn_priors=True, random_state=0),
    gg.LatentDirichletAllocation(2, method="variational", max_iter=20, tol=0.0, random_state=0),
    gg.LatentDirichletAllocation(2, method="online", max_iter=3, learn_priors=True, random_state=0),
]
METHODS = ("gibbs", "collapsed", "variational", "online")


def world(n: int = 60, words: int = 24, topics: int = 3, seed: int = 0) -> tuple[Any, Any]:
    """Counts of documents that use few of a few topics, and the topics: each has words of its own."""
    rng = np.random.default_rng(seed)
    phi = np.zeros((topics, words))
    for t, own in enumerate(np.array_split(np.arange(words), topics)):
        phi[t, own] = rng.dirichlet(np.full(len(own), 2.0))
    theta = rng.dirichlet(np.full(topics, 0.2), n)
    counts = np.array([rng.multinomial(int(rng.integers(20, 60)), p @ phi) for p in theta])
    return scipy.sparse.csr_array(counts), phi


def nearest(found: Any, truth: Any) -> float:
    """Mean distance in total variation of every true topic to the nearest found one."""
    return float(np.mean([0.5 * np.abs(found - own).sum(axis=1).min() for own in truth]))


# --------------------------------------------------------------------------------------------- learning


@pytest.mark.parametrize("method", METHODS)
def test_topics_are_found(method: str) -> None:
    X, phi = world(n=150)
    seeds = range(4) if method == "online" else [1]  # its start is flat, and some end where two topics are one
    made = [gg.LatentDirichletAllocation(3, method=method, batch_size=30, random_state=s).fit(X) for s in seeds]
    model = min(made, key=lambda one: one.perplexity(X))
    assert nearest(model.topic_word_, phi) < 0.12
    assert model.components_.shape == (3, 24) and model.n_documents_ == 150
    np.testing.assert_allclose(model.topic_word_.sum(axis=1), 1.0)
    shares = model.transform(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert shares.max(axis=1).mean() > 0.75
    held, _ = world(n=40, seed=9)  # other topics: harder to tell
    assert model.perplexity(X) < model.perplexity(held) and model.perplexity(X) < 24.0


def test_counts_with_the_prior_on_top() -> None:
    X, _ = world()
    gibbs = gg.LatentDirichletAllocation(4, topic_word_prior=0.5, max_iter=30, random_state=0).fit(X)
    assert gibbs.components_.sum() == pytest.approx(X.sum() + 4 * 24 * 0.5)
    np.testing.assert_allclose(gibbs.components_.sum(axis=0), X.sum(axis=0) + 2.0)
    assert len(gibbs.trace_) == 3 and gibbs.n_iter_ == 30
    bound = gg.LatentDirichletAllocation(4, method="variational", topic_word_prior=0.5, random_state=0).fit(X)
    assert bound.components_.sum() == pytest.approx(X.sum() + 4 * 24 * 0.5)
    assert (np.diff(bound.trace_) > -1e-8 * abs(bound.trace_[-1])).all()


@pytest.mark.parametrize("method", METHODS)
def test_one_topic_is_the_smoothed_share_of_words(method: str) -> None:
    X, _ = world()
    model = gg.LatentDirichletAllocation(1, method=method, topic_word_prior=0.5, random_state=0, max_iter=60).fit(X)
    expected = X.sum(axis=0) + 0.5
    if method != "online":
        np.testing.assert_allclose(model.components_[0], expected, rtol=1e-9)
        logs = np.log(expected / expected.sum())
        assert model.score(X) == pytest.approx(float((X @ logs).sum()))
    assert (model.transform(X) == 1.0).all()


def test_learned_priors_raise_the_evidence_and_find_rare_topics() -> None:
    rng = np.random.default_rng(0)
    phi = np.kron(np.eye(3), np.full(8, 1 / 8))
    theta = rng.dirichlet([2.0, 0.3, 0.05], 300)
    X = scipy.sparse.csr_array(np.array([rng.multinomial(50, p @ phi) for p in theta]))
    for method in METHODS:
        model = gg.LatentDirichletAllocation(3, method=method, learn_priors=True, random_state=0).fit(X)
        alpha = np.sort(model.doc_topic_prior_)[::-1]
        assert alpha[0] > 3.0 * alpha[1] > 4.0 * alpha[2] > 0.0, (method, alpha)
        plain = gg.LatentDirichletAllocation(3, method=method, random_state=0).fit(X)
        assert model.perplexity(X) < plain.perplexity(X)
        if method == "variational":
            assert model.trace_[-1] > plain.trace_[-1]
    fixed = gg.LatentDirichletAllocation(3, learn_priors="topic_word", random_state=0, max_iter=20).fit(X)
    assert (fixed.doc_topic_prior_ == 1 / 3).all() and (fixed.topic_word_prior_ == fixed.topic_word_prior_[0]).all()
    each = gg.LatentDirichletAllocation(3, learn_priors="asymmetric", random_state=0, max_iter=20).fit(X)
    assert len(set(each.topic_word_prior_)) > 3


def test_one_seed_one_answer() -> None:
    X, _ = world()
    for method in METHODS:
        made = [gg.LatentDirichletAllocation(3, method=method, max_iter=12, random_state=4).fit(X) for _ in range(2)]
        np.testing.assert_allclose(made[0].components_, made[1].components_, rtol=1e-9)
        assert made[0].perplexity(X) == pytest.approx(made[1].perplexity(X), rel=1e-9)


# --------------------------------------------------------------------------------------------- what is read


def test_all_kinds_of_input_say_the_same() -> None:
    texts = [["b", "a", "b"], ["c"], [], ["a", "c", "c", "c"]]
    counts = np.array([[2, 1, 0], [0, 0, 1], [0, 0, 0], [0, 1, 3]])  # columns b, a, c: as they come
    frame = pd.DataFrame(counts, columns=["b", "a", "c"])
    numbers = [[0, 1, 0], [2], [], np.array([1, 2, 2, 2])]
    found = []
    for X in (texts, numbers, counts, counts.astype(float), frame, scipy.sparse.csr_matrix(counts),
              scipy.sparse.coo_array(counts)):  # fmt: skip
        model = gg.LatentDirichletAllocation(2, max_iter=20, random_state=0).fit(X)
        found.append((model.components_, model.transform(X), model.score(X)))
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9)
    named = gg.LatentDirichletAllocation(2, max_iter=5, random_state=0).fit(frame)
    assert set(named.top_words(3)[0]) == {"a", "b", "c"}
    np.testing.assert_allclose(named.transform([["c", "a"]]), named.transform(pd.DataFrame({"b": [0], "a": 1, "c": 1})))
    assert gg.LatentDirichletAllocation(2, max_iter=5, random_state=0).fit(counts).top_words(1)[0][0] in "012"


def test_unseen_words_are_left_out() -> None:
    texts = [["river", "water"], ["loan", "money"]] * 6
    model = gg.LatentDirichletAllocation(2, random_state=0, max_iter=40).fit(texts)
    known, more = [["water", "money"]], [["water", "zebra", "money", "zebra"]]
    np.testing.assert_allclose(model.transform(known), model.transform(more))
    assert model.perplexity(known) == pytest.approx(model.perplexity(more))
    numbers = gg.LatentDirichletAllocation(2, random_state=0, max_iter=40).fit([[0, 1], [2, 3]] * 6)
    np.testing.assert_allclose(numbers.transform([[1, 9]]), numbers.transform([[1]]))
    np.testing.assert_allclose(model.transform([["zebra"], []]), np.full((2, 2), 0.5))
    with pytest.raises(ModelError, match="no word to tell the probability of"):
        model.perplexity([["zebra"]])
    with pytest.raises(ModelError, match="without names of words"):
        numbers.transform([["water"]])


@pytest.mark.parametrize(
    "X, told",
    [
        (np.array([[1, -1]]), "Negative values in data"),
        (np.array([[0.5, 1.0]]), "whole numbers, not 0.5"),
        (scipy.sparse.csr_array([[0.25, 1.0]]), "tf-idf"),
        (np.zeros((3, 2), int), "no document holds a word"),
        ([[], []], "no document holds a word"),
        (["one text", "another"], "list of words"),
        ([[0, 1], ["a"]], "tokens"),
        ([[0.5, 1.0]], "tokens"),
        ([[0, -1]], "from 0 on"),
        (np.array([[1e300, 1.0]]), "counted exactly"),
        (np.array([[2.0**40, 1.0]]), "method='variational'"),
    ],
)
def test_bad_collections_are_refused(X: Any, told: str) -> None:
    with pytest.raises(ModelError, match=told):
        gg.LatentDirichletAllocation(2, max_iter=2).fit(X)


def test_empty_collections_are_refused() -> None:
    for X in ([], np.zeros((0, 3), int)):
        with pytest.raises(ValueError, match="(?i)empty|0 sample|expected 2D"):
            gg.LatentDirichletAllocation(2).fit(X)


@pytest.mark.parametrize(
    "options, told",
    [
        ({"method": "gips"}, "method"),
        ({"n_components": 0}, "n_components"),
        ({"doc_topic_prior": 0.0}, "doc_topic_prior"),
        ({"doc_topic_prior": [0.1, 0.2, 0.3]}, "one for each of the topics"),
        ({"topic_word_prior": [-1.0] * 24}, "one for each of the words"),
        ({"learn_priors": "yes"}, "learn_priors"),
        ({"max_iter": 0}, "max_iter"),
        ({"burn_in": -1}, "burn_in"),
        ({"learning_decay": 0.5}, "learning_decay"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(OptionError, match=told):
        gg.LatentDirichletAllocation(**{"n_components": 2, **options}).fit(world()[0])


# --------------------------------------------------------------------------------------------- held-out documents


def test_perplexity_of_documents_and_of_their_rest() -> None:
    X, phi = world(n=200)
    model = gg.LatentDirichletAllocation(3, random_state=0, max_iter=60).fit(X[:150])
    held = X[150:]
    tokens = int(held.sum())
    assert model.perplexity(held) == pytest.approx(math.exp(-model.score(held) / tokens))
    # a completed document is easier than one of which nothing is known; its own words are best
    assert model.completion(held, share=0.8) < model.perplexity(held)
    assert model.perplexity(held, given=held) < model.perplexity(held)
    joined = model.score(held) + -math.log(model.perplexity(held, given=held)) * tokens
    doubled = gg.LatentDirichletAllocation(3, random_state=0, max_iter=60).fit(X[:150]).score(held + held)
    assert joined == pytest.approx(doubled, rel=0.01)  # p(first) p(second | first) = p(both)
    with pytest.raises(ModelError, match="given has 1 documents, X has 50"):
        model.perplexity(held, given=held[:1])


def test_coherence_prefers_words_that_stand_together() -> None:
    X, _ = world(n=150)
    model = gg.LatentDirichletAllocation(3, random_state=1, max_iter=60).fit(X)
    for measure in ("umass", "npmi"):
        found = model.coherence(X, n_words=5, measure=measure)
        mixed = gg.LatentDirichletAllocation(3, random_state=1, max_iter=60).fit(X)
        mixed.components_ = model.components_[:, np.random.default_rng(0).permutation(24)]
        assert found.shape == (3,) and found.mean() > mixed.coherence(X, n_words=5, measure=measure).mean()


# --------------------------------------------------------------------------------------------- streams, files


@pytest.mark.parametrize("method", METHODS)
def test_streams(method: str) -> None:
    X, phi = world(n=240)
    model = gg.LatentDirichletAllocation(3, method=method, batch_size=20, max_iter=60, random_state=0)
    for start in range(0, 240, 60):
        model.partial_fit(X[start : start + 60])
    assert model.n_documents_ == 240
    assert nearest(model.topic_word_, phi) < 0.15
    if method != "online":
        assert model.components_.sum() == pytest.approx(X.sum() + 3 * 24 * 0.1)
    before = model.components_.copy()
    model.partial_fit(np.zeros((2, 24), int))
    np.testing.assert_array_equal(before, model.components_)


@pytest.mark.parametrize("method, rounds", [("gibbs", 40), ("collapsed", 8), ("variational", 8), ("online", 4)])
def test_a_fit_goes_on_from_its_checkpoint(method: str, rounds: int, tmp_path: Path) -> None:
    X, _ = world()
    options = {"method": method, "tol": 0.0, "random_state": 0, "learn_priors": True, "burn_in": 10}
    whole = gg.LatentDirichletAllocation(3, max_iter=rounds, **options).fit(X)
    path = tmp_path / "topics.gg"
    gg.LatentDirichletAllocation(3, max_iter=rounds // 2, **options).fit(X, checkpoint=path)
    again = gg.LatentDirichletAllocation(3, max_iter=rounds, **options).fit(X, checkpoint=path)
    np.testing.assert_allclose(again.components_, whole.components_, rtol=1e-9)
    np.testing.assert_allclose(again.trace_, whole.trace_, rtol=1e-9)
    done = gg.LatentDirichletAllocation(3, max_iter=rounds, **options).fit(X, checkpoint=path)
    np.testing.assert_allclose(done.components_, whole.components_, rtol=1e-9)
    with pytest.raises(OptionError, match="other documents"):
        gg.LatentDirichletAllocation(3, **options).fit(X[:30], checkpoint=path)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ParseError, match="damaged"):
        gg.LatentDirichletAllocation(3, **options).fit(X, checkpoint=path)


def test_an_interrupted_fit_keeps_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = world()
    advance = GibbsFit.advance

    def interrupted(self: GibbsFit, sweeps: int) -> None:
        if self.done >= 20:
            raise KeyboardInterrupt
        advance(self, sweeps)

    monkeypatch.setattr(GibbsFit, "advance", interrupted)
    with pytest.warns(ModelWarning, match="interrupted after 20 of 200"):
        model = gg.LatentDirichletAllocation(3, random_state=0).fit(X)
    assert model.n_iter_ == 20 and np.isfinite(model.components_).all()


@pytest.mark.parametrize("method", METHODS)
def test_files(method: str, tmp_path: Path) -> None:
    texts = [["river", "water", "fish"], ["bank", "money", "loan"]] * 6
    model = gg.LatentDirichletAllocation(2, method=method, max_iter=10, random_state=0).fit(texts)
    gg.write(model, tmp_path / "topics.gg")
    again = gg.read(tmp_path / "topics.gg")
    assert again.top_words(3) == model.top_words(3) and again.get_params() == model.get_params()
    np.testing.assert_allclose(again.transform(texts), model.transform(texts), rtol=1e-12)
    again.partial_fit(texts)
    assert again.n_documents_ == 24


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    gg.LatentDirichletAllocation(2, max_iter=25, progress=lambda *now: told.append(now)).fit(world()[0])
    assert told == [(10, 25), (20, 25), (25, 25)]


# --------------------------------------------------------------------------------------------- real collections


def read_ldac(path: Path, n_words: int) -> Any:
    with gzip.open(path, "rt") as lines:
        rows = [[pair.split(":") for pair in line.split()[1:]] for line in lines]
    index = np.array([int(w) for row in rows for w, _ in row])
    count = np.array([int(c) for row in rows for _, c in row])
    ptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return scipy.sparse.csr_array((count, index, ptr), shape=(len(rows), n_words))


def test_news_stories(shared_data: Path) -> None:
    """Reuters: 395 stories; topics beat the shares of words alone by far, and their top words go together."""
    folder = shared_data / "kernel" / "lda"
    with gzip.open(folder / "reuters.tokens.gz", "rt") as lines:
        words = lines.read().split()
    X = read_ldac(folder / "reuters.ldac.gz", len(words))
    train, held = X[40:], X[:40]
    model = gg.LatentDirichletAllocation(20, max_iter=60, random_state=0).fit(train)
    alone = gg.LatentDirichletAllocation(1, max_iter=10, random_state=0).fit(train)
    assert model.perplexity(held) < 0.75 * alone.perplexity(held)
    assert model.coherence(train).mean() > alone.coherence(train).mean() - 2.0
    tops = [{words[int(j)] for j in own} for own in model.top_words(8)]
    assert any({"church", "pope"} <= own or {"pope", "mother"} <= own or {"church", "catholic"} <= own for own in tops)
