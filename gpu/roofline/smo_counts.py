"""What the SMO kernel of RBF models would do on a GPU, counted on a CPU.

    python -m gpu.roofline.smo_counts [--replicates 48] [--out FILE]

The walk of `bootprob_gpu.smo.triton_registers` in numba, pair by pair: iterations, rows of Gram
matrices read, gradients computed anew, and how the paths fill a GPU. Before: all rows, float64,
paths in the order of their numbers. After: rows of weight, float32 Gram matrices that float64 ones
certify, the γ that take longest first. Nothing in here is a time.
"""

from __future__ import annotations

import argparse
import heapq
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numba import njit

from bootprob.runtime.arrays import Floats, Integers
from bootprob_gpu import Problem
from gpu.check.jobs import GERMAN, batch, table
from gpu.check.plan import ROOT

__all__ = ["Walks", "counted", "makespan", "walk", "walks"]


OUT = ROOT / "docs" / "results" / "smo_counts.json"
MULTIPROCESSORS = 132  # of an H100
REPLICATES = 500  # of the job whose schedule is made from paths of those that were walked
SECTOR = 32  # bytes that memory is read by
GPU_PATHS = 8192  # of a launch, if there are: `bootprob_gpu.smo.blocks._GPU_PATHS`
CLAIMS = 16  # `bootprob_gpu.smo.batched.REFUTED`
_FAR, _SNAP, _TINY = 2.0**100, 1e-14, np.float32(1e-12)
_CHECK_EVERY, _REFRESH_EVERY, _PATIENCE = 64, 64 * 64, 256 * 64


@njit(cache=True)
def _gradient(K, y, s):  # type: ignore[no-untyped-def]
    g, rows = y.copy(), 0
    for k in range(len(s)):
        if s[k] != 0.0:
            g -= s[k] * K[k]
            rows += 1
    return g, rows


@njit(cache=True)
def _started(y, s, g, lo, hi, unchanged):  # type: ignore[no-untyped-def]
    linear, quadratic, room = 0.0, 0.0, _FAR
    for k in range(len(s)):
        linear += y[k] * s[k]
        quadratic += s[k] * (y[k] - g[k])
        if s[k] != 0.0:
            room = min(room, (hi[k] if y[k] > 0 else lo[k]) / s[k])
    t = min(linear / quadratic, room) if quadratic > 0.0 else room
    if linear <= 0.0 or unchanged:
        t = 1.0
    for k in range(len(s)):
        s[k] = min(max(s[k] * t, lo[k]), hi[k])
        s[k] = hi[k] if s[k] > hi[k] * (1.0 - _SNAP) else s[k]
        s[k] = lo[k] if s[k] < lo[k] * (1.0 - _SNAP) else s[k]
        g[k] = y[k] + t * (g[k] - y[k])


@njit(cache=True)
def _judge(y, s, g, lo, hi):  # type: ignore[no-untyped-def]
    g_max, g_min, total, count, norm, mass = -_FAR, _FAR, 0.0, 0.0, 0.0, 0.0
    for k in range(len(s)):
        g_max = max(g_max, g[k]) if s[k] < hi[k] else g_max
        g_min = min(g_min, g[k]) if s[k] > lo[k] else g_min
        if lo[k] < s[k] < hi[k]:
            total += g[k]
            count += 1.0
        norm += s[k] * (y[k] - g[k])
        mass += y[k] * s[k]
    between = g_min if g_max <= -_FAR else g_max if g_min >= _FAR else 0.5 * (g_max + g_min)
    mean = total / count if count > 0 else between
    loss_between, loss_mean = 0.0, 0.0
    for k in range(len(s)):
        width = hi[k] - lo[k]
        loss_between += width * max(y[k] * (g[k] - between), 0.0)
        loss_mean += width * max(y[k] * (g[k] - mean), 0.0)
    return 0.5 * norm + min(loss_between, loss_mean), mass - 0.5 * norm


@njit(cache=True)
def _advance(K, s, g, lo, hi, steps, touched):  # type: ignore[no-untyped-def]
    moved = 0
    while steps > 0:
        i = 0
        g_max = -_FAR
        for k in range(len(s)):
            if s[k] < hi[k] and g[k] > g_max:
                g_max, i = g[k], k
        j, found, newton = 0, np.float32(0.0), np.float32(0.0)
        for k in range(len(s)):
            if s[k] > lo[k]:
                fall = np.float32(max(np.float32(g_max - g[k]), np.float32(0.0)))
                curvature = np.float32(2.0 - 2.0 * np.float64(K[i, k]))
                step_k = np.float32(fall / max(curvature, _TINY))
                if np.float32(fall * step_k) > found:
                    j, found, newton = k, np.float32(fall * step_k), step_k
        if found <= 0.0:
            return moved, True
        touched[i] = touched[j] = True
        room_i, room_j = hi[i] - s[i], s[j] - lo[j]
        step = min(np.float64(newton), room_i, room_j)
        s[i] = hi[i] if step == room_i else s[i] + step
        s[j] = lo[j] if step == room_j else s[j] - step
        for k in range(len(s)):
            g[k] -= step * (np.float64(K[i, k]) - np.float64(K[j, k]))
        moved += 1
        steps -= 1
    return moved, False


@njit(cache=True)
def walk(K, exact, y, upper, tol, max_iter, claims, touched):  # type: ignore[no-untyped-def]
    """One path, as a program of the kernel walks it.

    Parameters
    ----------
    K : array of float32 or float64, shape (m, m)
        Gram matrix with a diagonal of ones.
    exact : array of float64, shape (m, m)
        What `K` is rounded from.
    y : array, shape (m,)
        Labels, both of which carry weight.
    upper : array, shape (R, m)
        Box bounds.
    tol : float
        Relative duality gap to reach.
    max_iter, claims : int
        Iterations of a model, and ends that `exact` may refuse, at most.
    touched : array of bool, shape (m,)
        Filled in: rows of `K` that were read.

    Returns
    -------
    dual_coef : array, shape (R, m)
    gap : array, shape (R,)
        That was reached, infinite where the model was given up.
    n_iter : array of int, shape (R,)
    renewed : array of int, shape (R,)
        Rows of `exact` that gradients were computed anew from.
    """
    R, m = upper.shape
    dual_coef, gaps = np.empty((R, m)), np.empty(R)
    n_iter, renewed = np.zeros(R, np.int64), np.zeros(R, np.int64)
    s, g, unbounded = np.zeros(m), y.copy(), False
    for r in range(R):
        hi = np.where(y > 0, upper[r], 0.0)
        lo = np.where(y > 0, 0.0, -upper[r])
        shrunk = r > 0 and (upper[r] < upper[r - 1]).any()
        _started(y, s, g, lo, hi, unbounded and not shrunk)
        it, best, best_it, fresh_it, refuted = 0, -_FAR, 0, 0, 0
        fresh, blocked = True, False
        while True:
            primal, dual = _judge(y, s, g, lo, hi)
            if dual > best:
                best, best_it = dual, it
            solved = abs(primal - dual) <= tol * primal
            final = solved or it >= max_iter or it - best_it > _PATIENCE or blocked
            final = final or refuted > claims
            if not fresh and (final or it - fresh_it >= _REFRESH_EVERY):
                g, rows = _gradient(exact, y, s)
                renewed[r] += rows
                refuted += final
                fresh, fresh_it, blocked = True, it, False
            elif final:
                break
            else:
                steps = min(max_iter - it, _CHECK_EVERY)
                moved, blocked = _advance(K, s, g, lo, hi, steps, touched)
                it += moved
                fresh = fresh and moved == 0
        n_iter[r], dual_coef[r] = it, s
        gaps[r] = (primal - dual) / primal if solved else np.inf
        touching = (((s >= hi) & (hi > 0)) | ((s <= lo) & (lo < 0))).any()
        unbounded = solved and not touching
    return dual_coef, gaps, n_iter, renewed


@dataclass
class Walks:
    """All paths of some replicates, arrays of shape (B, G) but for the sizes (B,)."""

    n: int
    sizes: Integers  # rows of weight
    sectors: Integers  # of a float32 row of all rows, that hold one of these
    n_iter: Integers
    renewed: Integers  # rows read for gradients that were computed anew
    touched: Integers  # different rows read
    largest_gap: float
    given_up: int  # models


def walks(problem: Problem, *, rounded: bool, tol: float = 1e-6) -> Walks:
    """Walk all paths of an RBF problem whose replicates hold both classes.

    Parameters
    ----------
    problem : Problem
    rounded : bool
        Iterate with Gram matrices in float32.
    tol : float, default 1e-6
        Relative duality gap to reach.
    """
    assert problem.gamma is not None
    B, G, n = problem.n_replicates, len(problem.gamma), len(problem.X)
    found = np.zeros((3, B, G), dtype=np.int64)
    sizes, sectors = np.zeros(B, np.int64), np.zeros(B, np.int64)
    largest, given_up = 0.0, 0
    for b in range(B):
        one = slice(b, b + 1)
        rows = np.flatnonzero(problem.counts[b] * problem.row_weight)
        sizes[b], sectors[b] = len(rows), len(np.unique(rows * 4 // SECTOR))
        Z = problem.X[rows] / problem.scale_of(one)[0]
        squares = (Z**2).sum(1)
        distances = np.maximum(squares[:, None] + squares - 2 * (Z @ Z.T), 0.0)
        y = problem.y_of(one)
        y = (y if y.ndim == 1 else y[0])[rows]
        upper = problem.upper_of(one)[0][:, rows].reshape(G, -1, len(rows))
        for g, gamma in enumerate(problem.gamma):
            exact = np.exp(-gamma * distances)
            K = exact.astype(np.float32) if rounded else exact
            touched = np.zeros(len(rows), np.bool_)
            claims = CLAIMS if rounded else 2**31 - 1
            _, gaps, n_iter, renewed = walk(K, exact, y, upper[g], tol, 2_000_000, claims, touched)
            found[:, b, g] = n_iter.sum(), renewed.sum(), touched.sum()
            largest = max(largest, gaps[np.isfinite(gaps)].max(initial=0.0))
            given_up += int(np.isinf(gaps).sum())
    return Walks(n, sizes, sectors, *found, largest, given_up)


def makespan(lengths: Sequence[int] | Integers, places: int) -> int:
    """Length of the schedule in which each path takes the place that becomes free first.

    Parameters
    ----------
    lengths : sequence of int
        Of the paths, in the order in which they begin.
    places : int
        Paths at work at the same time.
    """
    ends = [0] * places
    for length in lengths:
        heapq.heapreplace(ends, ends[0] + int(length))
    return max(ends)


def schedules(n_iter: Integers, gamma: Floats, places: int, block: int) -> dict[str, int]:
    """Iterations from the first launch to the end of the last, for several orders of the paths.

    Parameters
    ----------
    n_iter : array of int, shape (B, G)
        Lengths of the paths, replicate by replicate.
    gamma : array, shape (G,)
    places : int
        Paths at work at the same time.
    block : int
        Replicates in a launch.
    """
    blocks = [n_iter[start : start + block] for start in range(0, len(n_iter), block)]
    logarithm = np.log(gamma)
    middle = np.argsort(abs(logarithm - (logarithm.min() + logarithm.max()) / 2), kind="stable")
    # As `bootprob_gpu.smo.batched_paths`: by the middle of the grid, later by the block before.
    ranks = [middle] + [np.argsort(-each.sum(0), kind="stable") for each in blocks[:-1]]
    ours = zip(blocks, ranks, strict=True)
    return {
        "by number": sum(makespan(each.ravel(), places) for each in blocks),
        "hardest γ first": sum(makespan(each[:, rank].T.ravel(), places) for each, rank in ours),
        "longest path first": sum(makespan(-np.sort(-each.ravel()), places) for each in blocks),
        "no shorter than": sum(
            max(int(each.max()), -(-int(each.sum()) // places)) for each in blocks
        ),
    }


def counted(name: str, replicates: int) -> dict[str, object]:
    """Counts of one table, before and after, and with a scale that all replicates share."""
    source = table(name)
    own = batch(source, "rbf", replicates)
    assert own.gamma is not None
    one = Problem(own.X, own.y, own.counts, own.C, kernel="rbf", gamma=own.gamma)
    before, after = walks(own, rounded=False), walks(own, rounded=True)
    shared = walks(one, rounded=True)
    n, G = before.n, len(own.gamma)
    width = after.sizes[:, None].astype(float)
    copies = shared.sizes * (shared.sectors * SECTOR + shared.sizes * 4.0)
    gathered = shared.sectors[:, None] * float(SECTOR)

    def terabytes(count: Floats | float) -> float:
        return float(np.sum(count)) / 1e12

    def summary(
        found: Walks, rows_read: float, matrices: float, places: int, launched: int
    ) -> dict[str, object]:
        block = -(-launched // G)
        return {
            "models": found.n_iter.size * len(own.C),
            "iterations of a model": float(found.n_iter.mean() / len(own.C)),
            "longest path": int(found.n_iter.max()),
            "by γ": found.n_iter.mean(0).round().astype(int).tolist(),
            "rows of weight": float(found.sizes.mean()),
            "largest rows of weight": int(found.sizes.max()),
            "different rows of a path": float(found.touched.mean()),
            "rows renewed of a model": float(found.renewed.mean() / len(own.C)),
            "TB of kernel rows": rows_read,
            "MB of Gram matrices": matrices / 1e6,
            "largest gap": found.largest_gap,
            "given up": found.given_up,
            "paths on a multiprocessor": places,
            "paths of a launch": launched,
            "schedule": schedules(found.n_iter[job], own.gamma, places * MULTIPROCESSORS, block),
        }

    job = np.random.default_rng(0).integers(replicates, size=REPLICATES)
    m = int(after.sizes.max())
    rows_32 = terabytes(2.0 * after.n_iter * width * 4 + after.renewed * width * 8)
    rows_gathered = terabytes((2.0 * shared.n_iter + 2 * shared.renewed) * gathered)
    rows_copied = terabytes(2.0 * shared.n_iter * width * 4 + 2 * shared.renewed * gathered)
    places = 3 if m <= 512 else 2  # on a multiprocessor, by the registers compiled for 9.0
    return {
        "table": source.title,
        "replicates": replicates,
        "before": summary(
            before, terabytes((2.0 * before.n_iter + before.renewed) * n * 8.0),
            8.0 * G * n * n, 2, 2048,
        ),
        "after": summary(after, rows_32, G * (8.0 * m * n + 4.0 * m * m), places, GPU_PATHS),
        "after, one scale": summary(shared, rows_gathered, 12.0 * G * n * n, places, GPU_PATHS),
        "copies in place of gathering, TB": rows_copied + terabytes(copies * G),
        "copies in place of gathering, MB a replicate": G * 4.0 * m * m / 1e6,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=48)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    found = [counted(name, options.replicates) for name in ("Wisconsin", GERMAN)]
    options.out.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
