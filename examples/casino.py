"""The dishonest casino: a fair and a loaded die, changed in secret, told apart from the rolls alone.

Run with the name of a file to keep the picture: `python examples/casino.py casino.png`. It shows the probability of the
loaded die given all rolls, the truth as gray ground, and the most probable path as a bar on top.

How to read it: the curve is high where sixes come close together, not at every six; short stays of a die leave no
trace, and the path overlooks them. Learned from the rolls alone, the numbers come near the true ones, but the states
have no names: which of them is the loaded die shows in its table.
"""

from __future__ import annotations

import sys

import numpy as np

import gramgraph as gg


def main(picture: str | None = None, n_rolls: int = 3000, n_drawn: int = 300) -> dict[str, float]:
    """Decode and learn; returns the shares of rolls whose die is found."""
    casino = gg.CategoricalHMM.from_parameters(
        [0.5, 0.5], [[0.95, 0.05], [0.10, 0.90]], [[1 / 6] * 6, [0.1] * 5 + [0.5]], symbols=range(1, 7)
    )
    rolls, dice = casino.sample(n_rolls, random_state=1)
    known = float((casino.predict(rolls) == dice).mean())
    single = float((casino.decode(rolls, algorithm="posterior")[1] == dice).mean())
    values, paths = casino.decode(rolls[:60], k=3)

    learned = gg.CategoricalHMM(2, symbols=range(1, 7), n_init=5, max_iter=500, tol=1e-4, random_state=0).fit(rolls)
    loaded = int(np.argmax(learned.emissionprob_[:, 5]))
    found = float(((learned.predict(rolls) == loaded) == (dice == 1)).mean())

    print(f"most probable path, true numbers:  {known:.1%} of {n_rolls} rolls right")
    print(f"most probable die at every roll:   {single:.1%}")
    print(f"most probable path, learned:       {found:.1%}")
    print(f"p(six | loaded) = {learned.emissionprob_[loaded, 5]:.2f}, true 0.50;", end=" ")
    print(f"p(stay loaded) = {learned.transmat_[loaded, loaded]:.2f}, true 0.90")
    print("three best paths of the first 60 rolls: log p", values[:, 0].round(2), "; rolls that differ from the best:",
          [int((path != paths[0]).sum()) for path in paths])  # fmt: skip
    if picture is not None:
        ax = gg.plot.plot_casino(casino, rolls[:n_drawn], truth=dice[:n_drawn])
        ax.figure.savefig(picture, dpi=150)
    return {"known": known, "single": single, "learned": found}


if __name__ == "__main__":
    main(*sys.argv[1:2])
