"""`info`, `check` and `plan`: what a model is, whether it is sound, what a question would cost."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from gramgraph._show import clean, count_text, shorten, text_table
from gramgraph.cli import common
from gramgraph.compile.budget import readable
from gramgraph.exceptions import ModelError
from gramgraph.models import BayesianNetwork


def add_commands(commands: Any) -> None:
    """Add the subcommands of this module."""
    info = commands.add_parser("info", help="variables, edges, sizes")
    common.add_file(info)
    info.add_argument("--variables", action="store_true", help="list every variable with its states and parents")
    common.add_json(info)
    info.set_defaults(run=_info)

    check = commands.add_parser("check", help="list everything that is wrong with a model; exit code 1 if anything is")
    common.add_file(check)
    common.add_json(check)
    check.set_defaults(run=_check)

    plan = commands.add_parser("plan", help="width, memory and work of a question before it is asked")
    common.add_file(plan)
    common.add_targets(plan)
    plan.add_argument(
        "-g", "--given", action="append", default=[], metavar="VAR", help="a variable that will be observed"
    )
    plan.add_argument("--memory", type=common.parse_size, help="exit code 1 when the plan needs more, such as 2GB")
    common.add_json(plan)
    plan.set_defaults(run=_plan)


# -------------------------------------------------------------------------------------------------- info


def _info(args: argparse.Namespace) -> int:
    model = common.load(args.file, format=args.format)
    if args.json:
        common.print_json(model_record(model))
        return 0
    record = model_record(model)
    variables = record.pop("variables")
    rows = [(key.replace("_", " "), count_text(v) if isinstance(v, int) else v) for key, v in record.items()]
    sys.stdout.write(text_table(("", ""), [("name", model.name or "–"), *rows[1:]]) + "\n")
    if args.variables:
        lines = [
            (
                shorten(v["name"], 40),
                shorten(", ".join(v["states"]) if "real" not in v else repr(model.var(v["name"]).domain), 60),
                shorten(", ".join(v.get("parents", ())), 60),
            )
            for v in variables
        ]
        sys.stdout.write("\n" + text_table(("variable", "states", "parents"), lines) + "\n")
    return 0


def model_record(model: Any) -> dict[str, Any]:
    """What `info` says, as plain values."""
    directed = isinstance(model, BayesianNetwork)
    variables: list[dict[str, Any]] = [
        {"name": var.name, "states": list(var.states)}
        if var.is_discrete
        else {"name": var.name, "states": [], "real": var.dimension}
        for var in map(model.var, model.variables)
    ]
    record: dict[str, Any] = {"name": model.name, "kind": type(model).__name__, "n_variables": len(model)}
    if directed:
        for entry in variables:
            entry["parents"] = list(model.parents(entry["name"]))
        record["n_edges"] = sum(len(entry["parents"]) for entry in variables)
        record["most_parents"] = max((len(entry["parents"]) for entry in variables), default=0)
        discrete = all(model.var(name).is_discrete for name in model.variables)
        counts = (_free_parameters(model, entry) for entry in variables)
        record["n_parameters"] = sum(counts) if discrete else model.n_parameters
    else:
        factors = model.factors(structured=False)
        record["n_factors"] = len(factors)
        record["largest_factor"] = max((len(factor.scope) for factor in factors), default=0)
    record["most_states"] = max((len(entry["states"]) for entry in variables), default=0)
    record["variables"] = variables
    return record


def _free_parameters(model: BayesianNetwork, entry: dict[str, Any]) -> int:
    """Numbers in the full table that can be chosen: (states − 1) · Π states of the parents."""
    count = len(entry["states"]) - 1
    for parent in entry["parents"]:
        count *= len(model.states(parent))
    return count


# ------------------------------------------------------------------------------------------------- check


def _check(args: argparse.Namespace) -> int:
    faults: tuple[str, ...] = ()
    try:
        common.load(args.file, format=args.format, normalize=False).check_model()
    except ModelError as error:
        faults = error.faults
    if args.json:
        common.print_json({"valid": not faults, "faults": list(faults)})
    elif faults:
        sys.stdout.write("".join(f"{clean(fault)}\n" for fault in faults))
        sys.stdout.write(f"{len(faults)} fault{'s' if len(faults) > 1 else ''} in {clean(args.file)}\n")
    else:
        sys.stdout.write(f"{clean(args.file)} is a sound model\n")
    return 1 if faults else 0


# -------------------------------------------------------------------------------------------------- plan


def _plan(args: argparse.Namespace) -> int:
    import gramgraph as gg

    model = common.load(args.file, format=args.format)
    targets = common.parse_targets(model, args.target)
    given = common.parse_targets(model, args.given) or []
    plan = gg.plan(model, targets=targets, given=given)
    fits = args.memory is None or plan.bytes <= args.memory
    if args.json:
        names = ("width", "largest_clique", "bytes", "flops", "seconds", "cells", "engine")
        record = {name: getattr(plan, name) for name in names if hasattr(plan, name)}
        common.print_json(record | ({} if args.memory is None else {"fits": fits}))
    else:
        sys.stdout.write(f"{plan}\n")
        if not fits:
            sys.stdout.write(f"does not fit: needs {readable(plan.bytes)}, allowed are {readable(args.memory)}\n")
    return 0 if fits else 1
