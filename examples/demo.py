"""A question to a shipped network: the table on the terminal, the picture in demo/."""

from __future__ import annotations

from pathlib import Path

import gramgraph as gg
from gramgraph.plot import network_svg

EVIDENCE = {"asia": "yes", "xray": "yes"}
FOLDER = Path("demo")


def main() -> None:
    net = gg.datasets.asia()
    print("A patient was in Asia lately, and the X-ray is abnormal. What is it?\n")
    before = net.query(["tub", "lung", "bronc"])
    after = net.query(evidence=EVIDENCE)
    for name in before:
        print(f"  p({name:5s} = yes)  before {before[name].prob('yes'):.3f}  now {after[name].prob('yes'):.3f}")
    best = net.map_query(evidence=EVIDENCE)
    told = ", ".join(f"{name}={state}" for name, state in best.assignment.items() if name not in EVIDENCE)
    print(f"\nAll beliefs, given {', '.join(f'{k}={v}' for k, v in EVIDENCE.items())}:\n\n{after}\n")
    print(f"Most probable story: {told}\n")
    print(f"What it costs:\n{gg.plan(net, given=list(EVIDENCE))}\n")

    FOLDER.mkdir(exist_ok=True)
    picture = FOLDER / "asia.svg"
    picture.write_text(network_svg(net, after, evidence=EVIDENCE), encoding="utf-8")
    print(f"The network with its beliefs: {picture}")
    try:
        figure = after.plot().figure
    except gg.GramGraphError as error:  # matplotlib is an extra
        print(error)
    else:
        figure.savefig(FOLDER / "beliefs.png", dpi=120)
        print(f"The beliefs as bars:          {FOLDER / 'beliefs.png'}")


if __name__ == "__main__":
    main()
