"""What a chain has learned, as dicts and frames, and as a Markov network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.exceptions import ModelError, StateError
from gramgraph.factors import TableFactor
from gramgraph.models import MarkovNetwork
from gramgraph.sequences.crf.decoding import Chain
from gramgraph.sequences.crf.encoding import FeatureTable, Tokens
from gramgraph.typing import Array
from gramgraph.variables import Var, discrete

if TYPE_CHECKING:
    import pandas as pd


def state_features(chain: Chain, table: FeatureTable, labels: Sequence[Any]) -> dict[tuple[str, Any], float]:
    """{(attribute, label): weight} of the weights that are not 0."""
    names = table.names()
    columns = (column.tolist() for column in chain.state_features())
    return {(names[f], labels[y]): w for f, y, w in zip(*columns, strict=True)}


def transition_features(chain: Chain, labels: Sequence[Any]) -> dict[tuple[Any, Any], float]:
    """{(label, next label): weight} of the weights that are not 0."""
    rows = chain.weights.transitions.tolist()
    return {(a, b): rows[i][j] for i, a in enumerate(labels) for j, b in enumerate(labels) if rows[i][j] != 0.0}


def top_states(features: dict[tuple[str, Any], float], n: int, label: Any, largest: bool) -> pd.DataFrame:
    """The n first state features by weight, of all labels or of one."""
    import pandas as pd

    known = list(dict.fromkeys(y for _, y in features))
    if label is not None and label not in known:
        raise StateError.unknown(label, "the labels", [str(y) for y in known])
    rows = [(attribute, y, w) for (attribute, y), w in features.items() if label is None or y == label]
    rows.sort(key=lambda row: (-row[2] if largest else row[2], row[0], str(row[1])))
    return pd.DataFrame(rows[:n], columns=["attribute", "label", "weight"])


def top_transitions(features: dict[tuple[Any, Any], float], n: int, largest: bool) -> pd.DataFrame:
    """The n first transitions by weight."""
    import pandas as pd

    rows = [(a, b, w) for (a, b), w in features.items()]
    rows.sort(key=lambda row: (-row[2] if largest else row[2], str(row[0]), str(row[1])))
    return pd.DataFrame(rows[:n], columns=["from", "to", "weight"])


def to_network(chain: Chain, tokens: Tokens, allowed: Array, labels: Sequence[Any]) -> MarkovNetwork:
    """One table a position and one a neighboring pair."""
    T = len(tokens.ptr) - 1
    if T == 0:
        raise ModelError("a sequence without positions has no network: give at least one token.")
    scores = chain.scores(tokens, allowed)
    scores[0, ~chain.rules.start] = -np.inf
    states = [str(label) for label in labels]
    variables: list[Var] = [discrete(f"y{t}", states) for t in range(T)]
    steps = np.where(chain.rules.steps, chain.weights.transitions, -np.inf)
    factors = [TableFactor.from_log((v,), row) for v, row in zip(variables, scores, strict=True)]
    factors += [TableFactor.from_log((variables[t - 1], variables[t]), steps) for t in range(1, T)]
    return MarkovNetwork.from_parts(variables, factors)
