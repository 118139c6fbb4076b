"""Collapsed Gibbs sampling of urns: a site is drawn given all others, the probabilities integrated out.

Uniform numbers come in from outside, so that a seed gives the same draws with and without the compiler.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit

_jit = njit(cache=True, nogil=True)


@_jit(no_cpython_wrapper=True)
def row_of(s, value, table, choice, ptr, idx, stride):
    """The row from which a site draws, given the states of its parents."""
    code = table[s]
    for j in range(ptr[s], ptr[s + 1]):
        code += stride[j] * value[idx[j]]
    return choice[code]


@_jit
def fill(value, table, choice, ptr, idx, stride, offset, step, cells, totals):
    """Adds the draws of all sites to the urns."""
    for s in range(len(value)):
        r = row_of(s, value, table, choice, ptr, idx, stride)
        cells[offset[r] + value[s]] += step[r]
        totals[r] += step[r]


@_jit
def sweep(
    order, sizes, value, table, choice, ptr, idx, stride, child_ptr, child, offset, step, cells, totals, uniforms, logs,
    members, tally, tally_at,
):  # fmt: skip
    """One sweep over the hidden sites. `tally` gains p(state | all others) of each, at `tally_at` of the site.

    The site and those whose row it chooses are taken out of their urns; for each state they are put back one by one,
    since they may draw from the same urn. O(Σ states · (1 + children)).
    """
    for i in range(len(order)):
        s = order[i]
        k = sizes[s]
        n = 1
        members[0] = s
        for j in range(child_ptr[s], child_ptr[s + 1]):
            members[n] = child[j]
            n += 1
        for a in range(n):
            m = members[a]
            r = row_of(m, value, table, choice, ptr, idx, stride)
            cells[offset[r] + value[m]] -= step[r]
            totals[r] -= step[r]
        top = -np.inf
        for v in range(k):
            value[s] = v
            log_p = 0.0
            p = 1.0
            for a in range(n):
                m = members[a]
                r = row_of(m, value, table, choice, ptr, idx, stride)
                c = offset[r] + value[m]
                p *= cells[c] / totals[r]
                if p < 1e-200:
                    log_p += np.log(p) if p > 0.0 else -np.inf
                    p = 1.0
                cells[c] += step[r]
                totals[r] += step[r]
            for a in range(n):
                m = members[a]
                r = row_of(m, value, table, choice, ptr, idx, stride)
                cells[offset[r] + value[m]] -= step[r]
                totals[r] -= step[r]
            logs[v] = log_p + np.log(p)
            top = max(top, logs[v])
        total = 0.0
        for v in range(k):
            logs[v] = np.exp(logs[v] - top)
            total += logs[v]
        at = tally_at[i]
        u = uniforms[i] * total
        drawn = k - 1
        share = 0.0
        for v in range(k):
            tally[at + v] += logs[v] / total
        for v in range(k):
            share += logs[v]
            if u < share:
                drawn = v
                break
        value[s] = drawn
        for a in range(n):
            m = members[a]
            r = row_of(m, value, table, choice, ptr, idx, stride)
            cells[offset[r] + value[m]] += step[r]
            totals[r] += step[r]
