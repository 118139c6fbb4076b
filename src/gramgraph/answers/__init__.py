"""Answers and beliefs: what a question gives back."""

from __future__ import annotations

from gramgraph.answers.answer import Answer, Key
from gramgraph.answers.assignment import Assignment
from gramgraph.answers.belief import Belief
from gramgraph.answers.density_belief import DensityBelief
from gramgraph.answers.mixture import MixtureBelief
from gramgraph.answers.plate_answer import PlateAnswer, PlateBeliefs
from gramgraph.answers.quality import Quality
from gramgraph.answers.real_answer import RealAnswer
from gramgraph.answers.real_belief import RealBelief
from gramgraph.answers.sampled import SampledBelief

NodeBelief = DensityBelief  # its name before it held other densities than those on nodes

__all__ = [
    "Answer",
    "Assignment",
    "Belief",
    "DensityBelief",
    "Key",
    "MixtureBelief",
    "NodeBelief",
    "PlateAnswer",
    "PlateBeliefs",
    "Quality",
    "RealAnswer",
    "RealBelief",
    "SampledBelief",
]
