"""Hidden Markov models, unrolled."""

from __future__ import annotations

from gramgraph.models.bayesian_network import BayesianNetwork
from gramgraph.models.builders import hidden_markov_chain


def hmm_small(length: int = 2) -> BayesianNetwork:
    """Two hidden states and three colors: z1 -> z2, z1 -> x1, z2 -> x2.

    With x1 = R and x2 = G observed, the sum-product messages are 1/4, 1/8 (from f1 to z1), 1/32, 1/8 (from f2 to
    z2) and 7/16, 3/8 (from f2 to z1), and the marginals of z1 and z2 are (0.7, 0.3) and (0.2, 0.8). Source:
    X. Zhu, Graphical models and kernel methods, "A simple HMM"; the transition probabilities, which the text
    shows in a figure, follow from its messages.

    Parameters
    ----------
    length : how many steps.

    Examples
    --------
    >>> hmm_small().cpt["x1"]["1"].tolist()
    [0.5, 0.25, 0.25]
    """
    return hidden_markov_chain(
        length,
        ("1", "2"),
        ("R", "G", "B"),
        initial=[1 / 2, 1 / 2],
        transition=[[1 / 4, 3 / 4], [1 / 2, 1 / 2]],
        emission=[[1 / 2, 1 / 4, 1 / 4], [1 / 4, 1 / 2, 1 / 4]],
        name="small HMM",
    )


def casino(n_rolls: int = 10) -> BayesianNetwork:
    """The occasionally dishonest casino: a fair die that is at times swapped for a loaded one.

    `die1` … `dieN` are hidden (fair, loaded), `roll1` … `rollN` show the faces 1 to 6. The fair die is kept with
    probability 0.95, the loaded one, which shows a six every second time, with 0.9; either may be first. Source:
    R. Durbin, S. Eddy, A. Krogh and G. Mitchison, Biological sequence analysis, 1998, section 3.2; the example is
    the one of R. Triebel, Machine learning for computer vision, section 5.

    Parameters
    ----------
    n_rolls : how many rolls.

    Examples
    --------
    >>> net = casino(3)
    >>> net.variables, net.cpt["roll1"]["loaded"].tolist()
    (('die1', 'die2', 'die3', 'roll1', 'roll2', 'roll3'), [0.1, 0.1, 0.1, 0.1, 0.1, 0.5])
    """
    return hidden_markov_chain(
        n_rolls,
        ("fair", "loaded"),
        ("1", "2", "3", "4", "5", "6"),
        initial=[0.5, 0.5],
        transition=[[0.95, 0.05], [0.10, 0.90]],
        emission=[[1 / 6] * 6, [0.1] * 5 + [0.5]],
        prefixes=("die", "roll"),
        name="dishonest casino",
    )
