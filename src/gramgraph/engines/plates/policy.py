"""What "auto" does with plate models."""

from __future__ import annotations

import numpy as np

from gramgraph.engines.plates.counts import lower_counts, refusal
from gramgraph.engines.plates.enumeration import fits, fits_conjugate
from gramgraph.engines.plates.variational import Field
from gramgraph.questions.plate_question import PlateQuestion


def choose_plates(question: PlateQuestion) -> tuple[str, str]:
    """The engine, and the reason in words."""
    if not refusal(question):
        if fits(lower_counts(question)):
            return "enumeration", "few states are hidden, parameters are integrated out: the sum over all, exact"
        return "collapsed_gibbs", "many states are hidden: drawn one by one, with the parameters integrated out"
    field = Field(question, np.random.default_rng(0))
    if field.is_exact():
        return "conjugate", "every hidden variable is conjugate to what was observed: exact"
    if fits_conjugate(question, field):
        return (
            "enumeration",
            "few states are hidden, and given them every variable is conjugate: the sum over all, exact",
        )
    return "mean_field", "conjugate families that are not counts: a factor of its own for every variable"
