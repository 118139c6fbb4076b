"""Random networks with real-valued variables, and their answers by brute force."""

from __future__ import annotations

from itertools import product

import numpy as np

import gramgraph as gg
from gramgraph.conditionals import ConditionalLinearGaussian, LinearGaussian, Table
from gramgraph.variables import discrete, real


def covariance(rng, k):
    M = rng.normal(size=(k, k))
    return M @ M.T / k + 0.3 * np.eye(k)


def gaussian_network(rng, n, *, density=0.4, vectors=0.3, max_parents=4):
    """Linear-Gaussian, in a random order of declaration."""
    variables = [real(f"x{i}", int(rng.integers(2, 4)) if rng.random() < vectors else 1) for i in range(n)]
    made = []
    for i, var in enumerate(variables):
        pa = [variables[j] for j in range(i) if rng.random() < density][-max_parents:]
        m = sum(p.dimension for p in pa)
        k = var.dimension
        made.append(LinearGaussian(var, tuple(pa), rng.normal(size=(k, m)), 3 * rng.normal(size=k), covariance(rng, k)))
    order = rng.permutation(n)
    return gg.BayesianNetwork.from_parts([variables[i] for i in order], [made[i] for i in order])


def mixed_network(rng, n_discrete, n_real, *, density=0.4, vectors=0.2, zeros=0.1):
    """Conditional-Gaussian: tables, and linear Gaussians with discrete and real parents."""
    labelled = [discrete(f"d{i}", int(rng.integers(1, 4))) for i in range(n_discrete)]
    reals = [real(f"x{i}", 2 if rng.random() < vectors else 1) for i in range(n_real)]
    made = []
    for i, var in enumerate(labelled):
        pa = tuple(labelled[j] for j in range(i) if rng.random() < density)[-2:]
        values = rng.dirichlet(np.ones(var.size), size=tuple(p.size for p in pa))
        values = np.where(rng.random(values.shape) < zeros, 0.0, values) + 0.0
        sums = values.sum(axis=-1, keepdims=True)
        values = np.where(sums > 0, values / np.where(sums > 0, sums, 1), 1.0 / var.size)
        made.append(Table(var, pa, values))
    for i, var in enumerate(reals):
        d = tuple(p for p in labelled if rng.random() < density)[-2:]
        x = tuple(p for p in reals[:i] if rng.random() < density)[-2:]
        parents = tuple((*d, *x)[j] for j in rng.permutation(len(d) + len(x)))
        sizes = tuple(p.size for p in parents if p.is_discrete)
        k, m = var.dimension, sum(p.dimension for p in parents if not p.is_discrete)
        W, b = rng.normal(size=(*sizes, k, m)), 2 * rng.normal(size=(*sizes, k))
        S = np.zeros((*sizes, k, k))
        for at in np.ndindex(sizes):
            S[at] = covariance(rng, k)
        kind = ConditionalLinearGaussian if sizes else LinearGaussian
        made.append(kind(var, parents, W, b, S))
    return gg.BayesianNetwork.from_parts([*labelled, *reals], made)


def joint_given(net, states):
    """(mean, covariance, {name: components}) of the real variables, by solving x = b + W x + noise at once."""
    place, size = {}, 0
    for name in net.variables:
        var = net.var(name)
        if not var.is_discrete:
            place[name] = np.arange(size, size + var.dimension)
            size += var.dimension
    A, b, S = np.zeros((size, size)), np.zeros(size), np.zeros((size, size))
    for name, at in place.items():
        c = net.conditional(name)
        row = tuple(states[p.name] for p in c.parents if p.is_discrete)
        start = 0
        for p in c.parents:
            if not p.is_discrete:
                A[np.ix_(at, place[p.name])] = c.coefficients[row][:, start : start + p.dimension]
                start += p.dimension
        b[at] = c.intercept[row]
        S[np.ix_(at, at)] = c.covariance[row]
    T = np.linalg.inv(np.eye(size) - A)
    return T @ b, T @ S @ T.T, place


def brute_force(net, evidence):
    """log p(e), p(discrete), means and covariances by listing all configurations and conditioning densely."""
    labelled = [net.var(name) for name in net.variables if net.var(name).is_discrete]
    logs, rows, means, covs = [], [], [], []
    for codes in product(*(range(var.size) for var in labelled)):
        states = {var.name: code for var, code in zip(labelled, codes, strict=True)}
        if any(
            name in evidence and var.index(evidence[name]) != states[name]
            for name, var in ((v.name, v) for v in labelled)
        ):
            continue
        log_w = 0.0
        for var in labelled:
            c = net.conditional(var.name)
            with np.errstate(divide="ignore"):
                log_w += np.log(c.table()[tuple(states[v.name] for v in c.scope)])
        mu, S, place = joint_given(net, states)
        seen = [name for name in evidence if name in place]
        e = np.concatenate([place[name] for name in seen]) if seen else np.zeros(0, int)
        x = np.concatenate([np.atleast_1d(evidence[name]) for name in seen]) if seen else np.zeros(0)
        u = np.setdiff1d(np.arange(len(mu)), e)
        mean, cov = mu.copy(), np.zeros_like(S)
        if len(e):
            K = np.linalg.solve(S[np.ix_(e, e)], S[np.ix_(e, u)]).T
            off = x - mu[e]
            log_w += -0.5 * (
                off @ np.linalg.solve(S[np.ix_(e, e)], off) + np.linalg.slogdet(2 * np.pi * S[np.ix_(e, e)])[1]
            )
            mean[e], mean[u] = x, mu[u] + K @ off
            cov[np.ix_(u, u)] = S[np.ix_(u, u)] - K @ S[np.ix_(e, u)]
        else:
            cov = S
        logs.append(log_w)
        rows.append(states)
        means.append(mean)
        covs.append(cov)
    logs = np.array(logs)
    top = logs.max(initial=-np.inf)
    if top == -np.inf:
        return None
    w = np.exp(logs - top)
    log_p, w = top + np.log(w.sum()), w / w.sum()
    mean = np.einsum("k,kd->d", w, np.array(means))
    off = np.array(means) - mean
    cov = np.einsum("k,kde->de", w, np.array(covs)) + np.einsum("k,kd,ke->de", w, off, off)
    tables = {}
    for var in labelled:
        tables[var.name] = np.bincount([states[var.name] for states in rows], w, var.size)
    return log_p, tables, mean, cov, place, (w, rows, np.array(means), np.array(covs))


def evidence_from(net, rng, share=0.4):
    """Some values of one draw, as a dict."""
    row = net.sample(1, random_state=int(rng.integers(1 << 30)))
    out = {}
    for name in net.variables:
        var = net.var(name)
        if rng.random() >= share:
            continue
        if var.is_discrete:
            out[name] = row[name].iloc[0]
        elif var.dimension == 1:
            out[name] = float(row[name].iloc[0])
        else:
            out[name] = np.array([row[f"{name}[{i}]"].iloc[0] for i in range(var.dimension)])
    return out


def compare(answer, net, evidence, truth, atol=1e-9):
    """Assert that an answer has the true moments, probabilities and log p(e)."""
    log_p, tables, mean, cov, place, _ = truth
    assert np.isclose(answer.log_evidence, log_p, rtol=atol, atol=atol), (answer.log_evidence, log_p)
    for name in net.variables:
        if name in evidence:
            continue
        if net.var(name).is_discrete:
            np.testing.assert_allclose(answer[name].probabilities, tables[name], atol=atol, rtol=0)
        else:
            at = place[name]
            scale = 1.0 + np.abs(mean[at]).max() ** 2 + np.abs(cov[np.ix_(at, at)]).max()
            np.testing.assert_allclose(np.atleast_1d(answer[name].mean()), mean[at], atol=atol * scale, rtol=0)
            np.testing.assert_allclose(answer[name].cov(), cov[np.ix_(at, at)], atol=atol * scale, rtol=0)
