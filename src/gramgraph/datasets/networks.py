"""Bayesian networks of a few variables. Unless said otherwise the states are no and yes, in this order."""

from __future__ import annotations

from gramgraph.conditionals import Deterministic, NoisyOr
from gramgraph.exceptions import ModelError
from gramgraph.models.bayesian_network import BayesianNetwork
from gramgraph.variables import binary


def asia() -> BayesianNetwork:
    """Shortness of breath after a visit to Asia: 8 variables.

    Source: S. Lauritzen and D. Spiegelhalter, Local computations with probabilities on graphical structures,
    J. Royal Statistical Society B 50, 1988, table 2.

    Examples
    --------
    >>> net = asia()
    >>> len(net), net.n_parameters, net.parents("dysp")
    (8, 18, ('bronc', 'either'))
    """
    return BayesianNetwork(
        "asia -> tub -> either; smoke -> lung -> either; smoke -> bronc; either -> xray; bronc -> dysp <- either",
        cpds={
            "asia": 0.01,
            "tub": {"no": 0.01, "yes": 0.05},
            "smoke": 0.5,
            "lung": {"no": 0.01, "yes": 0.10},
            "bronc": {"no": 0.3, "yes": 0.6},
            "either": {("no", "no"): 0.0, ("no", "yes"): 1.0, ("yes", "no"): 1.0, ("yes", "yes"): 1.0},
            "xray": {"no": 0.05, "yes": 0.98},
            "dysp": {("no", "no"): 0.1, ("no", "yes"): 0.7, ("yes", "no"): 0.8, ("yes", "yes"): 0.9},
        },
        name="asia",
    )


def burglary() -> BayesianNetwork:
    """A burglar alarm that earthquakes set off too, and two neighbors who may call.

    p(B, ¬E, A, J, ¬M) = 0.001 · 0.998 · 0.94 · 0.9 · 0.3 ≈ 0.000253. Source: X. Zhu, Graphical models
    and kernel methods; numbers that the text leaves to its figure are those of S. Russell and P. Norvig, Artificial
    Intelligence, section "The semantics of Bayesian networks", the example's source.

    Examples
    --------
    >>> from math import exp
    >>> x = {"burglary": "yes", "earthquake": "no", "alarm": "yes", "john": "yes", "mary": "no"}
    >>> round(exp(burglary().joint_log_prob(x)), 6)
    0.000253
    """
    return BayesianNetwork(
        "burglary -> alarm <- earthquake; alarm -> john; alarm -> mary",
        cpds={
            "burglary": 0.001,
            "earthquake": 0.002,
            "alarm": {("no", "no"): 0.001, ("no", "yes"): 0.29, ("yes", "no"): 0.94, ("yes", "yes"): 0.95},
            "john": {"no": 0.05, "yes": 0.90},
            "mary": {"no": 0.01, "yes": 0.70},
        },
        name="burglary",
    )


def alarm_radio() -> BayesianNetwork:
    """A burglar alarm, and a radio that always reports earthquakes: explaining away.

    p(B | A) = 0.495 and p(B | A, R) = 0.08. Source: P. Hennig, Probabilistic inference and learning, "The
    earthquake and the burglar". The alarm is a noisy-or with false-alarm rate 1/1000: burglars set it off with
    probability 99/100, earthquakes with 1/100.

    Examples
    --------
    >>> round(float(alarm_radio().cpt["A"][{"B": "yes", "E": "yes", "A": "yes"}]), 7)
    0.9901099
    """
    B, E, A = binary("B"), binary("E"), binary("A")
    return BayesianNetwork(
        "B -> A <- E; E -> R",
        cpds={
            "B": 1e-3,
            "E": 1e-3,
            "A": NoisyOr(A, (B, E), [0.99, 0.01], leak=1e-3),
            "R": {"no": 0.0, "yes": 1.0},
        },
        name="alarm and radio",
    )


def sprinkler() -> BayesianNetwork:
    """Clouds, a lawn sprinkler, rain, and wet grass.

    Source: K. Murphy, An introduction to graphical models, 2001, figure 1; the example is Pearl's.

    Examples
    --------
    >>> sprinkler().is_dconnected("sprinkler", "rain", given=["cloudy", "wet"])
    True
    """
    return BayesianNetwork(
        "cloudy -> sprinkler -> wet; cloudy -> rain -> wet",
        cpds={
            "cloudy": 0.5,
            "sprinkler": {"no": 0.5, "yes": 0.1},
            "rain": {"no": 0.2, "yes": 0.8},
            "wet": {("no", "no"): 0.0, ("no", "yes"): 0.9, ("yes", "no"): 0.9, ("yes", "yes"): 0.99},
        },
        name="sprinkler",
    )


def fuel_gauge() -> BayesianNetwork:
    """A battery, a fuel tank, and the gauge that reads it: the head-to-head node.

    p(gauge empty) = 0.315, p(gauge empty | tank empty) = 0.81, p(tank empty | gauge empty) ≈ 0.257, and with a
    flat battery too ≈ 0.111. Source: R. Triebel, Machine learning for computer vision, "The head-to-head node".

    Examples
    --------
    >>> fuel_gauge().cpt["gauge"][{"battery": "charged", "fuel": "full"}].tolist()
    [0.2, 0.8]
    """
    return BayesianNetwork(
        "battery{flat|charged} -> gauge{empty|full} <- fuel{empty|full}",
        cpds={
            "battery": 0.9,
            "fuel": 0.9,
            "gauge": {
                ("flat", "empty"): 0.1,
                ("flat", "full"): 0.2,
                ("charged", "empty"): 0.2,
                ("charged", "full"): 0.8,
            },
        },
        name="fuel gauge",
    )


def door() -> BayesianNetwork:
    """A robot looks at a door with two sensors, then closes it.

    p(open | z1) = 2/3, p(open | z1, z2) = 5/8, and p(after = open | z1, z2) = 1/16. Source: R. Triebel, Machine
    learning for computer vision, section 1. `after` is the door after the action "close", which succeeds in 90 %
    of all cases.

    Examples
    --------
    >>> door().cpt["after"][{"door": "open"}].tolist()
    [0.9, 0.1]
    """
    return BayesianNetwork(
        "door{closed|open} -> z1; door -> z2; door -> after{closed|open}",
        cpds={
            "door": 0.5,
            "z1": {"closed": 0.3, "open": 0.6},
            "z2": {"closed": 0.6, "open": 0.5},
            "after": {"closed": 0.0, "open": 0.1},
        },
        name="door",
    )


def envelopes() -> BayesianNetwork:
    """Two envelopes: one with a red ball (worth money) and a black one, the other with two black balls.

    Drawing a black ball leaves p(envelope = 1 | black) = 1/3: switch. Source: X. Zhu, Graphical models and kernel
    methods, the opening example.

    Examples
    --------
    >>> envelopes().cpt["ball"]["1"].tolist()
    [0.5, 0.5]
    """
    return BayesianNetwork(
        "envelope{0|1} -> ball{black|red}",
        cpds={"envelope": 0.5, "ball": {"0": 0.0, "1": 0.5}},
        name="envelopes",
    )


def card_trick() -> BayesianNetwork:
    """Three cards, red-red, red-white and white-white; one is drawn and one of its faces is seen.

    p(card = WW | face = white) = 2/3. Source: P. Hennig, Probabilistic inference and learning, "A card trick".

    Examples
    --------
    >>> card_trick().cpt["face"]["RW"].tolist()
    [0.5, 0.5]
    """
    return BayesianNetwork(
        "card{RR|RW|WW} -> face{red|white}",
        cpds={"card": [1 / 3, 1 / 3, 1 / 3], "face": {"RR": 0.0, "RW": 0.5, "WW": 1.0}},
        name="card trick",
    )


def two_coins(collider: str = "C") -> BayesianNetwork:
    """Two fair coins A and B, and C: both show the same face. Pairwise independent, yet any two fix the third.

    The distribution factorizes over three graphs, one for each choice of the node that both others point to
    (`collider`). Source: P. Hennig, Probabilistic inference and learning, "The DAG for the two coins example".

    Parameters
    ----------
    collider : the variable that both others point to: "A", "B" or "C".

    Examples
    --------
    >>> two_coins().parents("C"), two_coins(collider="A").parents("A")
    (('A', 'B'), ('B', 'C'))
    """
    names = ("A", "B", "C")
    if collider not in names:
        raise ModelError(f"collider must be one of A, B, C, not {collider!r}")
    coins = {name: binary(name) for name in names}
    others = tuple(coins[name] for name in names if name != collider)
    # Whichever node is asked for, it is "yes" exactly if the two others agree.
    agree = Deterministic(coins[collider], others, lambda a, b: "yes" if a == b else "no")
    cpds = {name: agree if name == collider else 0.5 for name in names}
    return BayesianNetwork({name: [v.name for v in others] if name == collider else [] for name in names}, cpds=cpds)
