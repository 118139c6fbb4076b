"""`query`, `map` and `sample`: questions to a model."""

from __future__ import annotations

import argparse
import math
import sys
from typing import Any

from gramgraph.answers import Answer, Belief
from gramgraph.cli import common
from gramgraph.cli.common import sampling_options
from gramgraph.exceptions import GramGraphError, ImpossibleEvidenceError


def add_commands(commands: Any) -> None:
    """Add the subcommands of this module."""
    _add_query(commands)
    _add_map(commands)
    _add_sample(commands)


def _add_query(commands: Any) -> None:
    query = commands.add_parser("query", help="p(targets | evidence), for one case or for a table of cases")
    common.add_file(query)
    common.add_evidence(query)
    common.add_targets(query, joint=True)
    _add_engine(query)
    _add_sampling(query)
    query.add_argument("--svg", metavar="FILE", help="also write a picture of the network with the beliefs")
    common.add_json(query)
    _add_cases(query)
    query.set_defaults(run=_query)


def _add_map(commands: Any) -> None:
    best = commands.add_parser("map", help="the most probable assignment given evidence")
    common.add_file(best)
    common.add_evidence(best)
    common.add_targets(best)
    best.add_argument("-k", type=_positive, default=1, help="how many of the best (default: 1)")
    _add_engine(best)
    common.add_json(best)
    _add_cases(best)
    best.set_defaults(run=_map)


def _add_sample(commands: Any) -> None:
    sample = commands.add_parser("sample", help="draw cases as CSV")
    common.add_file(sample)
    common.add_evidence(sample)
    sample.add_argument("-n", type=_positive, default=10, help="how many (default: 10)")
    sample.add_argument("--seed", type=int, default=None, help="the same seed gives the same cases")
    sample.add_argument("--out", metavar="CSV", help="where the cases go (default: standard output)")
    _add_raw(sample)
    common.add_json(sample)
    sample.set_defaults(run=_sample)


def _add_engine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--engine", default="auto", help="the algorithm (default: auto)")
    parser.add_argument("--memory", type=common.parse_size, help="budget, such as 2GB (default: 60 %% of what is free)")


def _add_sampling(parser: argparse.ArgumentParser) -> None:
    drawing = parser.add_argument_group("approximate answers")
    drawing.add_argument("--budget", type=_budget, help="draws of a sampler, or a time such as 5s")
    drawing.add_argument("--error", type=float, help="the standard error that a sampler goes on for, such as 0.01")
    drawing.add_argument("--seed", type=int, help="the same seed gives the same draws")


def _budget(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _add_cases(parser: argparse.ArgumentParser) -> None:
    cases = parser.add_argument_group("many cases")
    cases.add_argument(
        "--cases",
        metavar="FILE",
        help="CSV (of query also Parquet): one row per case, one column per variable; empty = not observed",
    )
    cases.add_argument("--out", metavar="FILE", help="where the answers go (default: standard output)")
    cases.add_argument(
        "--keep", action="append", default=[], metavar="COLUMN", help="a column that is copied (an identifier)"
    )
    _add_raw(cases)
    cases.add_argument("--jobs", type=_positive, default=1, help="threads for Parquet files (default: 1)")
    cases.add_argument("--chunk", type=_positive, default=10_000, help="rows at a time (default: 10000)")


def _add_raw(parser: Any) -> None:
    parser.add_argument(
        "--raw",
        action="store_true",
        help="CSV with labels as they are; otherwise those that a spreadsheet would run as a formula (=…, @…, +…, -…) "
        "get an apostrophe in front, which --cases understands",
    )


def _positive(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive whole number")
    return value


# ------------------------------------------------------------------------------------------------- query


def _query(args: argparse.Namespace) -> int:
    _check_cases(args, single="svg")
    model, question = _question(args)
    targets = common.parse_targets(model, args.target, args.joint)
    if args.cases is not None:
        from gramgraph.cli.cases import query_cases

        return query_cases(model, args, targets=targets, **question)
    answer = model.query(targets, engine=args.engine, memory=args.memory, **sampling_options(args), **question)
    if float(answer.log_evidence) == -math.inf:
        raise _impossible(args)
    if args.svg:
        _write_picture(args.svg, model, answer, question["evidence"])
    if args.json:
        common.print_json(answer_record(answer))
    else:
        sys.stdout.write(f"{answer}\n{_trust(answer)}")
    return 0


def _trust(answer: Answer) -> str:
    """A line on how far a sampler's answer can be trusted."""
    errors = answer.details.get("standard_error")
    if errors is None or isinstance(errors, float):
        return ""
    worst = max((float(errors[key].max()) for key in answer if key in errors), default=0.0)
    r_hat = answer.details.get("max_r_hat")
    return f"largest standard error {worst:.2g}" + ("\n" if r_hat is None else f", R-hat {r_hat:.3g}\n")


def _check_cases(args: argparse.Namespace, *, single: str) -> None:
    """Options of one case and of many do not mix."""
    if args.cases is None and (args.out or args.keep):
        raise GramGraphError("--out and --keep belong to --cases; a single answer goes to standard output")
    if args.cases is not None and (args.json or getattr(args, single) not in (None, 1)):
        raise GramGraphError(f"--json and {'-' if len(single) == 1 else '--'}{single} belong to a single case")


def _question(args: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    model = common.load(args.file, format=args.format)
    evidence = common.parse_evidence(model, args.evidence)
    return model, {"evidence": evidence, "virtual_evidence": common.parse_virtual(model, args.virtual)}


def _impossible(args: argparse.Namespace) -> ImpossibleEvidenceError:
    return ImpossibleEvidenceError(f"the evidence has probability zero: {' '.join(args.evidence + args.virtual)}")


def answer_record(answer: Answer) -> dict[str, Any]:
    """An answer as plain values for JSON."""
    beliefs, joints = {}, []
    for key in answer:
        belief = answer[key]
        if isinstance(key, str) or not isinstance(belief, Belief):  # real-valued: mean and sd of every component
            beliefs[key if isinstance(key, str) else ", ".join(key)] = belief.to_dict()
        else:
            rows = belief.to_dict().items()
            joints.append({"variables": list(key), "table": [{"states": list(s), "p": p} for s, p in rows]})
    log_evidence = float(answer.log_evidence)
    record: dict[str, Any] = {
        "log_evidence": None if math.isnan(log_evidence) else log_evidence,  # samplers may not know it
        "engine": answer.engine,
        "exact": answer.exact,
        "beliefs": beliefs,
    }
    if not answer.exact:
        record["details"] = _plain(answer)
    return record | ({"joints": joints} if joints else {})


def _plain(answer: Answer) -> dict[str, Any]:
    """What an approximate answer says of itself, as far as it is plain values; errors of single variables by name."""
    plain: dict[str, Any] = {
        key: value for key, value in answer.details.items() if isinstance(value, (bool, int, float, str))
    }
    errors = answer.details.get("standard_error")
    if errors is not None and hasattr(errors, "items"):
        plain["standard_error"] = {
            key: errors[key].tolist() for key in answer if isinstance(key, str) and key in errors
        }
    return plain


def _write_picture(path: str, model: Any, answer: Answer, evidence: dict[str, Any]) -> None:
    from gramgraph._replace import write_whole
    from gramgraph.plot import network_svg

    write_whole(path, network_svg(model, answer, evidence=evidence))


# --------------------------------------------------------------------------------------------------- map


def _map(args: argparse.Namespace) -> int:
    _check_cases(args, single="k")
    model, question = _question(args)
    targets = common.parse_targets(model, args.target)
    options = {"targets": targets, "engine": args.engine, "memory": args.memory}
    if args.cases is not None:
        from gramgraph.cli.cases import map_cases

        return map_cases(model, args, **question, **options)
    found = model.map_query(**question, **options, k=None if args.k == 1 else args.k)
    best = found if isinstance(found, list) else [found]
    if not best or not best[0].log_prob > -math.inf:
        raise _impossible(args)
    if args.json:
        common.print_json(
            [
                {
                    "assignment": {k: v.tolist() if hasattr(v, "tolist") else v for k, v in b.assignment.items()},
                    "log_prob": b.log_prob,
                    "exact": b.exact,
                    "bound": b.bound,
                }
                for b in best
            ]
        )
    else:
        sys.stdout.write("\n\n".join(map(str, best)) + "\n")
    return 0


# ------------------------------------------------------------------------------------------------ sample

_DRAWS = 100_000  # rows at a time: memory does not grow with n


def _sample(args: argparse.Namespace) -> int:
    import numpy as np

    model, question = _question(args)
    rng = np.random.default_rng(args.seed)
    if args.json:
        common.print_json(model.sample(args.n, random_state=rng, **question).to_dict(orient="records"))
        return 0
    from gramgraph.cli.cells import write_csv
    from gramgraph.cli.common import output

    with output(args.out) as stream:
        for start in range(0, args.n, _DRAWS):
            frame = model.sample(min(_DRAWS, args.n - start), random_state=rng, **question)
            write_csv(frame, stream, header=start == 0, raw=args.raw)
    return 0
