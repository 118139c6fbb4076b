"""`query`, `map` and `sample`: questions to a model."""

from __future__ import annotations

import argparse
import math
import sys
from typing import Any

from gramgraph.answers import Answer
from gramgraph.cli import common
from gramgraph.exceptions import GramGraphError, ImpossibleEvidenceError

__all__ = ["add_commands"]


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
    query.add_argument("--svg", metavar="FILE", help="also write a picture of the network with the beliefs")
    common.add_json(query)
    cases = query.add_argument_group("many cases")
    cases.add_argument("--cases", metavar="CSV", help="one row a case, one column a variable; empty = not observed")
    cases.add_argument("--out", metavar="CSV", help="where the posteriors go (default: standard output)")
    cases.add_argument(
        "--keep", action="append", default=[], metavar="COLUMN", help="a column that is copied (an identifier)"
    )
    cases.add_argument("--chunk", type=_positive, default=10_000, help="rows at a time (default: 10000)")
    query.set_defaults(run=_query)


def _add_map(commands: Any) -> None:
    best = commands.add_parser("map", help="the most probable assignment given evidence")
    common.add_file(best)
    common.add_evidence(best)
    common.add_targets(best)
    best.add_argument("-k", type=_positive, default=1, help="how many of the best (default: 1)")
    _add_engine(best)
    common.add_json(best)
    best.set_defaults(run=_map)


def _add_sample(commands: Any) -> None:
    sample = commands.add_parser("sample", help="draw cases as CSV")
    common.add_file(sample)
    common.add_evidence(sample)
    sample.add_argument("-n", type=_positive, default=10, help="how many (default: 10)")
    sample.add_argument("--seed", type=int, default=None, help="the same seed gives the same cases")
    sample.add_argument("--out", metavar="CSV", help="where the cases go (default: standard output)")
    common.add_json(sample)
    sample.set_defaults(run=_sample)


def _add_engine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--engine", default="auto", help="the algorithm (default: auto)")
    parser.add_argument("--memory", type=common.parse_size, help="budget, such as 2GB (default: 60 %% of what is free)")


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
    if args.cases is None and (args.out or args.keep):
        raise GramGraphError("--out and --keep belong to --cases; a single answer goes to standard output")
    if args.cases is not None and (args.json or args.svg):
        raise GramGraphError("--json and --svg belong to a single case; --cases writes CSV")
    model = common.load(args.file, format=args.format)
    evidence = common.parse_evidence(model, args.evidence)
    targets = common.parse_targets(model, args.target, args.joint)
    virtual = common.parse_virtual(model, args.virtual)
    if args.cases is not None:
        from gramgraph.cli.cases import answer_cases

        return answer_cases(model, args, targets=targets, evidence=evidence, virtual=virtual)
    answer = model.query(targets, evidence=evidence, virtual_evidence=virtual, engine=args.engine, memory=args.memory)
    if not float(answer.log_evidence) > -math.inf:
        raise ImpossibleEvidenceError(f"the evidence has probability zero: {' '.join(args.evidence + args.virtual)}")
    if args.svg:
        _write_picture(args.svg, model, answer, evidence)
    if args.json:
        common.print_json(answer_record(answer))
    else:
        sys.stdout.write(f"{answer}\n")
    return 0


def answer_record(answer: Answer) -> dict[str, Any]:
    """An answer as plain values for JSON."""
    beliefs, joints = {}, []
    for key in answer:
        belief = answer[key]
        if isinstance(key, str):
            beliefs[key] = belief.to_dict()
        else:
            rows = belief.to_dict().items()
            joints.append({"variables": list(key), "table": [{"states": list(s), "p": p} for s, p in rows]})
    record = {
        "log_evidence": float(answer.log_evidence),
        "engine": answer.engine,
        "exact": answer.exact,
        "beliefs": beliefs,
    }
    return record | ({"joints": joints} if joints else {})


def _write_picture(path: str, model: Any, answer: Answer, evidence: dict[str, Any]) -> None:
    from gramgraph.plot import network_svg

    with open(path, "w", encoding="utf-8") as stream:
        stream.write(network_svg(model, answer, evidence=evidence))


# --------------------------------------------------------------------------------------------------- map


def _map(args: argparse.Namespace) -> int:
    model = common.load(args.file, format=args.format)
    evidence = common.parse_evidence(model, args.evidence)
    targets = common.parse_targets(model, args.target)
    virtual = common.parse_virtual(model, args.virtual)
    options: dict[str, Any] = {"engine": args.engine, "memory": args.memory}
    if virtual:
        options["virtual_evidence"] = virtual
    if targets is not None:
        options["targets"] = targets
    if args.k > 1:
        options["k"] = args.k
    found = model.map_query(evidence=evidence, **options)
    best = list(found) if isinstance(found, (list, tuple)) else [found]
    if not best or not best[0].log_prob > -math.inf:
        raise ImpossibleEvidenceError(f"the evidence has probability zero: {' '.join(args.evidence + args.virtual)}")
    if args.json:
        common.print_json(
            [{"assignment": b.assignment, "log_prob": b.log_prob, "exact": b.exact, "bound": b.bound} for b in best]
        )
    else:
        sys.stdout.write("\n\n".join(map(str, best)) + "\n")
    return 0


# ------------------------------------------------------------------------------------------------ sample

_DRAWS = 100_000  # rows at a time: memory does not grow with n


def _sample(args: argparse.Namespace) -> int:
    import numpy as np

    model = common.load(args.file, format=args.format)
    if args.virtual:
        raise GramGraphError("sample takes --evidence only")
    evidence = common.parse_evidence(model, args.evidence)
    rng = np.random.default_rng(args.seed)
    if args.json:
        frame = model.sample(args.n, evidence=evidence or None, random_state=rng)
        common.print_json(frame.to_dict(orient="records"))
        return 0
    from gramgraph.cli.cases import output

    with output(args.out) as stream:
        for start in range(0, args.n, _DRAWS):
            frame = model.sample(min(_DRAWS, args.n - start), evidence=evidence or None, random_state=rng)
            frame.to_csv(stream, index=False, header=start == 0, lineterminator="\n")
    return 0
