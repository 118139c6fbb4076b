"""Checks of options, in one wording: what the option must be, and what came instead."""

from __future__ import annotations

import os
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from gramgraph.exceptions import GramGraphError, OptionError, did_you_mean, listing

__all__ = ["check_choice", "check_count", "check_fraction", "check_jobs", "check_positive", "generator", "is_number"]


def is_number(value: Any) -> bool:
    """Whether a value is one number; truth values are none."""
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> None:
    """`OptionError` unless `value` is one of a few.

    >>> check_choice("way", "vorward", ("forward", "backward"))
    Traceback (most recent call last):
        ...
    gramgraph.exceptions.OptionError: way must be one of 'forward', 'backward', not 'vorward'. Did you mean 'forward'?
    """
    truth = isinstance(value, (bool, np.bool_))  # True is not 1
    if not any(
        value is choice or (isinstance(value, type(choice)) and truth == isinstance(choice, bool) and value == choice)
        for choice in choices
    ):
        hint = did_you_mean(value, [str(choice) for choice in choices])
        raise OptionError(f"{name} must be one of {listing(map(repr, choices))}, not {value!r}.{hint}")


def check_count(
    name: str, value: Any, least: int = 1, most: int | None = None, *, error: type[GramGraphError] = OptionError
) -> int:
    """A whole number of at least `least`, and of at most `most`.

    >>> check_count("k", 0)
    Traceback (most recent call last):
        ...
    gramgraph.exceptions.OptionError: k must be a whole number of at least 1, not 0
    """
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        limits = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise error(f"{name} must be a whole number {limits}, not {value!r}")
    return int(value)


def check_positive(name: str, value: Any, *, zero: bool = False) -> float:
    """A finite number above 0, or from 0 on."""
    if not is_number(value) or not 0.0 <= value < np.inf or (value == 0.0 and not zero):
        wanted = "a finite number of at least 0" if zero else "a positive number"
        raise OptionError(f"{name} must be {wanted}, not {value!r}")
    return float(value)


def check_fraction(name: str, value: Any, *, ends: bool = False) -> float:
    """A number between 0 and 1; with `ends`, 0 and 1 are allowed."""
    if not is_number(value) or not 0.0 <= value <= 1.0 or (value in (0.0, 1.0) and not ends):
        wanted = "a number from 0 to 1" if ends else "a number between 0 and 1"
        raise OptionError(f"{name} must be {wanted}, not {value!r}")
    return float(value)


def check_jobs(n_jobs: Any, *, error: type[GramGraphError] = OptionError) -> int:
    """How many threads to run: `n_jobs`, or one for each processor where it is -1."""
    if type(n_jobs) is int and n_jobs >= 1:  # nearly always: questions about a single case pass here too
        return n_jobs
    if not isinstance(n_jobs, (int, np.integer)) or isinstance(n_jobs, bool) or not (n_jobs >= 1 or n_jobs == -1):
        raise error(f"n_jobs is a number of threads: a whole number of at least 1, or -1 for all, not {n_jobs!r}")
    return int(n_jobs) if n_jobs >= 1 else os.cpu_count() or 1


def generator(random_state: Any) -> np.random.Generator:
    """A generator of random numbers from None, a seed, a generator, or NumPy's older `RandomState`."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise OptionError(
            f"random_state must be None, a whole number of at least 0 or a generator of NumPy, not {random_state!r:.80}"
        ) from None
