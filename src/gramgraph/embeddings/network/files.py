"""Kernel models as plain values and arrays: JSON text, or a container. Nothing in a file is ever executed."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import Any

import numpy as np

from gramgraph._archive import read_archive
from gramgraph._container import is_container, pack, unpack
from gramgraph._replace import write_whole
from gramgraph.cells.axes import Axis, LineAxis
from gramgraph.cells.points import AXES
from gramgraph.embeddings.network.edge_mixture import Edge
from gramgraph.exceptions import GramGraphError, ModelError, ParseError, listing
from gramgraph.typing import Array

_VERSION = 1
_LONGEST = 1 << 16  # pixels along a side of an image
_DTYPES = ("<f4", "<f8", "<i8")
_UNFIT = (GramGraphError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


Fields = dict[str, Any]
Arrays = dict[str, Array]


def _axes_out(axes: Sequence[Axis]) -> tuple[list[Fields], Arrays]:
    arrays: Arrays = {}
    out = []
    for i, axis in enumerate(axes):
        fields, own = axis.to_fields()
        out.append(fields)
        arrays.update({f"axis{i}.{key}": value for key, value in own.items()})
    return out, arrays


def _axes_in(top: Mapping[str, Any], arrays: Mapping[str, Array]) -> list[Axis]:
    axes: list[Axis] = []
    for i, fields in enumerate(top["axes"]):
        own = {key.partition(".")[2]: value for key, value in arrays.items() if key.startswith(f"axis{i}.")}
        axes.append(_sound_axis(AXES[fields["kind"]].from_fields(fields, own)))
    return axes


def _edges_out(edges: Sequence[Edge]) -> tuple[list[Fields], Arrays]:
    out = [
        {"x": e.x, "y": e.y, "gain": e.gain, "negative_mass": e.negative_mass, "parts": dict(e.parts)} for e in edges
    ]
    return out, {f"edge{i}.R": np.asarray(e.R) for i, e in enumerate(edges)}


def _edge_in(i: int, fields: Mapping[str, Any], arrays: Mapping[str, Array], shape: tuple[int, int]) -> Edge:
    R = arrays[f"edge{i}.R"]
    if R.shape != shape or not np.isfinite(R).all() or (R < 0).any():
        raise ValueError(f"the table of edge {i} does not fit its variables")
    gain, negative = float(fields["gain"]), float(fields["negative_mass"])
    return Edge(str(fields["x"]), str(fields["y"]), R, gain, _parts(fields), negative)


def _parts(fields: Mapping[str, Any]) -> dict[str, float]:
    return {str(k): float(v) for k, v in fields["parts"].items()}


# ------------------------------------------------------------------------------------------ the models


def _tree_out(net: Any) -> tuple[Fields, Arrays]:
    axes, arrays = _axes_out(net.cell_axes)
    edges, tables = _edges_out(net.edge_list)
    return {"name": net.name, "rows": net.rows, "axes": axes, "edges": edges}, {**arrays, **tables}


def _tree_in(top: Mapping[str, Any], arrays: Mapping[str, Array]) -> Any:
    from gramgraph.embeddings.network.tree import KernelTree

    axes = _axes_in(top, arrays)
    size = {axis.name: axis.m for axis in axes}
    edges = [_edge_in(i, e, arrays, (size[e["x"]], size[e["y"]])) for i, e in enumerate(top["edges"])]
    return KernelTree(axes, edges, rows=int(top["rows"]), name=str(top["name"]))


def _network_out(net: Any) -> tuple[Fields, Arrays]:
    axes, arrays = _axes_out(net.cell_axes)
    families = []
    for i, found in enumerate(net.conditionals):
        parents = [var.name for var in found.parents]
        families.append({"parents": parents, "gain": found.gain, "parts": dict(found.parts)})
        arrays[f"family{i}.table"] = np.asarray(found.on_cells)
    return {"name": net.name, "rows": net.rows, "axes": axes, "families": families}, arrays


def _network_in(top: Mapping[str, Any], arrays: Mapping[str, Array]) -> Any:
    from gramgraph.conditionals.kernel import KernelConditional
    from gramgraph.embeddings.network.dag import KernelNetwork

    axes = {axis.name: axis for axis in _axes_in(top, arrays)}
    made = []
    for i, (axis, fields) in enumerate(zip(axes.values(), top["families"], strict=True)):
        family = (*(axes[str(p)] for p in fields["parents"]), axis)
        table = np.asarray(arrays[f"family{i}.table"], dtype=np.float64)
        made.append(KernelConditional(family, table, float(fields["gain"]), _parts(fields)))
    return KernelNetwork(made, rows=int(top["rows"]), name=str(top.get("name", "")))


def _grid_out(net: Any) -> tuple[Fields, Arrays]:
    axes, arrays = _axes_out([net.pixel, net.observed])
    edges, tables = _edges_out([net.edge, net.noise])
    return {"power": net.power, "shape": list(net.shape), "axes": axes, "edges": edges}, {**arrays, **tables}


def _grid_in(top: Mapping[str, Any], arrays: Mapping[str, Array]) -> Any:
    from gramgraph.embeddings.network.grid import KernelGrid

    axis, observed = _axes_in(top, arrays)
    between, noise = top["edges"]
    power = float(top["power"])
    if not (isinstance(axis, LineAxis) and isinstance(observed, LineAxis) and 0.0 < power <= 1.0):
        raise ValueError("pixels and observations are numbers, and the power lies above 0 up to 1")
    edge = _edge_in(0, between, arrays, (axis.m, axis.m))
    height, width = (int(n) for n in top.get("shape", (1, 1)))
    if not (0 < height <= _LONGEST and 0 < width <= _LONGEST):
        raise ValueError(f"an image of {height} × {width} pixels")
    return KernelGrid(axis, observed, edge, _edge_in(1, noise, arrays, (axis.m, observed.m)), power, (height, width))


def _spectral_out(model: Any) -> tuple[Fields, Arrays]:
    axes, arrays = _axes_out([model.axis])
    own = {"start": model.start, "readout": model.readout, "operators": model.operators}
    return {"axes": axes}, {**arrays, **own}


def _spectral_in(top: Mapping[str, Any], arrays: Mapping[str, Array]) -> Any:
    from gramgraph.embeddings.network.spectral import SpectralHMM

    (axis,) = _axes_in(top, arrays)
    start, readout, operators = (np.asarray(arrays[key], np.float64) for key in ("start", "readout", "operators"))
    n = len(start)
    if start.ndim != 1 or readout.shape != (axis.m, n) or operators.shape != (axis.m, n, n):
        raise ValueError("the operators do not fit the cells")
    if not all(np.isfinite(a).all() for a in (start, readout, operators)):
        raise ValueError("the operators are not finite")
    return SpectralHMM(axis, start, readout, operators)


def _potentials_out(net: Any) -> tuple[Fields, Arrays]:
    axes, arrays = _axes_out(net.cell_axes)
    pieces = []
    for i, f in enumerate(net.potentials):
        fields, own = f.to_fields()
        pieces.append(fields)
        arrays |= {f"potential{i}.{key}": np.asarray(value) for key, value in own.items()}
    tables = []
    for i, t in enumerate(net.tables):
        tables.append({"names": [var.name for var in t.scope], "log_scale": float(t.log_scale)})
        arrays[f"table{i}"] = np.asarray(t.values)
    top = {"name": net.name, "rows": net.rows, "axes": axes, "potentials": pieces, "tables": tables}
    return {**top, "log_z": net.log_z, "factor_names": list(getattr(net, "factor_names", ()))}, arrays


def _potentials_in(top: Mapping[str, Any], arrays: Mapping[str, Array]) -> Any:
    from gramgraph.conditionals.potential import KernelPotential
    from gramgraph.factors import TableFactor
    from gramgraph.models.of_potentials import KernelFactorGraph, KernelMarkovNetwork

    axes = {axis.name: axis for axis in _axes_in(top, arrays)}
    pieces: list[Any] = []
    for i, fields in enumerate(top["potentials"]):
        own = {key.partition(".")[2]: a for key, a in arrays.items() if key.startswith(f"potential{i}.")}
        pieces.append(KernelPotential.from_fields(fields, own, axes))
    for i, fields in enumerate(top["tables"]):
        scope = tuple(axes[str(name)].var for name in fields["names"])
        pieces.append(TableFactor(scope, np.asarray(arrays[f"table{i}"], np.float64), float(fields["log_scale"])))
    log_z = None if top["log_z"] is None else float(top["log_z"])
    made: Any = KernelFactorGraph if top["kind"] == "kernel_factor_graph" else KernelMarkovNetwork
    named = {"names": [str(n) for n in top["factor_names"]]} if made is KernelFactorGraph else {}
    name = str(top.get("name", ""))
    return made(pieces, axes=tuple(axes.values()), rows=int(top["rows"]), log_z=log_z, name=name, **named)


#: Kind in a file → (name of the class, how it is written, how it is read).
_MODELS: dict[str, tuple[str, Any, Any]] = {
    "kernel_factor_graph": ("KernelFactorGraph", _potentials_out, _potentials_in),
    "kernel_grid": ("KernelGrid", _grid_out, _grid_in),
    "kernel_markov": ("KernelMarkovNetwork", _potentials_out, _potentials_in),
    "kernel_network": ("KernelNetwork", _network_out, _network_in),
    "kernel_tree": ("KernelTree", _tree_out, _tree_in),
    "spectral_hmm": ("SpectralHMM", _spectral_out, _spectral_in),
}
#: Kinds that `from_object` reads, and names of the classes that `to_object` writes.
KINDS = tuple(_MODELS)
CLASSES = tuple(name for name, _, _ in _MODELS.values())


def to_parts(net: Any) -> tuple[Fields, Arrays]:
    """A model as plain values and arrays by name."""
    for kind, (name, write, _) in _MODELS.items():
        if type(net).__name__ == name:
            top, arrays = write(net)
            return {"format": "gramgraph", "version": _VERSION, "kind": kind, **top}, arrays
    raise ModelError(f"these files hold {listing(CLASSES)}, not {type(net).__name__}.")


def _restore(top: Mapping[str, Any], arrays: Mapping[str, Array], source: str) -> Any:
    try:
        if top["format"] != "gramgraph" or top["kind"] not in _MODELS or top["version"] != _VERSION:
            raise ValueError(f"expected one of {listing(KINDS)}, of version {_VERSION}")
        return _MODELS[top["kind"]][2](top, arrays)
    except _UNFIT as error:
        raise ParseError(f"no sound kernel model: {error}", source=source) from None


def _sound_axis(axis: Axis) -> Axis:
    sound: Any
    if isinstance(axis, LineAxis):
        values, anchors = axis.density.values, axis.anchors
        sound = values.ndim == 1 and len(values) >= 2 and (values > 0.0).all() and np.isfinite(values).all()
        sound = sound and len(anchors) > 0 and (np.diff(anchors) > 0).all() and anchors[0] >= 0
        sound = sound and anchors[-1] < len(values) and axis.near.shape == values.shape
        numbers = (axis.density.first, axis.density.step, axis.density.tail, axis.reach, axis.density.coordinate.scale)
        sound = sound and np.isfinite(numbers).all() and min(numbers[1:]) > 0.0
        sound = sound and axis.domain in ("real", "positive", "circle")
    else:
        sound = axis.q.shape == (len(axis.cell_var.states),) and np.isfinite(axis.q).all() and (axis.q >= 0.0).all()
    if not sound:
        raise ValueError(f"the cells of {axis.name!r} are not sound")
    return axis


def to_object(net: Any) -> dict[str, Any]:
    """A dict that JSON can hold; arrays are base64 of their little-endian bytes, bit for bit."""
    top, arrays = to_parts(net)
    packed = {}
    for key, value in arrays.items():
        dtype = value.dtype.newbyteorder("<")
        raw = np.ascontiguousarray(value, dtype=dtype).tobytes()
        packed[key] = {"dtype": dtype.str, "shape": list(value.shape), "base64": base64.b64encode(raw).decode("ascii")}
    return {**top, "arrays": packed}


def from_object(top: Mapping[str, Any], *, source: str = "<text>") -> Any:
    """The model that `to_object` wrote; a `ParseError` for anything else."""
    arrays = {}
    try:
        for key, entry in top["arrays"].items():
            if entry["dtype"] not in _DTYPES:
                raise ValueError(f"dtype {entry['dtype']!r}")
            raw = base64.b64decode(entry["base64"], validate=True)
            arrays[key] = np.frombuffer(raw, dtype=entry["dtype"]).reshape([int(n) for n in entry["shape"]]).copy()
    except _UNFIT as error:
        raise ParseError(f"arrays: {error}", source=source) from None
    return _restore(top, arrays, source)


def holds(model: Any) -> bool:
    """Whether a model is one of these."""
    home = type(model).__module__
    known = home.startswith("gramgraph.embeddings.network.") or home == "gramgraph.models.of_potentials"
    return known and type(model).__name__ in CLASSES


def from_parts(tree: Any, arrays: Mapping[str, Array], *, source: str) -> Any:
    """The model of `to_parts`."""
    return _restore(tree, arrays, source)


def save(net: Any, path: str | PathLike[str]) -> None:
    """Write a container (`gg.write` to .gg writes the same)."""
    write_whole(path, pack("kernel_model", *to_parts(net)))


def load(path: str | PathLike[str], kind: str) -> Any:
    """The model of one kind in a file that `save` wrote, or in an archive (.npz) of version 0.1.0."""
    source = fspath(path)
    with open(source, "rb") as stream:
        data = stream.read()
    if is_container(data):
        content = unpack(data, source=source)
        top, arrays = content.value, content.arrays
    else:
        arrays = read_archive(data, source=source)
        top = _archive_header(arrays, source)
    if not isinstance(top, Mapping) or top.get("kind") != kind:
        found = top.get("kind") if isinstance(top, Mapping) else type(top).__name__
        raise ParseError(f"expected a {kind}; this is {found!r:.40}", source=source)
    return _restore(top, arrays, source)


def from_arrays(arrays: dict[str, Array], *, source: str) -> Any:
    """The model in the arrays of an archive of version 0.1.0."""
    return _restore(_archive_header(arrays, source), arrays, source)


def _archive_header(arrays: dict[str, Array], source: str) -> Any:
    try:
        return json.loads(arrays.pop("header").tobytes().decode("utf-8"))
    except (RecursionError, *_UNFIT) as error:
        raise ParseError(f"no archive of a kernel model: {error}", source=source) from None
