"""Windows that slide over integral images, and the values of Haar-like features in them.

A feature is up to three rectangles; `corners[f]` holds the four corners of each as offsets from the window's corner in
a flat integral image (12 numbers), `weights[f]` their weights. Values are divided by area · standard deviation of the
window (inside its border of one pixel). Numbers are singles where OpenCV has singles, so that decisions are the same.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit


@njit(cache=True, nogil=True)
def place_corners(rects, tilted, stride, out):
    """Offsets of the corners of all rectangles for images with rows of `stride` numbers."""
    for f in range(rects.shape[0]):
        for r in range(3):
            x = rects[f, r, 0]
            y = rects[f, r, 1]
            w = rects[f, r, 2]
            h = rects[f, r, 3]
            k = 4 * r
            if tilted[f]:
                out[f, k] = x + stride * y
                out[f, k + 1] = x - h + stride * (y + h)
                out[f, k + 2] = x + w + stride * (y + w)
                out[f, k + 3] = x + w - h + stride * (y + w + h)
            else:
                out[f, k] = x + stride * y
                out[f, k + 1] = x + w + stride * y
                out[f, k + 2] = x + stride * (y + h)
                out[f, k + 3] = x + w + stride * (y + h)


@njit(cache=True, nogil=True)
def feature_at(flat, at, corners, weights, f):
    """The weighted sum of the rectangles of feature f at one place; places are unsigned: none is negative."""
    one = flat[at + corners[f, 0]] - flat[at + corners[f, 1]] - flat[at + corners[f, 2]] + flat[at + corners[f, 3]]
    two = flat[at + corners[f, 4]] - flat[at + corners[f, 5]] - flat[at + corners[f, 6]] + flat[at + corners[f, 7]]
    found = np.float32(weights[f, 0] * np.float32(one)) + np.float32(weights[f, 1] * np.float32(two))
    if weights[f, 2] != np.float32(0.0):
        three = (
            flat[at + corners[f, 8]] - flat[at + corners[f, 9]] - flat[at + corners[f, 10]] + flat[at + corners[f, 11]]
        )
        found += np.float32(weights[f, 2] * np.float32(three))
    return found


@njit(cache=True, nogil=True)
def spread_at(flat, squares, at, c, area):
    """1 / (area · standard deviation) of the window, 0 where it is flat."""
    total = float(flat[at + c[0]] - flat[at + c[1]] - flat[at + c[2]] + flat[at + c[3]])
    square = float(squares[at + c[0]] - squares[at + c[1]] - squares[at + c[2]] + squares[at + c[3]])
    nf = area * square - total * total
    if nf <= 0.0:
        return np.float32(0.0)
    found = np.float32(1.0 / np.sqrt(nf))
    if area * float(found) >= 0.1:  # a standard deviation below ten grey levels is not looked at
        return np.float32(0.0)
    return found


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


@njit(cache=True, nogil=True)
def run_stumps(flat, at, norm, first, stage_start, stage_threshold, threshold, leaf, corners, weights):
    """As `run_stages` from stage `first` on, where tree k is a stump over feature k with leaves leaf[k]."""
    margin = 0.0
    n_stages = stage_threshold.shape[0]
    for s in range(first, n_stages):
        total = 0.0
        for j in range(stage_start[s], stage_start[s + 1]):
            k = np.uint64(j)
            value = np.float32(feature_at(flat, at, corners, weights, k) * norm)
            below = leaf[k, 0]  # both are read, so that no branch has to be guessed
            above = leaf[k, 1]
            total += below if value < threshold[k] else above
        margin = total - stage_threshold[s]
        if margin < 0.0:
            return s, margin
    return n_stages, margin


@njit(cache=True, nogil=True)
def _box_row(flat, at, a, b, c, d, out):
    """Sums of one rectangle for all windows of a row; neighbors lie side by side, so several are added at once."""
    n = out.shape[0]
    one = flat[at + a : at + a + n]
    two = flat[at + b : at + b + n]
    three = flat[at + c : at + c + n]
    four = flat[at + d : at + d + n]
    for x in range(n):
        out[x] = np.float32(one[x] - two[x] - three[x] + four[x])


@njit(cache=True, nogil=True)
def row_stage(flat, at, norms, start, stop, threshold, leaf, corners, weights, one, two, total):
    """The sums of one stage for all windows of a row."""
    n = total.shape[0]
    for x in range(n):
        total[x] = 0.0
    for k in range(start, stop):
        c = corners[k].astype(np.int64)
        _box_row(flat, at, c[0], c[1], c[2], c[3], one)
        _box_row(flat, at, c[4], c[5], c[6], c[7], two)
        first = weights[k, 0]
        second = weights[k, 1]
        for x in range(n):
            one[x] = np.float32(first * one[x]) + np.float32(second * two[x])
        if weights[k, 2] != np.float32(0.0):
            _box_row(flat, at, c[8], c[9], c[10], c[11], two)
            third = weights[k, 2]
            for x in range(n):
                one[x] += np.float32(third * two[x])
        cut = threshold[k]
        below = leaf[k, 0]
        above = leaf[k, 1]
        for x in range(n):
            total[x] += below if np.float32(one[x] * norms[x]) < cut else above


@njit(cache=True, nogil=True)
def _norm_row(flat, squares, at, c, area, norms):
    """`spread_at` for all windows of a row."""
    n = norms.shape[0]
    a = at + np.int64(c[0])
    b = at + np.int64(c[1])
    d = at + np.int64(c[2])
    e = at + np.int64(c[3])
    f0 = flat[a : a + n]
    f1 = flat[b : b + n]
    f2 = flat[d : d + n]
    f3 = flat[e : e + n]
    q0 = squares[a : a + n]
    q1 = squares[b : b + n]
    q2 = squares[d : d + n]
    q3 = squares[e : e + n]
    for x in range(n):
        total = float(f0[x] - f1[x] - f2[x] + f3[x])
        nf = area * float(q0[x] - q1[x] - q2[x] + q3[x]) - total * total
        found = np.float32(1.0 / np.sqrt(max(nf, 1e-30)))
        norms[x] = found if nf > 0.0 and area * float(found) < 0.1 else np.float32(0.0)


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
    """As `slide`, for stumps: early stages for whole rows while many windows are left, later ones window by window."""
    n_stages = stage_threshold.shape[0]
    norms = np.empty(width, np.float32)
    one = np.empty(width, np.float32)
    two = np.empty(width, np.float32)
    total = np.empty(width)
    places = np.empty(width, np.int64)
    n = 0
    for y in range(0, height, step):
        at = y * stride
        _norm_row(flat, squares, at, inner, area, norms)
        row_stage(flat, at, norms, stage_start[0], stage_start[1], threshold, leaf, corners, weights, one, two, total)
        left = 0
        x = 0
        while x < width:
            if norms[x] > np.float32(0.0):
                if total[x] >= stage_threshold[0]:
                    places[left] = x
                    left += 1
                elif skip:
                    x += step
            x += step
        s = 1
        while s < n_stages and left * 8 > width:
            row_stage(
                flat, at, norms, stage_start[s], stage_start[s + 1], threshold, leaf, corners, weights, one, two, total
            )
            kept = 0
            for k in range(left):
                if total[places[k]] >= stage_threshold[s]:
                    places[kept] = places[k]
                    kept += 1
            left = kept
            s += 1
        for k in range(left):
            x = places[k]
            passed, margin = run_stumps(
                flat, np.uint64(at + x), norms[x], s, stage_start, stage_threshold, threshold, leaf, corners, weights
            )
            if passed == n_stages:
                if n < found.shape[0]:
                    found[n, 0] = x
                    found[n, 1] = y
                    margins[n] = margin if s < n_stages else total[x] - stage_threshold[n_stages - 1]
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
