"""Find 95 % of the positives with the fewest false alarms: C₊, C₋ and γ by gradient, and by grid.

Both judge a choice by five-fold cross-validation: the false positive rate among those with a true
positive rate of 95 %, at the machines' own threshold 0. The gradient follows smooth versions of
the two rates by their closed-form derivatives (sequential quadratic programming, from the middle
of the box). The grid trains all its machines in one batch of the same engine. Grids of growing
size, from 3³ on, are timed until one takes longer than the gradient did; that one is shown too.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
import torch
from scipy.optimize import minimize

from bootprob_gpu import Problem, fit, median_gamma, model_scores
from bootprob_gpu.derivatives import differentiable_scores

WANTED, FOLDS, SMOOTH = 0.95, 5, 0.3
HIGH = np.log(2.0) * np.array([6, 6, 5])  # of log C₊, log C₋, and log γ over the median rule


def draw(rng, n):
    """Positives near the centre of two columns, negatives around; a third column helps."""
    positive = rng.random(n) < 0.3
    X = rng.normal(size=(n, 4)) * np.where(positive, 0.55, 1.3)[:, None] ** [1, 1, 0, 0]
    X[:, 2] += 0.8 * positive
    return X, positive


class CrossValidation:
    """Rates of held-out rows as functions of θ, and the best θ seen."""

    def __init__(self, X, positive, fold):
        self.X, self.positive, self.fold = torch.tensor(X), torch.tensor(positive), fold
        self.y = torch.where(self.positive, 1.0, -1.0).double()
        self.gamma, self.rows = median_gamma(X), np.arange(len(X))
        self.kept = torch.tensor(np.arange(FOLDS)[:, None] != fold)[:, None]  # (fold, 1, row)
        self.best, self.theta, self.seen = np.inf, np.zeros(3), {}

    def keep_best(self, scores, theta):
        """Rates at threshold 0 of scores (row, choice); the best choice that finds enough."""
        found = (scores[self.positive] > 0).mean(0)
        alarms = (scores[~self.positive] > 0).mean(0)
        price = np.where(found >= WANTED, alarms, np.inf)
        if price.min() < self.best:
            self.best, self.theta = price.min(), theta[price.argmin()]
        return found

    def smooth_rates(self, theta):
        """Smooth true and false positive rate (2,), their gradients (2, 3), and the true rate."""
        if theta.tobytes() in self.seen:
            return self.seen[theta.tobytes()]
        cost_positive, cost_negative, wider = torch.tensor(np.exp(theta))
        upper = torch.where(self.positive, cost_positive, cost_negative) * self.kept
        gamma = wider * self.gamma
        scores, models = differentiable_scores(self.X, self.y, upper, self.X, gamma=gamma)
        held_out = scores[self.fold, 0, self.rows]
        right = torch.sigmoid(held_out / SMOOTH)
        classes = torch.stack([self.positive, ~self.positive]).double()
        share = classes / classes.sum(1, keepdim=True)
        slopes = torch.zeros(FOLDS, 1, 2, len(self.y), dtype=torch.float64)
        slopes[self.fold, 0, :, self.rows] = (share * right * (1 - right) / SMOOTH).T
        d_upper, d_gamma = models.pullback(self.X, slopes)  # two losses, one factorisation
        by_row = (d_upper * upper[:, :, None]).sum((0, 1))
        gradient = torch.cat([by_row @ classes.T, (d_gamma.sum((0, 1)) * gamma)[:, None]], 1)
        found = self.keep_best(held_out.numpy()[:, None], theta[None])
        self.seen[theta.tobytes()] = (share @ right).numpy(), gradient.numpy(), found[0]
        return self.seen[theta.tobytes()]


def by_gradient(problem):
    """Least smooth false positive rate; the aim moves until the real rate meets the wanted one."""
    theta, aim = np.zeros(3), WANTED
    for _ in range(3):
        enough = {
            "type": "ineq",
            "fun": lambda t, aim=aim: problem.smooth_rates(t)[0][0] - aim,
            "jac": lambda t: problem.smooth_rates(t)[1][0],
        }
        theta = minimize(
            lambda t: problem.smooth_rates(t)[0][1],
            theta,
            jac=lambda t: problem.smooth_rates(t)[1][1],
            method="SLSQP",
            bounds=list(zip(-HIGH, HIGH, strict=True)),
            constraints=[enough],
            options={"maxiter": 10, "ftol": 1e-4},
        ).x
        aim += WANTED - problem.smooth_rates(theta)[2] + 0.5 / int(problem.positive.sum())
    return len(problem.seen)


def by_grid(problem, size):
    """All of ``size³`` choices in one batch."""
    axes = np.linspace(-HIGH, HIGH, size).T
    theta = np.stack(np.meshgrid(axes[2], axes[0], axes[1], indexing="ij"), -1).reshape(-1, 3)
    theta = theta[:, [1, 2, 0]]
    costs = np.exp(theta[:, :2])
    upper = np.where(problem.positive, costs[:, :1], costs[:, 1:]) * problem.kept.numpy()
    grid = Problem(
        problem.X.numpy(), problem.y.numpy(), np.ones((FOLDS, len(problem.y)), int),
        np.ones(size**2), kernel="rbf", gamma=problem.gamma * np.exp(axes[2]), upper=upper,
    )  # fmt: skip
    scores = torch.cat([part for _, part in model_scores(fit(grid), problem.X)]).numpy()
    problem.keep_best(scores[problem.fold, :, problem.rows], theta)
    return size**3


def timed(search, problem, *options):
    """Choices tried, and processor seconds taken."""
    started = time.process_time()
    return search(problem, *options), time.process_time() - started


def on_new_rows(problem, new, positive):
    """True and false positive rate of the machine trained on all rows."""
    costs = torch.tensor(np.exp(problem.theta))
    upper = torch.where(problem.positive, *costs[:2])[None, None]
    gamma = costs[2] * problem.gamma
    scores, _ = differentiable_scores(problem.X, problem.y, upper, torch.tensor(new), gamma=gamma)
    above = scores[0, 0].numpy() > 0
    return above[positive].mean(), above[~positive].mean()


def report(name, problem, tried, seconds, new):
    """One line a search: what it cost and what it found."""
    found, alarms = on_new_rows(problem, *new)
    print(
        f"  {name}: {tried:3d} choices, {seconds:5.2f} s, false alarms {problem.best:6.1%} in "
        f"cross-validation; on new rows {alarms:.1%}, found {found:.1%}"
    )


figure, ax = plt.subplots(figsize=(6, 3.5))
for seed in range(-1, 3):
    rng = np.random.default_rng(abs(seed))
    X, positive = draw(rng, 240)
    new = draw(rng, 5000)
    fold = rng.permutation(len(X)) % FOLDS
    if seed < 0:  # compile, so that no search pays for it
        by_gradient(CrossValidation(X, positive, fold))
        by_grid(CrossValidation(X, positive, fold), 2)
        continue
    print(f"sample {seed}: least false positive rate with {WANTED:.0%} of the positives found")
    ours = CrossValidation(X, positive, fold)
    tried, allowed = timed(by_gradient, ours)
    report("gradient", ours, tried, allowed, new)
    ax.plot(allowed, ours.best, "D", color=f"C{seed}", label=f"gradient, sample {seed}")
    curve = []
    for size in range(3, 12):
        theirs = CrossValidation(X, positive, fold)
        tried, seconds = timed(by_grid, theirs, size)
        report(f"grid {size}³ ", theirs, tried, seconds, new)
        curve.append((seconds, theirs.best))
        if seconds > allowed:
            break
    ax.plot(*np.transpose(curve), "o-", color=f"C{seed}", label=f"grids, sample {seed}")
ax.set(xlabel="seconds of the processor", ylabel="false positive rate, cross-validated")
ax.legend(fontsize=8)
figure.savefig("tune_by_gradient.png")
