"""Out-of-bag metrics: from calibrators that did not see the row, and what that is worth."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from bootprob import BootstrapSVC
from bootprob.calibration import CALIBRATORS, Sigmoid
from bootprob.calibration.cross_fitting import CrossFitted
from bootprob.ensemble import out_of_bag_intervals
from bootprob.ensemble.out_of_bag_proba import (
    controlled_decisions,
    cross_fitted_proba,
    out_of_bag_ranks,
)
from bootprob.exceptions import DataError
from bootprob.metrics import metric_intervals
from linear_models import linear


def of_rows(rng, n=60, n_positive=20):
    """Scores, vote logits, labels and weights as a calibrator takes them."""
    positive = rng.permutation(np.arange(n) < n_positive)
    return rng.normal(positive), rng.normal(positive), positive, rng.uniform(0.5, 2, n)


def cross_fitted(kind, scores, votes, *known):
    return CrossFitted.fit(kind, scores, votes, *known).predict(scores, votes)


def with_row(i, scores, votes, positive, weight, before=None):
    """Which rows are in the fold of row i, (n,): those that do not feel its weight change."""
    heavier = weight.copy()
    heavier[i] *= 2
    if before is None:
        before = cross_fitted(Sigmoid, scores, votes, positive, weight)
    return cross_fitted(Sigmoid, scores, votes, positive, heavier) == before


class TestCrossFitting:
    def test_a_row_does_not_teach_its_own_fold_and_teaches_all_others(self, rng):
        given = of_rows(rng, 40)
        before = cross_fitted(Sigmoid, *given)
        together = np.array([with_row(i, *given, before=before) for i in range(40)])
        assert together.diagonal().all()
        np.testing.assert_array_equal(together, together.T)
        folds = np.unique(together, axis=0)
        assert folds.shape == (10, 40)
        assert (folds.sum(axis=0) == 1).all()
        given[2][:] = ~given[2]  # folds do not know labels
        np.testing.assert_array_equal(with_row(0, *given), together[0])
        assert (folds.sum(axis=1) == 4).all()

    @pytest.mark.parametrize("name", CALIBRATORS)
    def test_probabilities_are_those_of_a_calibrator_of_the_other_folds(self, rng, name):
        scores, votes, positive, weight = of_rows(rng)
        found = cross_fitted(CALIBRATORS[name], scores, votes, positive, weight)
        for i in range(5):
            fold = with_row(i, scores, votes, positive, weight)
            fitted = CALIBRATORS[name].fit(*(v[~fold] for v in (scores, positive, weight, votes)))
            np.testing.assert_array_equal(found[fold], fitted.predict(scores[fold], votes[fold]))

    @pytest.mark.parametrize("name", CALIBRATORS)
    @pytest.mark.parametrize(("n", "n_positive"), [(2, 1), (5, 1), (40, 1), (40, 39), (30, 2)])
    def test_few_rows(self, rng, name, n, n_positive):
        scores, _, positive, weight = of_rows(rng, n, n_positive)
        for values in (scores, np.zeros(n), 5.0 * positive, np.full(n, 1e6)):
            p = cross_fitted(CALIBRATORS[name], values, values, positive, weight)
            assert ((p > 0) & (p < 1)).all()


def table(rng, n=80):
    X = rng.normal(size=(n, 3))
    y = np.where(rng.random(n) < expit(X @ [1.5, -1.0, 0.0]), "yes", "no")
    y[:4] = "no", "yes", "no", "yes"
    weight = rng.choice([0.0, 1.0, 2.5], n, p=[0.1, 0.6, 0.3])
    weight[:4] = 1.0
    return X, y, weight


OPTIONS = {"C": [0.1, 1.0], "n_bootstraps": 30, "random_state": 0}


class TestOfModels:
    @pytest.mark.parametrize("calibration", [*CALIBRATORS, "auto"])
    def test_metrics_are_made_of_them(self, rng, calibration):
        X, y, weight = table(rng, 240)  # enough that every tenth matters little
        model = linear(calibration=calibration, **OPTIONS).fit(X, y, weight)
        p = cross_fitted_proba(model)
        known = weight > 0
        np.testing.assert_array_equal(np.isnan(p), ~known)
        assert (p != model.oob_proba_[:, 1])[known].any()
        # Nearly the model's own: a calibrator of nine tenths of the rows, not of other scores.
        assert np.corrcoef(p[known], model.oob_proba_[known, 1])[0, 1] > 0.9
        found = out_of_bag_intervals(model, 0.8, "bca", seed=3)
        truth, of_rows = y[known] == "yes", {"sample_weight": weight[known]}
        assert found["log_loss"].value == pytest.approx(log_loss(truth, p[known], **of_rows))
        assert found["brier_score"].value == pytest.approx(
            brier_score_loss(truth, p[known], **of_rows)
        )
        ranks = out_of_bag_ranks(model)
        assert found["auc"].value == pytest.approx(roc_auc_score(truth, ranks[known], **of_rows))
        assert found == metric_intervals(y == "yes", p, weight, 0.8, "bca", ranks=ranks, seed=3)
        assert found == model.metric_intervals(0.8, "bca", seed=3)

    @pytest.mark.parametrize("calibration", ["sigmoid", "isotonic", "venn-abers", "beta"])
    def test_rows_are_ranked_as_scores_are(self, rng, calibration):
        X, y, weight = table(rng)
        model = linear(calibration=calibration, **OPTIONS).fit(X, y, weight)
        ranks, scores = out_of_bag_ranks(model), model.oob_decision_function_
        np.testing.assert_array_equal(np.argsort(ranks), np.argsort(scores))

    def test_votes_need_no_calibrator(self, rng):
        X, y, weight = table(rng)
        model = BootstrapSVC.paper(**OPTIONS).fit(X, y, weight)
        np.testing.assert_array_equal(cross_fitted_proba(model), model.oob_vote_proba_[:, 1])
        np.testing.assert_array_equal(out_of_bag_ranks(model), model.oob_vote_proba_[:, 1])

    def test_control_moves_decisions_and_not_probabilities(self, rng):
        X, y, weight = table(rng)
        plain = linear(**OPTIONS).fit(X, y, weight)
        model = linear(control="threshold", rates={"tpr": 0.95}, **OPTIONS).fit(X, y, weight)
        # Scores are moved and moved back, and the calibrators are fitted anew.
        np.testing.assert_allclose(cross_fitted_proba(model), cross_fitted_proba(plain), rtol=1e-6)
        decided = model.oob_proba_[:, 1] > model.decision_threshold_
        np.testing.assert_array_equal(controlled_decisions(model), decided)
        assert controlled_decisions(plain) is None
        reached = model.controlled_rates_[0]["out_of_bag"]
        assert out_of_bag_intervals(model)["sensitivity"].value == pytest.approx(reached)

    def test_rows_never_out_of_bag_are_counted(self, rng):
        X, y, _ = table(rng)
        model = BootstrapSVC(kernel="linear", C=1.0, n_bootstraps=4, random_state=0).fit(X, y)
        never = int((model.oob_counts_ == 0).sum())
        assert never > 0
        assert {m.n_left_out for m in out_of_bag_intervals(model).values()} == {never}

    def test_one_row_out_of_bag_is_refused_like_one_class(self, rng):
        X, y, _ = table(rng)
        model = BootstrapSVC(kernel="linear", C=1.0, n_bootstraps=4, random_state=0).fit(X, y)
        for rows, words in (([0], "No row has both"), (y == "no", "all of one class")):
            scores = np.full(80, np.nan)
            scores[rows] = model.oob_decision_function_[rows]
            scores[0] = 0.3
            changed = BootstrapSVC(kernel="linear")
            changed.__dict__ = {**vars(model), "oob_decision_function_": scores}
            with pytest.raises(DataError, match=words):
                out_of_bag_intervals(changed)


def test_it_takes_away_what_calibrators_flatter_themselves_with():
    """Log-loss out of bag less that on 4,000 new rows, which the same model gives."""
    optimism = {name: [] for name in ("sigmoid", "isotonic", "venn-abers")}
    generator = np.random.default_rng(0)
    for seed in range(12):
        X = generator.normal(size=(4200, 5))
        chance = expit(X @ [1.0, -0.8, 0.6, 0.4, 0.0])
        y = (generator.random(4200) < chance).astype(int)
        for calibration, found in optimism.items():
            model = BootstrapSVC(
                kernel="linear",
                C=[0.1, 1.0],
                n_bootstraps=40,
                calibration=calibration,
                random_state=seed,
            ).fit(X[:200], y[:200])
            new = log_loss(y[200:], model.predict_proba(X[200:]))
            own = log_loss(y[:200], model.oob_proba_)
            found.append([own - new, out_of_bag_intervals(model)["log_loss"].value - new])
    for name, found in optimism.items():
        own, cross = np.mean(found, axis=0)
        error = np.std(np.diff(found), ddof=1) / np.sqrt(12)
        assert cross - own > 3 * error, name
    for name, least in (("isotonic", 0.05), ("venn-abers", 0.025)):
        own, cross = np.mean(optimism[name], axis=0)
        assert cross - own > least
        # What is left is what a sigmoid has too: the luck of these twelve training sets.
        assert abs(cross - np.mean(optimism["sigmoid"], axis=0)[1]) < 0.3 * (cross - own)
