"""Options are checked in one place and refused in one wording."""

from __future__ import annotations

import os

import numpy as np
import pytest

import gramgraph as gg
from gramgraph._validation import check_choice, check_count, check_fraction, check_jobs, check_positive, generator


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (lambda: check_count("k", 0), "k must be a whole number of at least 1, not 0"),
        (lambda: check_count("k", 2.0), "k must be a whole number of at least 1, not 2.0"),
        (lambda: check_count("k", True), "not True"),
        (lambda: check_count("k", 9, 2, 8), "k must be a whole number from 2 to 8, not 9"),
        (lambda: check_positive("reg", 0.0), "reg must be a positive number, not 0.0"),
        (lambda: check_positive("reg", float("nan")), "not nan"),
        (lambda: check_positive("reg", np.inf), "not inf"),
        (lambda: check_positive("reg", "1"), "not '1'"),
        (lambda: check_positive("reg", -1, zero=True), "reg must be a finite number of at least 0, not -1"),
        (lambda: check_fraction("level", 1.0), "level must be a number between 0 and 1, not 1.0"),
        (lambda: check_fraction("level", 1.5, ends=True), "level must be a number from 0 to 1, not 1.5"),
        (lambda: check_choice("way", "forwad", ("forward", "back")), "Did you mean 'forward'?"),
        (lambda: check_choice("way", 1, (True, False)), "way must be one of True, False, not 1"),
        (lambda: check_choice("way", True, (1, 2)), "not True"),
        (lambda: check_choice("way", np.zeros(2), ("a", "b")), "way must be one of 'a', 'b'"),
        (lambda: check_jobs(0), "n_jobs is a number of threads: a whole number of at least 1, or -1 for all, not 0"),
        (lambda: check_jobs(-2), "not -2"),
        (lambda: check_jobs(1.5), "not 1.5"),
        (lambda: check_jobs(True), "not True"),
        (lambda: check_jobs(None), "not None"),
        (lambda: generator("seed"), "random_state must be None, a whole number of at least 0 or a generator of NumPy"),
        (lambda: generator(-1), "not -1"),
    ],
)
def test_what_an_option_cannot_be(check, text):
    with pytest.raises(gg.OptionError) as caught:
        check()
    assert text in str(caught.value)


def test_what_an_option_can_be():
    assert check_count("k", np.int64(3)) == 3 and check_count("k", 0, 0) == 0 and check_count("k", 8, 2, 8) == 8
    assert check_positive("reg", np.float32(0.5)) == 0.5 and check_positive("reg", 0, zero=True) == 0.0
    assert check_fraction("level", 0.5) == 0.5 and check_fraction("level", 1, ends=True) == 1.0
    check_choice("way", np.str_("a"), ("a", "b"))
    check_choice("way", None, (None, True))
    assert check_jobs(1) == 1 and check_jobs(np.int64(3)) == 3 and check_jobs(-1) == (os.cpu_count() or 1)


def test_seeds_and_generators_give_the_same_numbers():
    own = np.random.default_rng(3)
    assert generator(own) is own
    assert generator(3).random() == np.random.default_rng(3).random()
    assert generator(np.random.RandomState(3)).random() == generator(np.random.RandomState(3)).random()


def test_a_bad_parameter_of_a_model_is_a_bad_option():
    """Estimators and sequences call it a fault of the model, questions and learners a bad option: it is both."""
    with pytest.raises(gg.ModelError, match="n_states must be a whole number"):
        gg.GaussianHMM(0).fit(np.zeros((3, 1)))
    assert issubclass(gg.OptionError, gg.ModelError) and issubclass(gg.OptionError, ValueError)
