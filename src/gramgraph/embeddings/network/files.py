"""Kernel trees as plain values and arrays: JSON text, or a NumPy archive. Nothing in a file is ever executed."""

from __future__ import annotations

import base64
import json
import zipfile
from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any

import numpy as np

from gramgraph.embeddings.network.axes import Axis, LineAxis, StateAxis
from gramgraph.embeddings.network.points import PointAxis
from gramgraph.embeddings.network.stack import Edge
from gramgraph.embeddings.network.tree import KernelTree
from gramgraph.exceptions import GramGraphError, ParseError
from gramgraph.typing import Array

__all__ = ["from_object", "load", "save", "to_object"]

_VERSION = 1
_AXES: dict[str, Any] = {"line": LineAxis, "point": PointAxis, "state": StateAxis}
_DTYPES = ("<f4", "<f8", "<i8")
_UNFIT = (GramGraphError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def _header(net: KernelTree) -> tuple[dict[str, Any], dict[str, Array]]:
    arrays: dict[str, Array] = {}
    axes = []
    for i, axis in enumerate(net.axes):
        fields, own = axis.to_fields()
        axes.append(fields)
        arrays.update({f"axis{i}.{key}": value for key, value in own.items()})
    edges = []
    for i, edge in enumerate(net.edge_list):
        fields = {"x": edge.x, "y": edge.y, "gain": edge.gain, "negative_mass": edge.negative_mass}
        edges.append({**fields, "parts": dict(edge.parts)})
        arrays[f"edge{i}.R"] = edge.R
    top = {"format": "gramgraph", "version": _VERSION, "kind": "kernel_tree", "name": net.name, "rows": net.rows}
    return {**top, "axes": axes, "edges": edges}, arrays


def _restore(top: Mapping[str, Any], arrays: Mapping[str, Array], source: str) -> KernelTree:
    try:
        if top["format"] != "gramgraph" or top["kind"] != "kernel_tree" or top["version"] != _VERSION:
            raise ValueError(f"expected a kernel_tree of version {_VERSION}")
        axes: list[Axis] = []
        for i, fields in enumerate(top["axes"]):
            own = {key.partition(".")[2]: value for key, value in arrays.items() if key.startswith(f"axis{i}.")}
            axes.append(_sound_axis(_AXES[fields["kind"]].from_fields(fields, own)))
        size = {axis.name: axis.m for axis in axes}
        edges = []
        for i, fields in enumerate(top["edges"]):
            R = arrays[f"edge{i}.R"]
            if R.shape != (size[fields["x"]], size[fields["y"]]) or not np.isfinite(R).all() or (R < 0).any():
                raise ValueError(f"the table of edge {i} does not fit its variables")
            parts = {str(k): float(v) for k, v in fields["parts"].items()}
            gain, negative = float(fields["gain"]), float(fields["negative_mass"])
            edges.append(Edge(str(fields["x"]), str(fields["y"]), R, gain, parts, negative))
        return KernelTree(axes, edges, rows=int(top["rows"]), name=str(top["name"]))
    except _UNFIT as error:
        raise ParseError(f"no sound kernel tree: {error}", source=source) from None


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
        sound = axis.q.shape == (len(axis.var.states),) and np.isfinite(axis.q).all() and (axis.q >= 0.0).all()
    if not sound:
        raise ValueError(f"the cells of {axis.name!r} are not sound")
    return axis


def to_object(net: KernelTree) -> dict[str, Any]:
    """A dict that JSON can hold; arrays are base64 of their little-endian bytes, bit for bit."""
    top, arrays = _header(net)
    packed = {}
    for key, value in arrays.items():
        dtype = value.dtype.newbyteorder("<")
        raw = np.ascontiguousarray(value, dtype=dtype).tobytes()
        packed[key] = {"dtype": dtype.str, "shape": list(value.shape), "base64": base64.b64encode(raw).decode("ascii")}
    return {**top, "arrays": packed}


def from_object(top: Mapping[str, Any], *, source: str = "<text>") -> KernelTree:
    """The tree that `to_object` wrote; a `ParseError` for anything else."""
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


def save(net: KernelTree, path: str | PathLike[str]) -> None:
    """A compressed NumPy archive (.npz) with a JSON header."""
    top, arrays = _header(net)
    header = np.frombuffer(json.dumps(top).encode("utf-8"), dtype=np.uint8)
    with open(path, "wb") as stream:
        np.savez_compressed(stream, allow_pickle=False, header=header, **arrays)


def load(path: str | PathLike[str]) -> KernelTree:
    """The tree in an archive that `save` wrote."""
    source = fspath(path)
    try:
        with np.load(source, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
        top = json.loads(arrays.pop("header").tobytes().decode("utf-8"))
    except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, *_UNFIT) as error:
        raise ParseError(f"no archive of a kernel tree: {error}", source=source) from None
    return _restore(top, arrays, source)
