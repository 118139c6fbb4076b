"""Credit scoring by Gaussian process classification: who pays back, how sure is that, and what a wrong yes costs.

Applicants are made here: age, monthly income, amount, months, years with the employer, and noise that says nothing.
Whether a loan is paid back depends on the burden (rate over income) in a bent way and on age and employment.
A figure goes to demo/credit_scoring.png.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import gramgraph as gg

COLUMNS = ("age", "income", "amount", "months", "employed", "postcode")
FOLDER = Path("demo")
GAIN, LOSS = 1.0, 5.0  # interest earned on a good loan, money lost on a bad one


def applicants(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns as above, whether the loan was paid back, and the true probability of that."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 70, n)
    income = np.exp(rng.normal(7.8, 0.4, n))
    amount = np.exp(rng.normal(8.6, 0.8, n))
    months = rng.integers(6, 61, n).astype(float)
    employed = np.minimum(rng.exponential(6.0, n), age - 18)
    postcode = rng.normal(size=n)
    burden = amount / months / income
    score = 2.6 - 9.0 * burden + 0.9 * np.log1p(employed) - ((age - 48) / 16) ** 2
    p = 1.0 / (1.0 + np.exp(-score))
    X = np.column_stack([age, income, amount, months, employed, postcode])
    return X, np.where(rng.uniform(size=n) < p, "paid", "default"), p


def features(X: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Amounts of money on a log scale, every column in units of its spread among the reference."""
    logs, base = X.copy(), reference.copy()
    for c in (1, 2):
        logs[:, c], base[:, c] = np.log(X[:, c]), np.log(reference[:, c])
    return (logs - base.mean(axis=0)) / base.std(axis=0)


def log_loss(log_p: np.ndarray, y: np.ndarray, classes: np.ndarray) -> float:
    return float(-log_p[np.arange(len(y)), np.searchsorted(classes, y)].mean())


def main(n: int = 500) -> None:
    raw, y, truth = applicants(n + 2000, seed=1)
    X = features(raw, raw[:n])
    train, test = slice(0, n), slice(n, None)
    kernel = 4.0 * gg.kernels.RBF(np.full(len(COLUMNS), 2.0))
    model = gg.GaussianProcessClassifier(kernel).fit(X[train], y[train])
    good = list(model.classes_).index("paid")

    print(f"{n} loans to learn from, {(y[train] == 'paid').mean():.0%} paid back; log evidence "
          f"{model.log_marginal_likelihood_value_:.1f}")  # fmt: skip
    print("\nLength scales (a long one: the column does not matter):")
    for name, scale in sorted(zip(COLUMNS, model.kernel_.base.length_scale, strict=True), key=lambda pair: pair[1]):
        print(f"  {name:10s} {scale:10.3g}")

    averaged, plugged = (model.predict_log_proba(X[test], average=a) for a in (True, False))
    p = np.exp(averaged[:, good])
    print("\nLog loss on 2,000 new loans:")
    print(f"  averaged over the posterior   {log_loss(averaged, y[test], model.classes_):.4f}")
    print(f"  plugged in at its mean        {log_loss(plugged, y[test], model.classes_):.4f}")
    second = gg.GaussianProcessClassifier(kernel, inference="ep", link="probit").fit(X[train], y[train])
    print(
        f"  the same, by EP and probit    {log_loss(second.predict_log_proba(X[test]), y[test], second.classes_):.4f}"
    )
    print(f"  share of payers for everyone  {base_rate_loss(y[train], y[test]):.4f}")
    best = np.log(np.where(y[test] == "paid", truth[test], 1.0 - truth[test]))
    print(f"  true probabilities            {-best.mean():.4f}")

    # Say yes where the expected gain is positive: p · GAIN > (1 − p) · LOSS
    yes = p > LOSS / (GAIN + LOSS)
    profit = np.where(y[test] == "paid", GAIN, -LOSS)
    print(f"\nA yes pays {GAIN:g} or costs {LOSS:g}: lend where p > {LOSS / (GAIN + LOSS):.2f}")
    print(f"  yes to {yes.mean():.0%} of them earns {profit[yes].mean():+.2f} a loan; yes to all {profit.mean():+.2f}")

    mean, var = model.latent_mean_and_variance(X[test])
    doubtful = int(np.argmax(var))
    who = ", ".join(f"{name} {value:.0f}" for name, value in zip(COLUMNS[:5], raw[test][doubtful], strict=False))
    low, high = 1.0 / (1.0 + np.exp(-(mean[doubtful] + np.array([-2.0, 2.0]) * np.sqrt(var[doubtful]))))
    print(f"\nThe applicant the model knows least about: {who}")
    print(f"  p(paid) = {p[doubtful]:.2f}; two deviations reach from {low:.2f} to {high:.2f}: ask a person.")
    print(
        "\nReading: the evidence finds by itself that the postcode is noise, and the probabilities come close to the\n"
        "true ones. Averaged and plug-in ones differ where data are few (large amounts in the figure): there the\n"
        "average hedges. Laplace and expectation propagation nearly agree; both are on the careful side, and loans\n"
        "they think bad are worse still (right panel). Most of the profit lies in the loans that are refused."
    )
    picture(model, raw, X, y, p, good, train, test)


def base_rate_loss(known: np.ndarray, new: np.ndarray) -> float:
    share = (known == "paid").mean()
    return float(-np.log(np.where(new == "paid", share, 1.0 - share)).mean())


def picture(
    model: gg.GaussianProcessClassifier,
    raw: np.ndarray,
    X: np.ndarray,
    y: np.ndarray,
    p: np.ndarray,
    good: int,
    train: slice,
    test: slice,
) -> None:
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        print("\nmatplotlib is not installed: no figure")
        return
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(14, 4.2), layout="constrained")
    money, age = np.meshgrid(np.linspace(7.0, 10.5, 60), np.linspace(20, 70, 60))
    grid = np.tile(np.median(raw[train], axis=0), (money.size, 1))
    grid[:, 2], grid[:, 0] = np.exp(money.ravel()), age.ravel()
    Z = features(grid, raw[train])
    odds = model.predict_proba(Z)[:, good].reshape(money.shape)
    shade = left.contourf(money, age, odds, levels=np.linspace(0, 1, 11), cmap="RdYlGn")
    left.contour(money, age, odds, levels=[LOSS / (GAIN + LOSS)], colors="black")
    figure.colorbar(shade, ax=left, label="p(paid), averaged")
    left.set(xlabel="log amount", ylabel="age", title="median applicant; black: lend to the left of it")

    amounts = np.linspace(6.0, 12.0, 80)
    line = np.tile(np.median(raw[train], axis=0), (80, 1))
    line[:, 2] = np.exp(amounts)
    Z = features(line, raw[train])
    draws = 1.0 / (1.0 + np.exp(-model.sample_latent(Z, 20, random_state=0)))
    middle.plot(amounts, draws, color="#999999", linewidth=0.6)
    middle.plot(amounts, model.predict_proba(Z)[:, good], color="#c44e52", linewidth=2, label="averaged")
    middle.plot(
        amounts, model.predict_proba(Z, average=False)[:, good], "--", color="#4c72b0", linewidth=2, label="plug-in"
    )
    middle.set(xlabel="log amount", ylabel="p(paid)", ylim=(0, 1), title="20 draws of the posterior")
    middle.legend()

    bins = np.clip((p * 10).astype(int), 0, 9)
    seen = [
        (p[bins == b].mean(), (y[test][bins == b] == "paid").mean(), (bins == b).sum())
        for b in range(10)
        if (bins == b).any()
    ]
    said, happened, many = np.array(seen).T
    right.plot([0, 1], [0, 1], color="#999999")
    right.scatter(said, happened, s=4 * np.sqrt(many) + 8, color="#4c72b0")
    right.set(xlabel="said", ylabel="happened", title="calibration on new loans")
    FOLDER.mkdir(exist_ok=True)
    figure.savefig(FOLDER / "credit_scoring.png", dpi=110)
    print(f"\nFigure: {FOLDER / 'credit_scoring.png'}")


if __name__ == "__main__":
    main()
