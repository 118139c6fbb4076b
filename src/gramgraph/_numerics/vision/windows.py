"""Windows that slide over integral images, and the values of Haar-like features in them.

A feature is up to three rectangles; `corners[f]` holds the four corners of each as offsets from the window's corner in
a flat integral image (12 numbers), `weights[f]` their weights. Values are divided by area · standard deviation of the
window (inside its border of one pixel). Numbers are singles where OpenCV has singles, so that decisions are the same.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.vision.images import corner


@njit(cache=True, nogil=True)
def place_corners(rects, tilted, stride, step, out):
    """Offsets of the corners of all rectangles, as `corner` counts places."""
    for f in range(rects.shape[0]):
        for r in range(3):
            x = rects[f, r, 0]
            y = rects[f, r, 1]
            w = rects[f, r, 2]
            h = rects[f, r, 3]
            k = 4 * r
            if tilted[f]:
                out[f, k] = corner(x, y, stride, step)
                out[f, k + 1] = corner(x - h, y + h, stride, step)
                out[f, k + 2] = corner(x + w, y + w, stride, step)
                out[f, k + 3] = corner(x + w - h, y + w + h, stride, step)
            else:
                out[f, k] = corner(x, y, stride, step)
                out[f, k + 1] = corner(x + w, y, stride, step)
                out[f, k + 2] = corner(x, y + h, stride, step)
                out[f, k + 3] = corner(x + w, y + h, stride, step)


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def box_at(flat, at, a, b, c, d):
    """The sum of a rectangle with these corners; places are unsigned: none is negative."""
    return np.float32(np.int32(flat[at + a] - flat[at + b] - flat[at + c] + flat[at + d]))


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def feature_at(flat, at, corners, weights, f):
    """The weighted sum of the rectangles of feature f at one place."""
    one = box_at(flat, at, corners[f, 0], corners[f, 1], corners[f, 2], corners[f, 3])
    two = box_at(flat, at, corners[f, 4], corners[f, 5], corners[f, 6], corners[f, 7])
    found = np.float32(weights[f, 0] * one) + np.float32(weights[f, 1] * two)
    if weights[f, 2] != np.float32(0.0):
        three = box_at(flat, at, corners[f, 8], corners[f, 9], corners[f, 10], corners[f, 11])
        found += np.float32(weights[f, 2] * three)
    return found


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def _norm(total, square, area):
    """1 / (area · standard deviation) from the sum of a window and that of its squares, 0 where it is flat.

    A standard deviation below ten grey levels is not looked at.
    """
    nf = area * float(square) - float(total) * float(total)
    found = np.float32(1.0 / np.sqrt(max(nf, 1e-30)))
    return found if nf > 0.0 and area * float(found) < 0.1 else np.float32(0.0)


@njit(cache=True, nogil=True)
def spread_at(flat, squares, at, c, area):
    """`_norm` of one window."""
    total = flat[at + c[0]] - flat[at + c[1]] - flat[at + c[2]] + flat[at + c[3]]
    square = squares[at + c[0]] - squares[at + c[1]] - squares[at + c[2]] + squares[at + c[3]]
    return _norm(total, square, area)


@njit(cache=True, nogil=True)
def run_stages(
    flat,
    tilt,
    at,
    norm,
    stage_start,
    stage_threshold,
    root,
    feature,
    threshold,
    left,
    right,
    leaf,
    tilted,
    corners,
    weights,
):
    """(stages passed, margin of the last one): trees of tests whose leaves are added up, stage by stage."""
    margin = 0.0
    n_stages = stage_threshold.shape[0]
    for s in range(n_stages):
        total = 0.0
        for k in range(stage_start[s], stage_start[s + 1]):
            node = root[k]
            while node >= 0:
                f = feature[node]
                if tilted[f]:
                    value = feature_at(tilt, at, corners, weights, f)
                else:
                    value = feature_at(flat, at, corners, weights, f)
                node = left[node] if np.float32(value * norm) < threshold[node] else right[node]
            total += leaf[-1 - node]
        margin = total - stage_threshold[s]
        if margin < 0.0:
            return s, margin
    return n_stages, margin


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def run_stumps(flat, at, norm, first, stage_start, stage_threshold, threshold, leaf, corners, weights):
    """As `run_stages` from stage `first` on, where tree k is a stump over feature k with leaves leaf[k].

    `feature_at` is written out: its call would take five times as long as its sums.
    """
    margin = 0.0
    n_stages = stage_threshold.shape[0]
    for s in range(first, n_stages):
        total = 0.0
        for k in range(np.uint64(stage_start[s]), np.uint64(stage_start[s + 1])):
            one = box_at(flat, at, corners[k, 0], corners[k, 1], corners[k, 2], corners[k, 3])
            two = box_at(flat, at, corners[k, 4], corners[k, 5], corners[k, 6], corners[k, 7])
            value = np.float32(weights[k, 0] * one) + np.float32(weights[k, 1] * two)
            if weights[k, 2] != np.float32(0.0):
                three = box_at(flat, at, corners[k, 8], corners[k, 9], corners[k, 10], corners[k, 11])
                value += np.float32(weights[k, 2] * three)
            total += leaf[k, np.uint64(np.float32(value * norm) >= threshold[k])]  # no branch has to be guessed
        margin = total - stage_threshold[s]
        if margin < 0.0:
            return s, margin
    return n_stages, margin


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def _corner_rows(flat, at, c, first, n):
    """The numbers at the four corners of a rectangle for n windows side by side."""
    a = at + np.int64(c[first])
    b = at + np.int64(c[first + 1])
    d = at + np.int64(c[first + 2])
    e = at + np.int64(c[first + 3])
    return flat[a : a + n], flat[b : b + n], flat[d : d + n], flat[e : e + n]


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def row_stage(flat, at, norms, start, stop, threshold, leaf, corners, weights, values, total):
    """The sums of one stage for all windows of a row.

    Neighbors lie side by side, so that several are added at once; few arrays in each loop let the compiler see
    it, and sums told to be short let it take eight at a time.
    """
    n = total.shape[0]
    for x in range(n):
        total[x] = 0.0
    for k in range(start, stop):
        c = corners[k]
        one, two, three, four = _corner_rows(flat, at, c, 0, n)
        weight = weights[k, 0]
        for x in range(n):
            values[x] = np.float32(weight * np.float32(np.int32(one[x] - two[x] - three[x] + four[x])))
        last = 4
        if weights[k, 2] != np.float32(0.0):
            one, two, three, four = _corner_rows(flat, at, c, 4, n)
            weight = weights[k, 1]
            for x in range(n):
                values[x] += np.float32(weight * np.float32(np.int32(one[x] - two[x] - three[x] + four[x])))
            last = 8
        one, two, three, four = _corner_rows(flat, at, c, last, n)
        weight = weights[k, last // 4]
        cut = threshold[k]
        below = leaf[k, 0]
        above = leaf[k, 1]
        for x in range(n):
            value = values[x] + np.float32(weight * np.float32(np.int32(one[x] - two[x] - three[x] + four[x])))
            total[x] += below if np.float32(value * norms[x]) < cut else above


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def _norm_row(flat, squares, at, c, area, norms):
    """`_norm` of all windows of a row; (first, end) of those that are not flat."""
    n = norms.shape[0]
    f0, f1, f2, f3 = _corner_rows(flat, at, c, 0, n)
    q0, q1, q2, q3 = _corner_rows(squares, at, c, 0, n)
    for x in range(n):
        norms[x] = _norm(f0[x] - f1[x] - f2[x] + f3[x], q0[x] - q1[x] - q2[x] + q3[x], area)
    first = 0
    while first < n and norms[first] == np.float32(0.0):
        first += 1
    end = n
    while end > first and norms[end - 1] == np.float32(0.0):
        end -= 1
    return first, end


@njit(cache=True, nogil=True)
def slide_stumps(
    flat,
    squares,
    stride,
    width,
    height,
    step,
    skip,
    inner,
    area,
    stage_start,
    stage_threshold,
    threshold,
    leaf,
    corners,
    weights,
    found,
    margins,
):
    """As `slide`, for stumps: early stages for whole rows while many windows are left, later ones window by window.

    The columns of the tables are sorted by their rest modulo `step` (`corner`), so that windows which follow each other
    lie side by side.
    """
    n_stages = stage_threshold.shape[0]
    places_in_row = (width + step - 1) // step
    norms = np.empty(places_in_row, np.float32)
    value = np.empty(places_in_row, np.float32)
    total = np.empty(places_in_row)
    places = np.empty(places_in_row, np.int64)
    n = 0
    for y in range(0, height, step):
        first, end = _norm_row(flat, squares, y * stride, inner, area, norms)
        if first == end:
            continue
        at = y * stride + first
        norm = norms[first:end]
        row = end - first
        values = value[:row]
        sums = total[:row]
        row_stage(flat, at, norm, stage_start[0], stage_start[1], threshold, leaf, corners, weights, values, sums)
        left = 0
        x = 0
        while x < row:
            if norm[x] > np.float32(0.0):
                if sums[x] >= stage_threshold[0]:
                    places[left] = x
                    left += 1
                elif skip:
                    x += 1
            x += 1
        s = 1
        while s < n_stages and left * 4 > row + 40:
            row_stage(
                flat, at, norm, stage_start[s], stage_start[s + 1], threshold, leaf, corners, weights, values, sums
            )
            kept = 0
            for k in range(left):
                if sums[places[k]] >= stage_threshold[s]:
                    places[kept] = places[k]
                    kept += 1
            left = kept
            s += 1
        for k in range(left):
            x = places[k]
            passed, margin = run_stumps(
                flat, np.uint64(at + x), norm[x], s, stage_start, stage_threshold, threshold, leaf, corners, weights
            )
            if passed == n_stages:
                if n < found.shape[0]:
                    found[n, 0] = (first + x) * step
                    found[n, 1] = y
                    margins[n] = margin if s < n_stages else sums[x] - stage_threshold[n_stages - 1]
                n += 1
    return n


@njit(cache=True, nogil=True)
def slide(
    flat,
    squares,
    tilt,
    stride,
    width,
    height,
    step,
    skip,
    inner,
    area,
    stage_start,
    stage_threshold,
    root,
    feature,
    threshold,
    left,
    right,
    leaf,
    tilted,
    corners,
    weights,
    found,
    margins,
):
    """Places (x, y) whose window passes every stage, and by how much; how many there are (at most len(found)).

    With `skip`, a window that the first stage refuses lets the next one be left out, as OpenCV does.
    """
    n_stages = stage_threshold.shape[0]
    n = 0
    for y in range(0, height, step):
        x = 0
        while x < width:
            at = np.uint64(y * stride + x)
            norm = spread_at(flat, squares, at, inner, area)
            if norm > np.float32(0.0):
                passed, margin = run_stages(
                    flat, tilt, at, norm, stage_start, stage_threshold, root, feature, threshold, left, right, leaf,
                    tilted, corners, weights,
                )  # fmt: skip
                if passed == n_stages:
                    if n < found.shape[0]:
                        found[n, 0] = x
                        found[n, 1] = y
                        margins[n] = margin
                    n += 1
                elif passed == 0 and skip:
                    x += step
            x += step
    return n


@njit(cache=True, nogil=True)
def patch_values(flat, squares, tilt, size, corners, weights, tilted, inner, area, first, stop, out):
    """Values of the features first … stop − 1 in patches whose integral images stand one after another in `flat`."""
    n = out.shape[1]
    for i in range(n):
        at = np.uint64(i * size)
        norm = spread_at(flat, squares, at, inner, area)
        for f in range(first, stop):
            if tilted[f]:
                value = feature_at(tilt, at, corners, weights, f)
            else:
                value = feature_at(flat, at, corners, weights, f)
            out[f - first, i] = value * norm


@njit(cache=True, nogil=True)
def bin_values(values, out):
    """Each row of values in 256 steps between mean − 3 and mean + 3 standard deviations."""
    m, n = values.shape
    for f in range(m):
        total = 0.0
        square = 0.0
        for i in range(n):
            v = float(values[f, i])
            total += v
            square += v * v
        mean = total / n
        sd = np.sqrt(max(square / n - mean * mean, 0.0))
        scale = 256.0 / (6.0 * sd) if sd > 1e-12 else 0.0
        for i in range(n):
            b = (float(values[f, i]) - mean + 3.0 * sd) * scale
            out[f, i] = np.uint8(min(max(b, 0.0), 255.0))


@njit(cache=True, nogil=True)
def best_binned(codes, signed, hist):
    """(row, edge): the binned feature with the largest |S right − S left| over all cuts between bins."""
    m, n = codes.shape
    total = 0.0
    for i in range(n):
        total += signed[i]
    best = -1.0
    row = np.int64(-1)
    for f in range(m):
        for b in range(256):
            hist[b] = 0.0
        for i in range(n):
            hist[codes[f, i]] += signed[i]
        s = 0.0
        for b in range(255):
            s += hist[b]
            edge = abs(total - 2.0 * s)
            if edge > best:
                best = edge
                row = f
    return row, best
