"""Answers and beliefs: what a question gives back."""

from __future__ import annotations

from gramgraph.answers.answer import Answer, Key
from gramgraph.answers.assignment import Assignment
from gramgraph.answers.belief import Belief
from gramgraph.answers.mixture import MixtureBelief
from gramgraph.answers.node_belief import NodeBelief
from gramgraph.answers.plate_answer import PlateAnswer, PlateBeliefs
from gramgraph.answers.quality import Quality
from gramgraph.answers.real_answer import RealAnswer
from gramgraph.answers.real_belief import RealBelief
from gramgraph.answers.sampled import SampledBelief

__all__ = [
    "Answer",
    "Assignment",
    "Belief",
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
