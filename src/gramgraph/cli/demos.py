"""`demo`: small tours. Each prints what it finds; with --out it leaves pictures, and --open shows them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gramgraph.exceptions import GramGraphError, OptionError, did_you_mean

Picture = tuple[str, Any]  # name of the file; text of an SVG or HTML file, or a matplotlib figure


def add_commands(commands: Any) -> None:
    """Add the subcommand of this module."""
    demo = commands.add_parser("demo", help="small tours: a network, a kernel arrow, a sequence, a process")
    demo.add_argument("name", nargs="?", help=f"one of {', '.join(TOURS)}, or all (default: the list)")
    demo.add_argument("--out", type=Path, metavar="FOLDER", help="leave pictures there")
    demo.add_argument("--open", action="store_true", help="show the pictures in the browser")
    demo.set_defaults(run=_demo)


def _demo(args: argparse.Namespace) -> int:
    if args.name is None:
        width = max(map(len, TOURS))
        for name, tour in TOURS.items():
            print(f"gramgraph demo {name:{width}s}  {(tour.__doc__ or '').strip()}")
        print(f"gramgraph demo {'all':{width}s}  all of them, but for the explorer.")
        return 0
    if args.name not in (*TOURS, "all"):
        raise OptionError(f"no tour {args.name!r}. There are: {', '.join(TOURS)}, all.{did_you_mean(args.name, TOURS)}")
    names = [name for name in TOURS if name != "explorer"] if args.name == "all" else [args.name]
    folder = args.out or (Path("demo") if args.open or args.name == "explorer" else None)
    for name in names:
        print(f"--- {name}: {(TOURS[name].__doc__ or '').strip()}\n")
        for picture in TOURS[name](folder is not None):
            _keep(picture, folder or Path("demo"), args.open)
        print()
        sys.stdout.flush()
    return 0


def _keep(picture: Picture, folder: Path, show: bool) -> None:
    name, content = picture
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    if isinstance(content, str):
        path.write_text(content, encoding="utf-8")
    else:
        content.savefig(path, dpi=120)
    print(f"picture: {path}")
    if show:
        import webbrowser

        webbrowser.open(path.resolve().as_uri())


def _figure(draw: Callable[[], Any]) -> Any:
    """A figure, or None where matplotlib (an extra) is missing."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        return draw().figure
    except (ImportError, GramGraphError) as error:
        print(error)
        return None


def network(pictures: bool) -> list[Picture]:
    """A question to a discrete network: what explains an abnormal X-ray?"""
    import gramgraph as gg

    net, seen = gg.datasets.asia(), {"asia": "yes", "xray": "yes"}
    print("A patient was in Asia lately, and the X-ray is abnormal.\n")
    answer = net.query(evidence=seen)
    print(answer)
    told = net.map_query(evidence=seen).assignment
    print("\nMost probable story:", ", ".join(f"{name}={state}" for name, state in told.items() if name not in seen))
    return [("network.svg", gg.plot.network_svg(net, answer, evidence=seen))] if pictures else []


def kernel(pictures: bool) -> list[Picture]:
    """A mixed network with a kernel on an arrow: wind, site and power of a turbine."""
    import numpy as np

    import gramgraph as gg

    rng = np.random.default_rng(0)
    wind = rng.vonmises(1.0, 1.0, size=400)
    site = np.where(rng.random(400) < 0.4, "wood", "open")
    power = np.cos(wind - 0.5) ** 2 * np.where(site == "open", 2.0, 1.0) + 0.1 * rng.normal(size=400)
    net = gg.BayesianNetwork(
        "site{open|wood} -> power{real} <- wind{circle}",
        cpds={"wind": gg.KernelConditional(), "power": gg.KernelConditional()},
    ).fit({"site": site, "wind": wind, "power": power})
    print(
        "Learned from 400 rows; a table, a density of angles, and a kernel regression with its noise. Power is 1.8:\n"
    )
    answer = net.query(["site", "wind"], evidence={"power": 1.8})
    print(answer)
    print(f"\nengine: {answer.engine}; quality: {answer.quality} ({answer.reason})")
    belief = net.query("power", {"wind": 0.5})["power"]
    low, high = belief.interval(0.9)
    print(f"power when the wind blows from 0.5 rad: {belief.mean():.2f}, 90 % within {low:.2f} and {high:.2f}")
    figure = _figure(belief.plot) if pictures else None
    return [("kernel.png", figure)] if figure is not None else []


def sequence(pictures: bool) -> list[Picture]:
    """A sequence: the dishonest casino, and which die was in use."""
    import gramgraph as gg

    casino = gg.CategoricalHMM.from_parameters(
        [0.5, 0.5], [[0.95, 0.05], [0.10, 0.90]], [[1 / 6] * 6, [0.1] * 5 + [0.5]], symbols=range(1, 7)
    )
    rolls, dice = casino.sample(120, random_state=3)
    path = casino.predict(rolls)
    print("rolls ", "".join(str(int(r)) for r in rolls.ravel()))
    print("die   ", "".join("FL"[int(d)] for d in dice))
    print("found ", "".join("FL"[int(d)] for d in path))
    print(f"\n{(path == dice).mean():.0%} of the rolls right; log p(rolls) = {casino.score(rolls):.1f}")
    figure = _figure(lambda: gg.plot.plot_casino(casino, rolls, truth=dice)) if pictures else None
    return [("sequence.png", figure)] if figure is not None else []


def process(pictures: bool) -> list[Picture]:
    """A process: trend and season of a noisy series, by the evidence."""
    import numpy as np

    import gramgraph as gg
    from gramgraph.kernels import RBF, Periodic, White

    t = np.linspace(0.0, 6.0, 90)[:, None]
    y = 0.3 * t[:, 0] ** 1.5 + np.sin(2 * np.pi * t[:, 0]) + 0.2 * np.random.default_rng(0).normal(size=90)
    kernel = RBF(2.0) + Periodic(1.0, 1.0) + White(0.1)
    model = gg.GaussianProcessRegressor(kernel, random_state=0).fit(t, y)
    mean, sd = model.predict([[6.25]], return_std=True)
    print(f"learned: {model.kernel_}\nlog evidence {model.log_marginal_likelihood_value_:.1f}")
    print(f"at 6.25: {mean[0]:.2f} ± {2 * sd[0]:.2f} (true {0.3 * 6.25**1.5 + 1:.2f})")
    figure = _figure(lambda: gg.plot.plot_process(model, span=(0.0, 7.0), draws=0)) if pictures else None
    return [("process.png", figure)] if figure is not None else []


def explorer(pictures: bool) -> list[Picture]:
    """The explorer as one file: click a state, watch the beliefs."""
    import tempfile

    import gramgraph as gg

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "asia.html"
        gg.datasets.asia().explore(static=str(file))
        text = file.read_text(encoding="utf-8")
    print("One page that answers without a server; `gramgraph explore FILE` serves larger models.")
    return [("explorer.html", text)]


#: Name → tour; its first line is what the list shows.
TOURS: dict[str, Callable[[bool], list[Picture]]] = {
    "network": network,
    "kernel": kernel,
    "sequence": sequence,
    "process": process,
    "explorer": explorer,
}
