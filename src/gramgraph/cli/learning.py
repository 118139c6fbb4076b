"""`learn` and `fit`: a network, or its tables, from a CSV or Parquet file."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from gramgraph._show import clean, counted
from gramgraph.cli import common
from gramgraph.exceptions import OptionError, VariableError


def add_commands(commands: Any) -> None:
    """Add the subcommands of this module."""
    learn = commands.add_parser("learn", help="learn a network, graph and tables, from a table of data")
    learn.add_argument("data", metavar="DATA", help="a CSV or Parquet file (also a folder of Parquet files)")
    learn.add_argument("--method", default="hill_climb", metavar="NAME",
        help="hill_climb, tabu, ges, order, exact, mmhc, pc, chow_liu, tan, naive_bayes, structural_em")  # fmt: skip
    learn.add_argument("--score", default="bic", metavar="NAME", help="bic, aic, bdeu, k2, fnml, log_likelihood, bge")
    learn.add_argument(
        "--require", action="append", default=[], metavar="A,B", help="an edge A -> B that must be there"
    )
    learn.add_argument("--forbid", action="append", default=[], metavar="A,B", help="an edge A -> B that must not")
    learn.add_argument(
        "--tiers", metavar="A,B;C,D", help="groups in order of time: no edge from a later to an earlier one"
    )
    learn.add_argument("--keep", metavar="A,B", help="columns of dates, identifiers or counters to learn from as well")
    learn.add_argument("--max-parents", type=int, metavar="K", help="largest number of parents")
    learn.add_argument("--max-steps", type=int, metavar="N", help="stop a search after so many steps")
    learn.add_argument("--missing", default="rows", metavar="HOW", help="rows (leave them out) or families")
    learn.add_argument("--target", metavar="NAME", help="the class, for tan, naive_bayes and --cut mdlp")
    learn.add_argument("--test", metavar="NAME", help="test of pc and mmhc")
    learn.add_argument("--alpha", type=float, default=0.05, metavar="LEVEL", help="level of the tests")
    learn.add_argument("--checkpoint", metavar="FILE", help="note how far the work is, and go on from there next time")
    learn.add_argument("--bootstrap", type=int, metavar="N", help="learn from N samples of the rows and average")
    learn.add_argument("--threshold", type=float, default=0.5, metavar="SHARE",
        help="edges of the average: found in at least this share of the samples")  # fmt: skip
    learn.add_argument("--strengths", metavar="FILE", help="CSV file for the shares of --bootstrap")
    _add_common(learn)
    learn.set_defaults(run=_learn)

    fit = commands.add_parser("fit", help="learn the tables of a network from a table of data")
    common.add_file(fit)
    fit.add_argument("data", metavar="DATA", help="a CSV or Parquet file; variables without a column are hidden")
    fit.add_argument("--hidden", metavar="A,B", help="variables that have no column")
    fit.add_argument("--max-iter", type=int, default=200, metavar="N", help="steps of EM, where cells are missing")
    fit.add_argument("--restarts", type=int, default=1, metavar="N", help="EM from so many starts; the best stays")
    fit.set_defaults(target=None)
    _add_common(fit)
    fit.set_defaults(run=_fit)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", help="file for the network; its suffix says the format (default: standard output)")
    parser.add_argument("--to", metavar="FORMAT", help="format where the suffix of OUT does not say it")
    parser.add_argument("--prior", help="bdeu, k2, or a number that is added to every count (default: none)")
    parser.add_argument("--ess", type=float, default=10.0, help="equivalent sample size of bdeu")
    parser.add_argument("--weights", metavar="COLUMN", help="column that says how often each row counts")
    parser.add_argument("--bins", type=int, help="cut real columns into (at most) that many intervals")
    parser.add_argument("--cut", default="quantile", help="how: quantile (equal counts), uniform, mdlp (by --target)")
    parser.add_argument("--seed", type=int, default=0, help="of random starts and samples")
    parser.add_argument("--dask", metavar="ADDRESS", help="a Dask scheduler whose workers do the work")


def _read(args: argparse.Namespace) -> Any:
    """The path, where labels can be counted as they pass; else the frame, its real columns as numbers or intervals."""
    import pandas as pd

    from gramgraph.data import Discretizer, column_kinds
    from gramgraph.data.stream import read_labels

    kinds = column_kinds(args.data)["kind"]
    if args.weights is not None and args.weights not in kinds.index:
        raise VariableError.unknown(args.weights, list(kinds.index))
    real = [name for name in kinds.index[kinds == "real"] if name != args.weights]
    if not real and args.weights is None:
        return args.data
    frame = read_labels(args.data)
    for name in [*real, *([args.weights] if args.weights else [])]:
        try:
            frame[name] = pd.to_numeric(frame[name])
        except (TypeError, ValueError):
            raise VariableError(f"column {name!r} does not hold numbers") from None
    if not args.bins or not real:
        return frame
    target = args.target if args.cut == "mdlp" else None
    return Discretizer(args.bins, method=args.cut, columns=real, target=target).fit_transform(frame)


def _refuse_reals(args: argparse.Namespace, data: Any) -> None:
    """An error, before the work, for a file that cannot hold what will be learned."""
    from gramgraph.data import describe
    from gramgraph.io.registry import find_format

    form = find_format(args.out or "-.bif", args.to)[0]
    if isinstance(data, str) or form == "json":
        return
    found = describe(data.drop(columns=args.weights) if args.weights else data).set_index("column")
    real = found.index[(found["taken as"] == "real") | found.index.isin(_names(args.keep))]
    if len(real):
        name = real[0]
        raise OptionError(
            f"column {name!r} is real-valued, and {form} files hold tables only: write .json, or cut it with --bins 5"
        )


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


def _names(text: str | None) -> list[str]:
    return [] if text is None else [name.strip() for name in text.split(",")]


def _tiers(text: str | None) -> list[list[str]] | None:
    return None if text is None else [[name.strip() for name in part.split(",")] for part in text.split(";")]


def _options(args: argparse.Namespace) -> dict[str, Any]:
    """What `learn_structure` is told."""
    from gramgraph.learn.methods import method_name

    method = method_name(args.method)
    options = {
        "method": method,
        "score": args.score,
        "required": _edges(args.require),
        "forbidden": _edges(args.forbid),
        "tiers": _tiers(args.tiers),
        "max_parents": args.max_parents,
        "max_steps": args.max_steps,
        "missing": args.missing,
        "target": args.target if method in ("tan", "naive_bayes") else None,
        "alpha": args.alpha,
        "prior": _prior(args.prior),
        "equivalent_sample_size": args.ess,
        "weights": args.weights,
        "keep": _names(args.keep),
        "random_state": args.seed,
    }
    return options if args.test is None else {**options, "test": args.test}


def _learn(args: argparse.Namespace) -> int:
    import gramgraph as gg

    options = _options(args)
    data = _read(args)
    _refuse_reals(args, data)
    where = {"client": args.dask, "checkpoint": args.checkpoint, "progress": True}
    if args.bootstrap is not None:
        return _bootstrap(args, data, {**options, **where})
    net = gg.learn_structure(data, **options, **where)
    told = f"{counted(variable=len(net), edge=len(net.edges))}, {net.report.score_name} {net.report.score:.6f}\n"
    _write(args, net, told + ("stopped early: the best so far\n" if net.report.interrupted else ""), "bif")
    return 0


def _bootstrap(args: argparse.Namespace, data: Any, options: dict[str, Any]) -> int:
    """Learn from samples of the rows, and average."""
    from gramgraph.cli.cells import write_csv
    from gramgraph.cli.common import output
    from gramgraph.learn import bootstrap_edges

    prior = options.pop("prior")
    found = bootstrap_edges(data, args.bootstrap, **options)
    if args.strengths:
        with output(args.strengths) as stream:
            write_csv(found.to_frame(), stream)
    net = found.average_network(args.threshold, prior=prior)
    told = (
        f"{counted(variable=len(net), edge=len(net.edges))} in {args.threshold:g} or more of {found.n_graphs} samples\n"
    )
    _write(args, net, told, "bif")
    return 0


def _fit(args: argparse.Namespace) -> int:
    import gramgraph as gg
    from gramgraph.io.registry import find_format

    model = common.load(args.file, format=args.format)
    if not isinstance(model, gg.BayesianNetwork):
        raise OptionError(f"{args.file} is a {type(model).__name__}; fit learns the tables of a Bayesian network")
    fitted = model.fit(
        _read(args), hidden=_names(args.hidden),
        prior=_prior(args.prior), equivalent_sample_size=args.ess, weights=args.weights,
        max_iter=args.max_iter, restarts=args.restarts, random_state=args.seed, client=args.dask, progress=True,
    )  # fmt: skip
    told = ""
    report = fitted.fit_report
    if report is not None:
        end = "converged" if report.converged else "not converged"
        told = f"EM: {counted(step=report.n_iter)}, {end}, log-likelihood {report.log_likelihood:.6f}\n"
    form = "bif" if args.file.startswith("dataset:") else find_format(args.file, args.format)[0]
    _write(args, fitted, f"{told}tables of {counted(variable=len(fitted))}\n", form)
    return 0


def _write(args: argparse.Namespace, net: Any, told: str, form: str) -> None:
    """The network to its file and a few words to the user, or the network itself to standard output."""
    import gramgraph as gg
    from gramgraph.io.registry import find_format, load_format

    if args.out is not None:
        gg.write(net, args.out, format=args.to)
        sys.stdout.write(f"{told}written to {clean(args.out)}\n")
        return
    text = load_format(find_format("-", args.to or form)[0]).dumps(net)
    sys.stdout.write(text.decode("utf-8"))
    sys.stderr.write(told)
