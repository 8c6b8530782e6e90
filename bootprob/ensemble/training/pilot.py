"""Which kernels of an adaptive ensemble are worth all of its bootstrap samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from bootprob.ensemble.specs import ScheduleSpec
from bootprob.ensemble.training.preparation import Prepared
from bootprob.ensemble.weighting import log_losses, pooled_weights, tempered_weights
from bootprob.intervals.shares import in_effective_rows
from bootprob.preparation.bootstrap import bootstrap_counts
from bootprob.preparation.effort import Effort
from bootprob.preparation.feature_map import kernel_error
from bootprob.preparation.labels import spaced_over_classes
from bootprob.preparation.large_tables import mapped_columns
from bootprob.preparation.view_map import ViewMap
from bootprob.runtime.arrays import Floats
from bootprob.runtime.progress import progress_bar
from bootprob_gpu import Problem, iter_fit
from bootprob_gpu.kernels.views import ViewKernels

__all__ = ["choose_kernels"]

_ROWS = 1000


def choose_kernels(
    table: Prepared,
    effort: Effort,
    spec: ScheduleSpec,
    labels: NDArray[Any],
    inside: NDArray[np.bool_],
    weight: Floats,
    training_weight: Floats,
) -> Prepared:
    """Keep the kernels, and values of C, that carry weight in a pilot of few replicates.

    The first bootstrap samples of up to 1,000 rows train every kernel with every C. What counts
    is the log-loss of the rows left out, as in the ensemble's own weights: of each kernel with its
    best C beside the others (`bootprob.ensemble.weighting.pooled_weights`), so that kernels are
    kept which add to each other. Of a large table it is that of each by itself
    (`bootprob.ensemble.weighting.tempered_weights`).

    Parameters
    ----------
    table : Prepared
        With a `ViewKernels` of all that may be chosen; others come back as they are.
    effort : Effort
    spec : ScheduleSpec
    labels : ndarray of int, shape (P, n)
        −1 or +1 for each pair of classes.
    inside : ndarray of bool, shape (P, n)
        Rows of each pair.
    weight : ndarray, shape (n,)
        Row weights.
    training_weight : ndarray, shape (n,)
        With class weights.

    Returns
    -------
    Prepared
        The same with a kernel of the parts that are kept, and of each the values of C that are
        likeliest. A large table is mapped to columns whose inner products come close to the sum of
        the parts, by their weights, and has the values of C of all together.
    """
    kernel = table.kernel
    if not isinstance(kernel, ViewKernels):
        return table
    used = np.flatnonzero((inside & (weight > 0)).any(axis=0))
    rows = used[spaced_over_classes((labels * inside)[:, used], _ROWS)]
    drawn = table.counts[: effort.tried, rows]
    if table.drawn is not None:  # of few of many rows hardly any of these are in a sample
        unlabelled = np.zeros(len(rows), dtype=np.intp)
        replicates = range(len(drawn))
        groups = (
            None if table.groups is None else np.unique(table.groups[rows], return_inverse=True)[1]
        )
        drawn, _ = bootstrap_counts(
            unlabelled, weight[rows], replicates, table.entropy, groups=groups
        )
    total = np.zeros((kernel.n_values, len(table.C)))
    of_pairs = []
    n_tried = len(labels) * kernel.n_values
    with progress_bar("Choosing kernels", n_tried, shown=spec.verbose > 0) as advance:
        for own_labels, own in zip(labels[:, rows], inside[:, rows], strict=True):
            seen = own & (weight[rows] > 0)
            if min((own_labels[seen] > 0).sum(), (own_labels[seen] < 0).sum()) == 0:
                advance(kernel.n_values)
                continue
            counts = drawn * own
            taught = in_effective_rows(weight[rows] * own)
            tried = []
            for g in range(kernel.n_values):
                problem = Problem(
                    table.rows[rows],
                    own_labels,
                    counts,
                    table.C,
                    kernel=kernel.take(slice(g, g + 1)),
                    row_weight=training_weight[rows],
                    scale=table.replicate_scale,
                )
                scores, known = _out_of_bag(problem, table, spec)
                known &= taught > 0
                positive, counted = own_labels[known] > 0, taught[known]
                total[g] += log_losses(scores[known], positive, counted)
                tried.append(scores[known])
                advance(1)
            if len(counted):
                of_pairs.append((np.stack(tried), positive, counted))
    if table.drawn is None:
        kept = _heaviest(_together(total, of_pairs), effort.kernels, effort.weight)
        likely = np.stack([tempered_weights(each) for each in total[kept]])
        values = _likely_values(table.C, likely, effort.values)
        return replace(table, kernel=kernel.take(torch.from_numpy(kept)), C=values, likely_C=likely)
    weights = tempered_weights(total.ravel()).reshape(total.shape)
    of_kernel = weights.sum(axis=1)
    kept = _heaviest(of_kernel, effort.summed, effort.weight)
    [values] = _likely_values(
        table.C, weights[kept].sum(axis=0, keepdims=True), effort.values_of_sum
    )
    chosen = replace(table, kernel=kernel.take(torch.from_numpy(kept)), C=values)
    return _mapped(chosen, of_kernel[kept], used)


def _together(
    total: Floats, of_pairs: Sequence[tuple[Floats, NDArray[np.bool_], Floats]]
) -> Floats:
    """Weights with which the kernels, each with its best C, do best together; mean over pairs.

    Of each pair there are the scores (G, m, R) of its rows, which are positive and their weights.
    """
    if not of_pairs:
        return np.full(len(total), 1 / len(total))
    every, best = np.arange(len(total)), total.argmin(axis=1)
    found = [
        pooled_weights(scores[every, :, best].T, positive, weight)
        for scores, positive, weight in of_pairs
    ]
    return np.asarray(np.mean(found, axis=0))


def _heaviest(weights: Floats, most: int, enough: float) -> NDArray[np.intp]:
    """Which have `enough` of the weight together, or `most` of them."""
    order = np.argsort(-weights, kind="stable")[:most]
    return np.sort(order[: 1 + int(np.searchsorted(np.cumsum(weights[order]), enough))])


def _likely_values(grid: Floats, weights: Floats, size: int) -> Floats:
    """Neighbours in the grid of C, as many of each kernel, that have most of its weight."""
    size = min(size, len(grid))
    within = sliding_window_view(weights, size, axis=1).sum(axis=2)
    best = within >= within.max(axis=1, keepdims=True)
    first = [each[len(each) // 2] for each in map(np.flatnonzero, best)]  # the middle one of equals
    return sliding_window_view(grid, size)[first]


def _mapped(table: Prepared, weights: Floats, used: NDArray[np.intp]) -> Prepared:
    """The same, with rows mapped by the weighted sum of the kernels; landmarks are among `used`."""
    kernels = table.kernel
    assert isinstance(kernels, ViewKernels)
    kernel = kernels.summed(torch.from_numpy(weights / weights.sum()))
    # Of a stream of its own, so that what the samples draw stays what it is.
    random_state = np.random.RandomState(np.array(table.entropy, dtype=np.uint32))
    size = min(mapped_columns(len(table.rows)), len(used))
    landmarks = used[np.sort(random_state.permutation(len(used))[:size])]
    view_map = ViewMap.fit(kernel, table.unmapped[landmarks])
    return replace(
        table,
        rows=view_map.transform(table.unmapped),
        kernel=kernel,
        candidates=kernels,
        feature_map=view_map,
        feature_map_error=kernel_error(view_map, table.unmapped[used], random_state),
    )


def _out_of_bag(
    problem: Problem, table: Prepared, spec: ScheduleSpec
) -> tuple[Floats, NDArray[np.bool_]]:
    """Mean out-of-bag scores (n, R), and the rows that have any."""
    n = len(problem.X)
    sums = torch.zeros(problem.n_models, n, dtype=torch.float64, device="cpu")
    blocks = iter_fit(
        problem,
        tol=spec.tol,
        device=table.device,
        dtype=getattr(torch, spec.dtype),
        memory_limit=spec.memory_limit,
    )
    outside = problem.counts == 0
    for block in blocks:
        assert block.train_scores is not None
        left_out = torch.from_numpy(outside[block.replicates])
        scores = block.train_scores.to("cpu", torch.float64)
        sums += (scores * left_out[:, None]).sum(0)
    count = outside.sum(axis=0)
    return (sums.numpy() / np.maximum(count, 1)).T, count > 0
