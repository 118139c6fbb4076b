"""
Monty Hall
==========

Behind one of three doors stands a car. You choose a door; the host, who knows, opens another one, and there is a
goat. Hennig, *Probabilistic inference and learning* ("Revisiting the card trick"), leaves the problem as an exercise:
do you stay or change?

The arrow from the prize to the host's door carries the information. A host who opens doors blindly and happens to
show a goat tells nothing: the same observation, another model, another answer.
"""

# %%
# The host's table: he opens neither your door nor the one with the car, and tosses a coin where two are left.
import matplotlib.pyplot as plt

import gramgraph as gg

doors = ("1", "2", "3")


def knowing(prize, choice):
    allowed = [door not in (prize, choice) for door in doors]
    return [a / sum(allowed) for a in allowed]


def blind(prize, choice):
    return [(door != choice) / 2 for door in doors]


def game(host):
    table = {(prize, choice): host(prize, choice) for prize in doors for choice in doors}
    return gg.BayesianNetwork(
        "prize{1|2|3} -> opened{1|2|3} <- choice{1|2|3}",
        cpds={"prize": [1 / 3] * 3, "choice": [1 / 3] * 3, "opened": table},
    )


net = game(knowing)
seen = {"choice": "1", "opened": "3"}
net.plot(net.query(evidence=seen), evidence=seen)

# %%
# The same question to both hosts. The blind one may open the door with the car; here he did not, and that has to be
# part of the evidence.
smart = net.query("prize", evidence=seen)["prize"]
lucky = game(blind).query("prize", evidence={**seen, "prize": gg.Not("3")})["prize"]
fig, ax = plt.subplots(layout="constrained")
for shift, belief, label in ((-0.2, smart, "host knows"), (0.2, lucky, "host opens blindly")):
    bars = ax.bar([i + shift for i in range(3)], belief.probabilities, width=0.38, label=label)
    ax.bar_label(bars, fmt="%.2f", padding=2)
ax.set_xticks(range(3), ["1 (yours)", "2", "3 (open)"])
ax.set(xlabel="door", ylabel="p(car | choice 1, goat at 3)", title="Change, if the host knows", ylim=(0, 0.8))
ax.legend(loc="upper right")

# %%
# You choose, he opens: does it pay to change in the long run?
frame = net.sample(30_000, random_state=1)
stay = (frame["prize"] == frame["choice"]).mean()
print(f"staying wins {stay:.3f} of the games, changing {1 - stay:.3f}")

# %%
# The numbers of the text
# -----------------------
assert abs(smart.prob("2") - 2 / 3) < 1e-12 and abs(smart.prob("1") - 1 / 3) < 1e-12
assert abs(lucky.prob("2") - 1 / 2) < 1e-12
assert net.is_dseparated("prize", "choice") and net.is_dconnected("prize", "choice", given="opened")
assert abs(stay - 1 / 3) < 4 * (2 / 9 / 30_000) ** 0.5
