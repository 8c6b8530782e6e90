"""Labelled rows of which a composite posterior knows nothing yet."""

from __future__ import annotations

import numpy as np
import torch
from numpy.random import Generator
from scipy.special import expit

from bootprob.ensemble.uncertainty.composite_model import Model
from bootprob.ensemble.uncertainty.composite_stage import Stage
from bootprob.ensemble.uncertainty.curves import Landmarks, candidates
from bootprob.ensemble.uncertainty.labelled_rows import LabelledRows
from bootprob.ensemble.uncertainty.straight import straight_columns
from bootprob.preparation.views import view_kernels
from bootprob.runtime.arrays import Bools, Floats

__all__ = ["stage_of", "stage_of_a_product"]


def stage_of(
    rows: Floats, positive: Bools, n_landmarks: int, weight: Floats | None = None
) -> Stage:
    """The first rows are landmarks."""
    weight = np.ones(len(rows)) if weight is None else weight
    data = LabelledRows.of(rows, positive, weight, torch.device("cpu"))
    kernels = view_kernels(rows, np.ones(len(rows)))
    landmarks = Landmarks(data.rows[:n_landmarks], kernels.of_columns)
    straight = straight_columns(data, kernels.of_columns)
    curved = candidates(kernels, landmarks)
    return Stage(data, Model(landmarks, straight, curved, base=data.base))


def stage_of_a_product(rng: Generator, n: int, n_landmarks: int) -> Stage:
    """Of n rows with four columns, whose logit is bent by a product of two."""
    rows = rng.normal(size=(n, 4))
    positive = rng.uniform(size=n) < expit(rows[:, 0] + 2 * rows[:, 1] * rows[:, 2])
    return stage_of(rows, positive, n_landmarks, weight=rng.uniform(0.5, 1.5, size=n))
