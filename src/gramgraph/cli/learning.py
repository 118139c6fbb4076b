"""`learn` and `fit`: a network, or its tables, from a CSV or Parquet file."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from gramgraph._show import clean
from gramgraph.cli import common
from gramgraph.exceptions import OptionError

__all__ = ["add_commands"]


def add_commands(commands: Any) -> None:
    """Add the subcommands of this module."""
    learn = commands.add_parser("learn", help="learn a network, graph and tables, from a table of data")
    learn.add_argument("data", metavar="DATA", help="a CSV or Parquet file of discrete columns")
    learn.add_argument("--method", default="hill_climb", help="hill_climb, tabu, exact, pc, chow_liu, tan, naive_bayes")
    learn.add_argument("--score", default="bic", help="bic, aic, bdeu, k2, fnml, log_likelihood")
    learn.add_argument(
        "--require", action="append", default=[], metavar="A,B", help="an edge A -> B that must be there"
    )
    learn.add_argument("--forbid", action="append", default=[], metavar="A,B", help="an edge A -> B that must not")
    learn.add_argument("--max-parents", type=int, help="largest number of parents")
    learn.add_argument("--target", help="the class, for tan and naive_bayes")
    _add_common(learn)
    learn.set_defaults(run=_learn)

    fit = commands.add_parser("fit", help="learn the tables of a network from a table of data")
    common.add_file(fit)
    fit.add_argument("data", metavar="DATA", help="a CSV or Parquet file; variables without a column are hidden")
    fit.add_argument("--max-iter", type=int, default=200, help="steps of EM, where cells are missing")
    _add_common(fit)
    fit.set_defaults(run=_fit)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", required=True, help="file for the network; its suffix says the format")
    parser.add_argument("--to", metavar="FORMAT", help="format of OUT where its suffix does not say it")
    parser.add_argument("--prior", help="bdeu, k2, or a number that is added to every count (default: none)")
    parser.add_argument("--ess", type=float, default=10.0, help="equivalent sample size of bdeu")
    parser.add_argument("--bins", type=int, help="cut real columns into that many intervals of equal counts")


def _read(args: argparse.Namespace) -> Any:
    """The data, columns of fractions as numbers; with --bins these become intervals."""
    import pandas as pd

    from gramgraph.data import Discretizer
    from gramgraph.data.stream import read_labels

    frame = read_labels(args.data)
    numbers = {name: pd.to_numeric(frame[name], errors="coerce") for name in frame.columns}
    real = [name for name, x in numbers.items() if x.isna().equals(frame[name].isna()) and (x.dropna() % 1 != 0).any()]
    frame = frame.assign(**{name: numbers[name] for name in real})
    return Discretizer(args.bins, columns=real).fit_transform(frame) if args.bins else frame


def _prior(text: str | None) -> Any:
    try:
        return float(text) if text is not None else None
    except ValueError:
        return text


def _edges(texts: list[str]) -> list[tuple[str, str]]:
    found = []
    for text in texts:
        ends = [part.strip() for part in text.split(",")]
        if len(ends) != 2:
            raise OptionError(f"an edge is written PARENT,CHILD, not {text!r}")
        found.append((ends[0], ends[1]))
    return found


def _learn(args: argparse.Namespace) -> int:
    import gramgraph as gg

    net = gg.learn_structure(
        _read(args),
        method=args.method,
        score=args.score,
        required=_edges(args.require),
        forbidden=_edges(args.forbid),
        max_parents=args.max_parents,
        prior=_prior(args.prior),
        equivalent_sample_size=args.ess,
        target=args.target,
        progress=True,
    )
    gg.write(net, args.out, format=args.to)
    sys.stdout.write(f"{len(net)} variables, {len(net.edges)} edges, {net.report.score_name} {net.report.score:.6f}\n")
    sys.stdout.write(f"written to {clean(args.out)}\n")
    return 0


def _fit(args: argparse.Namespace) -> int:
    import gramgraph as gg

    model = common.load(args.file, format=args.format)
    if not isinstance(model, gg.BayesianNetwork):
        raise OptionError(f"{args.file} is a {type(model).__name__}; fit learns the tables of a Bayesian network")
    fitted = model.fit(
        _read(args), prior=_prior(args.prior), equivalent_sample_size=args.ess, max_iter=args.max_iter, progress=True
    )
    gg.write(fitted, args.out, format=args.to)
    report = fitted.fit_report
    if report is not None:
        end = "converged" if report.converged else "not converged"
        sys.stdout.write(f"EM: {report.n_iter} steps, {end}, log-likelihood {report.log_likelihood:.6f}\n")
    sys.stdout.write(f"tables of {len(fitted)} variables written to {clean(args.out)}\n")
    return 0
