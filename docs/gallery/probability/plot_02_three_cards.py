"""
Three cards
===========

A bag holds three cards: red on both faces, white on both, and one of each. You draw a card, put it on the table and
see a white face. Hennig, *Probabilistic inference and learning* ("A card trick"), asks for the color of the other
face; most people say that red and white are equally probable.

We see that the face which lies up is a clue about the card: two of the three white faces belong to the white card.
"""

# %%
# The card is drawn first, then one of its faces. The text's last line should read (1 · 1/3) / (1/2).
import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

net = gg.BayesianNetwork(
    "card{red-red|red-white|white-white} -> up{red|white}; card -> down{red|white} <- up",
    cpds={
        "card": [1 / 3, 1 / 3, 1 / 3],
        "up": {"red-red": [1, 0], "red-white": [1 / 2, 1 / 2], "white-white": [0, 1]},
        "down": lambda card, up: card.split("-")[1] if card.split("-")[0] == up else card.split("-")[0],
    },
)
seen = {"up": "white"}
answer = net.query(evidence=seen)
net.plot(answer, evidence=seen)

# %%
# Intuition counts cards that remain possible (two of them, so 1/2). Counting faces is right: draw many cards, keep
# those that show white, and look below.
frame = net.sample(20_000, random_state=0)
white = frame[frame["up"] == "white"]
share = (white["down"] == "white").cumsum().to_numpy() / np.arange(1, len(white) + 1)

fig, ax = plt.subplots(layout="constrained")
ax.semilogx(np.arange(1, len(white) + 1), share, color="#4c78a8", label="share of draws with a white back")
ax.axhline(2 / 3, color="#b03a2e", label="Bayes: 2/3")
ax.axhline(1 / 2, color="#52606d", linestyle=":", label="first guess: 1/2")
ax.set(
    xlabel="cards drawn that show white", ylabel="p(white below | white above)", title="The card trick", ylim=(0, 1.02)
)
ax.legend(loc="lower right")

# %%
# The numbers of the text
# -----------------------
assert abs(answer["card"].prob("white-white") - 2 / 3) < 1e-12
assert abs(answer["down"].prob("white") - 2 / 3) < 1e-12
assert abs(np.exp(answer.log_evidence) - 1 / 2) < 1e-12  # half of the faces are white
assert abs(share[-1] - 2 / 3) < 4 * np.sqrt(2 / 9 / len(white))  # four standard errors
