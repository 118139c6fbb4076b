"""Segmentation must help: couplings that held-out labels choose, and a warning where a labeling is constant."""

from __future__ import annotations

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.exceptions import ModelWarning, OptionError
from gramgraph.sequences.crf.penalty import assured_gain


def squares(seed):
    rng = np.random.default_rng(seed)
    truth = np.zeros((16, 16), int)
    truth[4:12, 4:12] = 1
    return truth, [truth + rng.normal(scale=0.8, size=truth.shape) for _ in range(8)]


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
@pytest.mark.parametrize("options", [{"method": "pseudo", "c2": 0.01}, {}])
def test_row_b9_noisy_squares_are_found(seed, options):
    truth, X = squares(seed)
    alone = np.mean([((x > 0.5) == truth).mean() for x in X[6:]])
    crf = gg.sequences.GridCRF(**options).fit(X[:6], [truth] * 6)
    assert 0 < crf.scale_ < 0.5 if options else crf.scale_ > 0.5  # pseudo-likelihood overrates couplings
    assert crf.score(X[6:], [truth] * 2) >= 0.85 > alone


def test_couplings_are_learned_over_the_classifier_as_it_is():
    """Weights of nodes that moved with the couplings would carry the classes' frequencies in the parts learned from."""
    truth, X = squares(0)
    crf = gg.sequences.GridCRF().fit(X[:6], [truth] * 6)
    fields = crf._fields(X[:6])
    np.testing.assert_array_equal(crf.weights_.nodes, crf._alone(fields, [truth.ravel()] * 6, crf.c2_).nodes)
    assert np.abs(crf.weights_.couplings()).max() > 0.1


SIZES = np.full(8, 1000)


@pytest.mark.parametrize(
    ("won", "lost"),
    [
        ([400, 0, 0, 0, 0, 0, 0, 0], [0] * 8),  # one part alone says so, however many of its pixels
        (
            [90, 90, 90, 90, 90, 0, 0, 0],
            [0, 0, 0, 0, 0, 40, 40, 40],
        ),  # more of the last parts: a loss
        ([2, 2, 2, 2, 2, 2, 2, 2], [0, 0, 1, 2, 1, 2, 2, 1]),  # in no part by much, and in all by less than luck
        ([0] * 8, [0] * 8),
    ],
)
def test_a_gain_that_may_not_come_again_is_none(won, lost):
    assert assured_gain(np.array(won), np.array(lost), SIZES) == 0.0


def test_the_assured_gain_is_that_of_the_worse_half():
    won, lost = np.array([50, 60, 70, 80, 90, 60, 60, 60]), np.full(8, 10)
    assert assured_gain(won, lost, SIZES) == pytest.approx((40 + 50 + 50 + 50) / 4000)
    few = np.array([0, 3, 0, 3] * 40)  # graphs of 20 nodes each: every other one gains, and all together do
    assert assured_gain(few, np.zeros(160, int), np.full(160, 20)) == pytest.approx(1.5 / 20, rel=0.1)
    sizes = np.array([500, 500, 1000])  # the worse half of the nodes is the first part and a half of the last
    assert assured_gain(np.array([40, 60, 100]), np.zeros(3, int), sizes) == pytest.approx((40 + 50) / 1000)


def test_a_constant_labeling_is_told():
    truth, X = squares(0)
    crf = gg.sequences.GridCRF(method="pseudo", c2=0.01, calibrate=False).fit(X[:6], [truth] * 6)
    with pytest.warns(ModelWarning, match="everywhere"):
        assert crf.score(X[6:], [truth] * 2) < 0.3


def context(x):
    """A pixel and the means around it: a strong classifier of single pixels, to which couplings add little."""
    padded = np.pad(x, 1, mode="edge")
    around = sum(padded[i : i + x.shape[0], j : j + x.shape[1]] for i in range(3) for j in range(3)) / 9
    return np.dstack([x, around])


@pytest.mark.parametrize("noise", [0.3, 1.0])
@pytest.mark.parametrize("features", [lambda x: x[:, :, None], context])
def test_never_below_the_boosted_classifier_of_pixels(noise, features):
    """Disks, half of each picture learned and half judged; the field gains where there is something to gain."""
    rng = np.random.default_rng(7)
    rows, columns = np.mgrid[:60, :90]
    truth = ((rows - 30) ** 2 + (columns % 45 - 22) ** 2 < 180).astype(int)
    X = features(truth + rng.normal(scale=noise, size=truth.shape))
    crf = gg.sequences.GridCRF(node_classifier=gg.GentleBoostClassifier(n_estimators=30))
    crf.fit([X[:, :45]], [truth[:, :45]])
    alone = (crf.node_classifier_.predict(X[:, 45:].reshape(-1, X.shape[2])) == truth[:, 45:].ravel()).mean()
    found = crf.score([X[:, 45:]], [truth[:, 45:]])
    assert found >= alone
    if noise == 1.0:
        assert crf.scale_ > 0 and found > alone + 0.01


def test_labels_without_neighborhood_keep_the_classifier_of_pixels():
    """Where neighbors say nothing, the predictions are those of the classifier itself, pixel by pixel."""
    rng = np.random.default_rng(3)
    y = [rng.integers(0, 3, (24, 24)) for _ in range(3)]
    X = [labels + rng.normal(scale=0.7, size=labels.shape) for labels in y]
    crf = gg.sequences.GridCRF(node_classifier=gg.GentleBoostClassifier(n_estimators=30)).fit(X[:2], y[:2])
    assert crf.scale_ == 0
    np.testing.assert_array_equal(crf.predict(X[2:])[0].ravel(), crf.node_classifier_.predict(X[2].reshape(-1, 1)))


def test_together_or_one_by_one():
    """`decode` on a grid small enough to list: the best labeling, and the best label of each pixel."""
    truth, X = squares(0)
    crf = gg.sequences.GridCRF(inference="exact").fit(X[:3], [truth] * 3)
    small = X[4][3:6, 3:6]
    net = crf.to_network(small)
    each = [int(np.argmax(net.query(name)[name].probabilities)) for name in net.variables]
    assert crf.predict([small])[0].ravel().tolist() == each
    best = net.map_query().assignment
    assert crf.set_params(decode="joint").predict([small])[0].ravel().tolist() == [int(best[n]) for n in net.variables]


def test_the_penalty_can_be_chosen():
    truth, X = squares(1)
    crf = gg.sequences.GridCRF(method="pseudo", c2="auto").fit(X[:4], [truth] * 4)
    assert crf.c2_ in (0.1, 1.0, 10.0, 100.0)
    assert crf.score(X[6:], [truth] * 2) >= 0.75
    with pytest.raises(OptionError, match="c2"):
        gg.sequences.GridCRF(c2="car").fit(X[:2], [truth] * 2)


@pytest.mark.slow
@pytest.mark.parametrize("features", ["pixel", "context"])
@pytest.mark.parametrize("noise", ["0.5", "1.0"])
@pytest.mark.parametrize("image", ["horse", "camera2", "camera3", "disparity"])
def test_no_image_is_labeled_worse_than_by_its_classifier(shared_data, monkeypatch, image, noise, features):
    """One half learned, the other labeled; the halves differ. All images: `python -m benchmarks image_fields`."""
    from benchmarks.image_fields import compare

    monkeypatch.setenv("GRAMGRAPH_DATA", str(shared_data))
    found = compare(f"{image}-{noise}-{features}", seed=5)
    assert found["gain"] >= 0
