"""Prediction sets against their definition, and against the inequality that they rest on."""

from collections import Counter
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from bootprob import BootstrapSVC
from bootprob.ensemble.conformal import (
    conformal_p_values,
    p_values,
    prediction_sets,
    sets_of,
)
from bootprob.exceptions import DataError
from bootprob.runtime.row_blocks import row_blocks
from linear_models import linear


class Replicates:
    """What p-values are made of, state and mixture in one, with scores that are given.

    `X` is a column of row numbers; the score of row number x in a replicate is ``scores[x]``. The
    training rows have the numbers `rows`.
    """

    def __init__(self, scores, y, counts, rows):
        self.scores = scores.mean(axis=1)  # of the models alike: (rows, B)
        self.y_ = np.asarray(y)
        self.counts = counts  # (B, n)
        self.sample_weight_ = np.ones(len(y))
        self.groups_ = None
        outside = counts.T == 0
        times = np.maximum(outside.sum(axis=1), 1)
        self.left_out = (self.scores[rows] * outside).sum(axis=1) / times

    def bootstrap_counts(self):
        return self.counts

    def out_of_bag_scores(self):
        return self.left_out

    def replicate_scores(self, X):
        rows = np.asarray(X)[:, 0].astype(int)
        for start in range(0, len(rows), 7):
            yield self.scores[rows[start : start + 7]]


def numbers(rows):
    return np.asarray(rows, dtype=float)[:, None]


def by_definition(scores_of_new, scores_of_train, y, counts, weight, class_conditional):
    """p-values (m, 2) of one row, one label and one training row at a time; scores (rows, B)."""
    p = np.empty((len(scores_of_new), 2))
    for j, new in enumerate(scores_of_new):
        for label, sign in ((0, -1), (1, 1)):
            rows = np.flatnonzero((weight > 0) & ((y == label) | (not class_conditional)))
            no_better = 0
            for i in rows:
                left_out = counts[:, i] == 0
                fit = (1 if y[i] else -1) * scores_of_train[i, left_out].sum()
                no_better += fit <= sign * new[left_out].sum() + 1e-9
            p[j, label] = (1 + no_better) / (1 + len(rows))
    return p


@pytest.fixture
def table(rng):
    X = rng.normal(size=(40, 3))
    y = (X @ [1.0, -1.0, 0.5] + rng.normal(size=40) > 0.4).astype(int)
    y[:4] = 0, 1, 0, 1
    return X, y


@pytest.mark.parametrize("class_conditional", [False, True])
class TestDefinition:
    @pytest.mark.parametrize("n_bootstraps", [3, 25])
    @pytest.mark.parametrize(
        "kernel", [{"kernel": "linear"}, {"kernel": "rbf", "gamma": [0.1, 1.0]}]
    )
    def test_equal_weights(self, table, rng, kernel, n_bootstraps, class_conditional):
        X, y = table
        weight = rng.choice([0.0, 1.0, 2.5], 40, p=[0.2, 0.5, 0.3])
        weight[:4] = 1.0
        model = linear(
            C=[0.1, 1.0], n_bootstraps=n_bootstraps, random_state=int(rng.integers(99)), **kernel
        ).fit(X, y, weight)
        new = rng.normal(size=(15, 3))
        p = conformal_p_values(model, new, class_conditional=class_conditional)
        scores = [np.concatenate(list(model.bootstrap_scores(Z))).mean(axis=1) for Z in (new, X)]
        counts = model.bootstrap_counts()
        expected = by_definition(*scores, y, counts, weight, class_conditional)
        np.testing.assert_allclose(p, expected)
        if n_bootstraps == 3:
            assert (model.oob_counts_ == 0).any()
        for level in (0.5, 0.9):
            sets = prediction_sets(model, new, level, class_conditional=class_conditional)
            np.testing.assert_array_equal(sets, expected > 1 - level + 1e-12)

    def test_weights_of_ones_own(self, table, rng, class_conditional):
        X, y = table
        model = BootstrapSVC(
            kernel="linear", C=[0.1, 1.0, 10.0], n_bootstraps=20, random_state=0
        ).fit(X, y)
        alone = BootstrapSVC(kernel="linear", C=10.0, n_bootstraps=20, random_state=0).fit(X, y)
        new = rng.normal(size=(9, 3))
        given = {"class_conditional": class_conditional}
        of_one = conformal_p_values(model, new, weights=[0, 0, 3], **given)
        np.testing.assert_allclose(of_one, conformal_p_values(alone, new, **given))

    @pytest.mark.parametrize(
        "parameters",
        [{}, {"calibration": None}, {"control": "threshold", "rates": {"tpr": 0.9}}],
        ids=str,
    )
    def test_the_ensembles_weights(self, table, rng, parameters, class_conditional):
        X, y = table
        model = linear(n_bootstraps=25, random_state=1, **parameters).fit(X, y)
        plain = BootstrapSVC(kernel="linear", n_bootstraps=25, random_state=1).fit(X, y)
        new = rng.normal(size=(9, 3))
        p = conformal_p_values(model, new, weights="ensemble", class_conditional=class_conditional)
        judge = plain if "control" in parameters else model
        scores = [
            np.concatenate(list(judge.bootstrap_scores(Z))).transpose(0, 2, 1)
            @ judge.weights_
            / judge.score_scale_
            + judge.score_offset_
            for Z in (new, X)
        ]
        counts = judge.bootstrap_counts()
        expected = by_definition(*scores, y, counts, np.ones(40), class_conditional)
        np.testing.assert_allclose(p, expected)


@pytest.mark.parametrize("class_conditional", [False, True])
@pytest.mark.parametrize("weights", ["equal", "ensemble", "own"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
class TestSeveralClasses:
    def test_definition(self, rng, kernel, weights, class_conditional):
        """One new row, one class and one training row at a time."""
        n, names = 45, np.array(["c", "a", "b"])
        X = rng.normal(size=(n, 3))
        y = names[np.argmax(X + 0.7 * rng.normal(size=(n, 3)), axis=1)]
        y[:9] = np.tile(names, 3)
        row_weight = rng.choice([0.0, 1.0, 2.0], n)
        row_weight[:9] = 1.0
        model = BootstrapSVC(kernel=kernel, C=[0.1, 1.0], gamma=0.3, n_bootstraps=8, random_state=3)
        model.fit(X, y, row_weight)
        new = rng.normal(size=(11, 3))
        chosen = [0.25, 0.75] if weights == "own" else weights
        found = conformal_p_values(model, new, weights=chosen, class_conditional=class_conditional)
        left_out = model.bootstrap_counts() == 0
        counted = (row_weight > 0) & left_out.any(axis=0)
        margins = [self.margins(model, Z, chosen) for Z in (X, new)]
        codes = np.searchsorted(model.classes_, y)
        expected = np.empty((11, 3))
        for j, k in np.ndindex(11, 3):
            rows = (row_weight > 0) & ((codes == k) | (not class_conditional))
            no_better = (rows & ~counted).sum()  # never left out
            for i in np.flatnonzero(rows & counted):
                own, others = (
                    min(of[a][b][at, left_out[:, i]].mean() for b in range(3) if b != a)
                    for of, at, a in ((margins[0], i, codes[i]), (margins[1], j, k))
                )
                no_better += own <= others + 1e-9
            expected[j, k] = (1 + no_better) / (1 + rows.sum())
        np.testing.assert_allclose(found, expected)
        sets = model.prediction_sets(
            new, 0.8, weights=chosen, class_conditional=class_conditional, allow_empty=False
        )
        np.testing.assert_array_equal(sets, self.filled(expected, 0.2))

    @staticmethod
    def margins(model, X, chosen):
        """Scores (rows, B) for class a against b."""
        found = {a: {} for a in range(3)}
        for (a, b), pair in zip(((0, 1), (0, 2), (1, 2)), model.pair_ensembles_, strict=True):
            raw = np.concatenate(list(pair.bootstrap_scores(X)))
            if chosen == "ensemble":
                scores = np.einsum("mrb,r->mb", raw, pair.weights_) / pair.score_scale_
                scores = scores + pair.score_offset_ + pair.score_threshold_
            else:
                own = [0.5, 0.5] if chosen == "equal" else chosen
                scores = np.einsum("mrb,r->mb", raw, own)
            found[b][a], found[a][b] = scores, -scores
        return found

    @staticmethod
    def filled(p_values, alpha):
        sets = p_values > alpha + 1e-12
        best = p_values == p_values.max(axis=1, keepdims=True)
        return np.where(sets.any(axis=1, keepdims=True), sets, best)


class TestGuarantee:
    """Of n + 1 rows, 2 α (n + 1) at most can be left out of their own sets, whatever the scores.

    The bootstrap samples are drawn from all n + 1 rows. Each row in turn is new, and the model
    is made of the samples without it: their number is then random as the theorem wants it, and
    exchangeability gives the coverage from this count.
    """

    @pytest.mark.parametrize("ties", [False, True])
    @pytest.mark.parametrize("class_conditional", [False, True])
    def test_few_rows_can_be_missed(self, rng, class_conditional, ties):
        n = 24
        for _ in range(20):
            y = rng.permutation(np.repeat([0, 1], [n - 9, 9]))
            B = int(rng.integers(4, 60))
            counts = np.array([np.bincount(rng.integers(n, size=n), minlength=n) for _ in range(B)])
            # The hardest case: models that differ much, and know the rows they saw by heart.
            sign = 2 * y[:, None, None] - 1
            scores = rng.normal(size=(n, 1, B)) + sign * rng.normal(size=(1, 1, B))
            scores += 3 * sign * (counts.T[:, None] > 0)
            scores = scores.round() if ties else scores
            rates = [0.1, 0.25, 0.4]
            missed = {rate: Counter() for rate in rates}
            for new in range(n):
                others = np.delete(np.arange(n), new)
                without = counts[:, new] == 0
                if not without.any():
                    continue  # nothing to compare by: the row is in every set
                model = Replicates(
                    scores[:, :, without], y[others], counts[np.ix_(without, others)], others
                )
                [p] = p_values(model, [model], numbers([new]), class_conditional=class_conditional)
                p = p[y[new]]
                for rate in rates:
                    missed[rate][y[new]] += p <= rate + 1e-12
            for rate in rates:
                if class_conditional:
                    for label, size in ((0, n - 9), (1, 9)):
                        assert missed[rate][label] <= 2 * rate * size
                else:
                    assert missed[rate].total() <= 2 * rate * n

    def test_constant_scores_cover(self, rng):
        n, B = 60, 30
        y = (rng.random(n + 400) < 0.3).astype(int)
        y[:2] = 0, 1
        counts = np.array([np.bincount(rng.integers(n, size=n), minlength=n) for _ in range(B)])
        for constant in (0.0, 0.7, -0.7):
            model = Replicates(np.full((n + 400, 1, B), constant), y[:n], counts, np.arange(n))
            new = numbers(range(n, n + 400))
            of_classes = p_values(model, [model], new, class_conditional=True)
            assert sets_of(of_classes, 0.9).all()
            sets = sets_of(p_values(model, [model], new, class_conditional=False), 0.9)
            assert (sets == sets[0]).all()
            # The class on the wrong side is left out only where it is rare enough.
            share = (y[:n] == (constant < 0)).mean()
            assert sets[0].all() or share < 0.1


class TestSets:
    def test_a_higher_level_gives_larger_sets(self, table, rng):
        X, y = table
        model = BootstrapSVC(kernel="linear", n_bootstraps=30, random_state=0).fit(X, y)
        new = rng.normal(size=(50, 3))
        sets = [prediction_sets(model, new, level) for level in (0.5, 0.8, 0.9, 0.99)]
        for smaller, larger in pairwise(sets):
            assert (smaller <= larger).all()
        assert sets[-1].all()  # 1 / (n + 1) is above 1 % with 40 rows

    def test_a_class_with_too_few_rows_is_in_every_set_of_its_own(self, rng):
        X = rng.normal(size=(60, 2)) + 4
        y = np.zeros(60, int)
        X[:5] -= 8
        y[:5] = 1
        model = BootstrapSVC(kernel="linear", n_bootstraps=40, random_state=0).fit(X, y)
        new = np.full((3, 2), 4.0)
        sets = prediction_sets(model, new, 0.9, class_conditional=True)
        assert sets[:, 1].all()

    def test_non_empty_sets_get_the_better_label_and_no_more(self, table, rng):
        X, y = table
        model = BootstrapSVC(kernel="linear", n_bootstraps=30, random_state=0).fit(X, y)
        new = rng.normal(size=(200, 3))
        sets = prediction_sets(model, new, 0.3)
        filled = prediction_sets(model, new, 0.3, allow_empty=False)
        p = conformal_p_values(model, new)
        empty = ~sets.any(axis=1)
        assert empty.any()
        np.testing.assert_array_equal(filled[~empty], sets[~empty])
        np.testing.assert_array_equal(
            filled[empty], p[empty] == p[empty].max(axis=1, keepdims=True)
        )

    def test_far_apart_classes_are_told_apart(self, rng):
        y = np.repeat([0, 1], 30)
        X = rng.normal(size=(60, 2)) + 20 * y[:, None]
        model = BootstrapSVC(kernel="linear", n_bootstraps=30, random_state=0).fit(X, y)
        # Columns of rows at the centres: they fit better than any training row.
        sets = prediction_sets(model, [[-1.0, -1.0], [21.0, 21.0]], 0.9)
        np.testing.assert_array_equal(sets, [[True, False], [False, True]])

    @pytest.mark.parametrize("scale", [1e-6, 1e6])
    def test_units_of_the_columns_do_not_matter(self, table, rng, scale):
        X, y = table
        new = rng.normal(size=(20, 3))
        p = []
        for by in (1.0, scale):
            model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X * by, y)
            p.append(conformal_p_values(model, new * by))
        np.testing.assert_allclose(*p, atol=1.5 / 41)  # of solving to tolerance

    @pytest.mark.parametrize(
        "X",
        [np.zeros((20, 2)), np.ones((20, 1)), np.repeat(np.eye(2), 10, axis=0), np.eye(20, 40)],
        ids=["constant", "one column", "two points", "more columns than rows"],
    )
    def test_ugly_rows(self, X, rng):
        y = rng.permutation(np.repeat([0, 1], 10))
        model = BootstrapSVC(kernel="linear", n_bootstraps=15, random_state=0).fit(X, y)
        for weights in ("equal", "ensemble"):
            p = conformal_p_values(model, X, weights=weights)
            assert ((p >= 1 / 21) & (p <= 1)).all()
        if (X[0] == X).all():
            sets = prediction_sets(model, X, 0.9, class_conditional=True)
            assert sets.all()

    def test_two_rows_of_a_class(self, rng):
        X = rng.normal(size=(12, 2))
        y = np.zeros(12, int)
        y[:2] = 1
        model = BootstrapSVC(kernel="linear", n_bootstraps=15, random_state=0).fit(X, y)
        p = conformal_p_values(model, X, class_conditional=True)
        assert set((p[:, 1] * 3).round(9)) <= {1.0, 2.0, 3.0}

    def test_rows_in_blocks(self, table, rng, monkeypatch):
        X, y = table
        model = BootstrapSVC(kernel="linear", n_bootstraps=20, random_state=0).fit(X, y)
        new = rng.normal(size=(30, 3))
        both = {"class_conditional": False}, {"class_conditional": True}
        expected = [conformal_p_values(model, new, **given) for given in both]
        small = partial(row_blocks, at_once=60)  # three training rows, twenty new ones
        monkeypatch.setattr("bootprob.ensemble.conformal.row_blocks", small)
        for p, given in zip(expected, both, strict=True):
            np.testing.assert_array_equal(conformal_p_values(model, new, **given), p)

    def test_float32(self, table, rng):
        X, y = table
        new = rng.normal(size=(20, 3))
        p = [
            conformal_p_values(
                BootstrapSVC(kernel="rbf", n_bootstraps=20, random_state=0, dtype=dtype).fit(X, y),
                new,
            )
            for dtype in ("float64", "float32")
        ]
        np.testing.assert_allclose(*p, atol=2.5 / 41)


class TestBadInput:
    @pytest.fixture
    def model(self, table):
        return BootstrapSVC(kernel="linear", n_bootstraps=10, random_state=0).fit(*table)

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({"level": 1.0}, "level is 1.0"),
            ({"level": "high"}, "level is 'high'"),
            ({"weights": "accuracy"}, "give 'equal', 'ensemble' or 11 numbers"),
            ({"weights": [1.0, 2.0]}, "11 numbers"),
            ({"weights": np.zeros(11)}, "not all 0"),
            ({"weights": -np.ones(11)}, "at least 0"),
            ({"weights": np.full(11, np.nan)}, "at least 0"),
        ],
        ids=str,
    )
    def test_options(self, model, table, given, words):
        with pytest.raises(DataError, match=words):
            prediction_sets(model, table[0], **given)

    def test_rows(self, model, table):
        for X in ([[np.nan, 0.0, 0.0]], [[1.0]], np.empty((0, 3)), [["a", "b", "c"]]):
            with pytest.raises(ValueError, match=r"NaN|features|minimum|convert"):
                prediction_sets(model, X)

    def test_not_fitted(self):
        with pytest.raises(NotFittedError):
            prediction_sets(BootstrapSVC(kernel="linear"), [[0.0]])
