"""
Roulette and rooms
==================

Mass is spread over elementary events; every event is a set of them, and its probability a sum. Hennig, *Probabilistic
inference and learning* ("Kolmogorov's axioms"), takes the roulette; Triebel, *Machine learning for computer vision*
(section 1), a robot that is in one of four rooms with probabilities 0.7, 0.2, 0.08 and 0.02, and defines expectation
and variance of a discrete variable.

We compute events of the wheel, what bets are worth, and how sure the robot is.
"""

# %%
# The pocket is elementary; colors and parities are functions of it.
import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

REDS = {1, 3, 5, 7, 9, 12, 14, 16, 18, 19, 21, 23, 25, 27, 30, 32, 34, 36}
wheel = gg.BayesianNetwork(
    "pocket[37] -> color{green|red|black}; pocket -> parity{zero|even|odd}",
    cpds={
        "pocket": np.full(37, 1 / 37),
        "color": lambda pocket: "green" if pocket == "0" else "red" if int(pocket) in REDS else "black",
        "parity": lambda pocket: "zero" if pocket == "0" else "odd" if int(pocket) % 2 else "even",
    },
)
color, pair = wheel.query("color")["color"], wheel.query(("color", "parity"))[("color", "parity")]
print(pair)

# %%
# What a bet of 1 returns is a function of the color or of the pocket. All bets lose 1/37 on average; they differ in
# variance. For a variable with numbers as states ``mean`` and ``var`` do the same.
bets = {
    "red": (color, {"red": 1, "black": -1, "green": -1}),
    "seventeen": (wheel.query("pocket")["pocket"], {str(k): 35 if k == 17 else -1 for k in range(37)}),
}
for name, (belief, gain) in bets.items():
    mean = belief.expect(gain)
    variance = belief.expect({state: (value - mean) ** 2 for state, value in gain.items()})
    print(f"on {name}: mean {mean:.4f}, standard deviation {np.sqrt(variance):.2f}")

# %%
# Forty evenings with 200 spins each, a coin on red or on seventeen every time.
spins = wheel.sample(200 * 40, random_state=0)
fig, axes = plt.subplots(1, 2, sharey=True, layout="constrained")
for ax, column, win, title in ((axes[0], "color", "red", "on red"), (axes[1], "pocket", "17", "on seventeen")):
    gain = np.where(spins[column] == win, 1 if win == "red" else 35, -1).reshape(40, 200).cumsum(axis=1)
    ax.plot(gain.T, color="#4c78a8", alpha=0.25, linewidth=0.8)
    ax.plot(-np.arange(1, 201) / 37, color="#b03a2e", label="expected")
    ax.set(xlabel="spins", title=title)
    ax.legend(loc="upper left")
axes[0].set_ylabel("won or lost")

# %%
# The robot's room. Its entropy is far below log 4, that of not knowing at all; a table of distances to the charger
# turns the belief into an expected way.
rooms = ("kitchen", "office", "bathroom", "living room")
room = gg.BayesianNetwork("Room", states={"Room": rooms}, cpds={"Room": [0.7, 0.2, 0.08, 0.02]}).query("Room")["Room"]
way = {"kitchen": 2.0, "office": 6.0, "bathroom": 9.0, "living room": 12.0}
print(room)
print(f"entropy {room.entropy(base=2):.2f} of 2 bits, expected way {room.expect(way):.2f} m")

# %%
# The numbers of the text
# -----------------------
assert abs(color.prob("red") - 18 / 37) < 1e-12
assert abs(pair.prob("red", "odd") - 10 / 37) < 1e-12  # not (18/37)²: color and parity are not independent
for belief, gain in bets.values():
    mean = belief.expect(gain)
    second = belief.expect({state: value**2 for state, value in gain.items()})
    variance = belief.expect({state: (value - mean) ** 2 for state, value in gain.items()})
    assert abs(mean + 1 / 37) < 1e-12 and abs(variance - (second - mean**2)) < 1e-10
assert abs(sum(room.probabilities) - 1) < 1e-12 and room.mode() == "kitchen"
