"""The fitted state of a `BootstrapSVC`: every attribute is declared here, and nowhere else.

From the declarations follow what a model file holds and how it is checked
(`bootprob.persistence.layout`), which attributes have an entry for each training row, and the
section "Attributes" of the documentation. `bootprob.ensemble.fitting` makes the attributes, and
`state_of` reads them of a fitted model.

Letters of shapes are: n training rows, p columns, D columns that the models know (those of a
feature map, else p), f kernels of a feature map's sum, B replicates, R models, K classes, k rows
kept for pictures, g parts of the kernel's posterior, u curves of each, U of these and 2 linear
ones, l landmarks of it, L columns of it (landmarks and 1), s columns with scores, j steps, o both
of these, c and e directions, v knots and t thresholds of views of a column, N rows of a table that
a pair of classes shares its draws with; m and q are steps of a calibrator.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from bootprob.calibration import CALIBRATORS
from bootprob.ensemble.declarations import Attribute, array, declare, part
from bootprob.ensemble.kernels import kernel_of, kernel_of_posterior
from bootprob.exceptions import DataError
from bootprob.intervals.shares import in_effective_rows
from bootprob.preparation.bootstrap import bootstrap_counts
from bootprob.runtime.array_forms import ArrayForm
from bootprob.runtime.arrays import Floats
from bootprob.runtime.groups import one_of_each
from bootprob_gpu.kernels.function import KernelFunction

if TYPE_CHECKING:
    from bootprob.encoding.preprocessing import TablePreprocessor

__all__ = [
    "FEATURE_MAPS",
    "VIEWS",
    "State",
    "TwoClassState",
    "declared",
    "state_of",
    "two_class_state",
]


FEATURE_MAPS = {
    "nystroem": {"landmarks": part("Dp"), "normalization": part("DD")},
    "random-features": {"frequencies": part("pD"), "phases": part("D")},
    "views": {
        "landmarks": part("Dp"),
        "normalization": part("DD"),
        "gamma": part("f", "positive"),
        "shares": part("f", "a share"),
    },
}
# In the order in which the engine's Certificate takes them.
_CERTIFICATES = {
    **{name: ArrayForm("f", ("BR",), "any") for name in ("primal", "dual", "gap")},
    **{name: ArrayForm("i", ("BR",), "not negative") for name in ("n_iter", "status")},
}
_KERNEL_POSTERIOR = {
    "landmarks": part("lp"),
    "support": part("l", "not negative", kinds="i"),
    "unit": part("g", "positive"),
    "gamma": part("g gu", "not negative"),
    "prior_variance": part("g", "not negative"),
    "weight": part("g", "a share"),
    "coefficients": part("gL"),
    "quadratic": part("gLL"),
    # Of the composite posterior alone:
    "family": part("gu", "not negative", kinds="i"),
    "view": part("gu", "not negative", kinds="i"),
    "columns_of_curve": part("gup", "not negative", kinds="i"),
    "deviation": part("gU", "not negative"),
    "tails": part("g2"),
    "levels": part("g2", "a share"),
    "steep": part("g", "not negative", kinds="i"),
    "rates": part("g"),
    "shapes": part("g", "not negative", kinds="i"),
    "scored": part("s", "not negative", kinds="i"),
    "column_directions": part("pc"),
    "score_directions": part("oe"),
    "stepped": part("j", "not negative", kinds="i"),
    "thresholds": part("j"),
}
_MONITOR = {
    "rows": part("z", "not negative"),
    "positives": part("z", "not negative"),
    "numerators": part("2"),
    "pool": part("z", "not negative"),
    "capital": part("23", "not negative"),
    "values": part("3"),
}
VIEWS = {
    "knots": part("pv"),
    "scores": part("pv"),
    "thresholds": part("pt"),
    "relevance": part("p", "not negative"),
    "components": part("pa"),
}
_CALIBRATORS = {name: form for each in CALIBRATORS.values() for name, form in each.stored.items()}
_SHARED_DRAWS = {
    "classes": part("N", "not negative", kinds="i"),
    "weight": part("N", "positive or 0"),
    "rows": part("n", "not negative", kinds="i"),
    "groups": part("N", "not negative", kinds="i"),
}


class State:
    """What models of two and of several classes have."""

    # fmt: off
    classes_: NDArray[Any] = array(
        "2", """Class labels; of two, ``classes_[1]`` is the positive class.""", kinds="biufUO",
        several="K", of_pair="implied", shown="ndarray, shape (K,)")
    pair_ensembles_: list[Any] = declare(
        """Of K > 2 classes a fitted ensemble for each pair, in the order (0, 1), (0, 2), …, (1, 2),
        …, trained on the pair's rows as the classes 0 and 1; empty for two classes. With several
        classes all attributes that belong to machines, their weights and calibration are those of
        the pairs; the model itself has how the table was prepared (`center_` to `gamma_`,
        `X_fit_`), `lack_of_fit_` (of all pairs together), `y_`, `sample_weight_`, `oob_counts_`,
        and of the shape (n, K) `oob_proba_`, `oob_vote_proba_` and `oob_decision_function_`.""",
        kind=list, only="several", shown="list of BootstrapSVC")
    shared_draws_: dict[str, NDArray[Any]] | None = declare(
        """Of one of `pair_ensembles_` the "classes" and "weight" of the whole table, (N,), and
        "groups" where it has some, whose bootstrap samples it shares, and the pair's "rows" in it,
        (n,); else None.""",
        parts=_SHARED_DRAWS, absent="None", of_pair="implied", only="two")
    n_features_in_: int = declare("Number of columns seen during fit.", kind=int, of_pair="same")
    feature_names_in_: NDArray[Any] | None = array(
        "p", """Column names, where they are all strings.""", kinds="O", absent="missing",
        of_pair="implied", shown="ndarray, shape (n_features_in_,)")
    preprocessor_: TablePreprocessor | None = declare(
        """What makes the matrix that machines see of a data frame with columns of several kinds or
        gaps; None where `fit` was given plain numbers. Attributes of columns are of those of the
        matrix: ``preprocessor_.get_feature_names_out()``.""", kind=BaseEstimator,
        absent="None", of_pair="implied", shown="TablePreprocessor or None")
    center_: Floats = array(
        "p", """Mean of the training columns; 0 for "poly" with ``standardize=None``.""",
        of_pair="same")
    scale_: Floats = array(
        "p: positive", """Standard deviation of the training columns; dummies of a column of
        more than 100 levels share the root of the sum of their variances.""", of_pair="same")
    bootstrap_scale_: Floats = array(
        "Bp p: positive", """Scale of the columns of ``(X - center_) / scale_`` in each replicate,
        or that which the feature map sees.""", of_pair="same", whose="machines")
    C_: Floats = array(
        "R: positive", """C of each of the R models of a replicate; of "auto" not the same values
        for each kernel.""", of_pair="same", whose="machines")
    gamma_: Floats | None = array(
        "R: not negative", """γ of each model; None for the linear kernel and for a sum of
        kernels. The models of one γ stand together, in the order of C: whatever has the shape (R,)
        becomes a table with ``reshape(n_gamma, n_C)``.""", absent="None", of_pair="same",
        whose="machines")
    kernel_: dict[str, Any] | None = declare(
        """Of kernels other than the linear and RBF, which `gamma_` tells apart, the name
        ("kernel"), and "degree" and "coef0" where it has them. Of "auto" the "families" and "views"
        of the kernels that were chosen, in the order of `gamma_`.""", kind=dict, absent="None",
        of_pair="same", shown="dict or None", whose="machines")
    views_: dict[str, Floats] | None = declare(
        """With ``kernel="auto"`` what its views of the columns are made of:
        `bootprob_gpu.kernels.views.ColumnViews`; else None.""", parts=VIEWS, absent="None",
        of_pair="same")
    X_fit_: Floats | None = array(
        "nD", """Training rows, ``(X - center_) / scale_``, where `bootstrap_dual_coef_` needs them;
        with a feature map mapped to its D columns, else D is p; of a precomputed kernel the matrix
        of its values.""", absent="None", of_pair="rows", whose="machines")
    feature_map_: dict[str, Floats] | None = declare(
        """What the feature map is made of: "landmarks" (D, p) and "normalization" (D, D), or
        "frequencies" (p, D) and "phases" (D,). With ``kernel="auto"`` also "gamma" and "shares" of
        the kernels of `kernel_`, whose sum it is.""",
        parts={name: form for each in FEATURE_MAPS.values() for name, form in each.items()},
        absent="None", of_pair="same", whose="machines")
    feature_map_error_: dict[str, float] | None = declare(
        """How far the inner products K̃ of the mapped rows are from the kernel K, over all pairs of
        up to 300 training rows that are no landmarks: the root mean square of ``K̃ − K`` "relative"
        to that of K, and absolutely ("root_mean_square"), the "largest" of ``|K̃ − K|``, and the
        rows looked at ("n_rows"). `fit` warns from a relative error of 0.1 on; a small one is no
        guarantee (docs/guide.md).""", kind=dict, absent="None", of_pair="same",
        shown="dict of float or None", whose="machines")
    y_: NDArray[np.int64] = array(
        "n: not negative", """Training labels as 0 and 1, or 0 to K − 1.""", kinds="i",
        of_pair="rows")
    sample_weight_: Floats = array(
        "n: positive or 0", """Row weights given to `fit`, times those of a `class_weight` dict.""",
        of_pair="rows")
    groups_: NDArray[np.int64] | None = array(
        "n: not negative", """Number of the group of each training row, or of its block of time;
        None where rows are taken for independent.""", kinds="i", absent="None", of_pair="rows")
    oob_decision_function_: Floats = array(
        "n: finite or NaN", """Mean score over the replicates that did not see the row; NaN if there
        is none.""", several="nK")
    oob_vote_proba_: Floats = array(
        "n2: a share or NaN", """Out-of-bag vote shares (3.4), NaN as above.""", several="nK")
    oob_proba_: Floats = array(
        "n2: a share or NaN", """Out-of-bag calibrated probabilities, NaN as above.""",
        several="nK")
    oob_counts_: NDArray[np.int64] = array(
        "n: not negative", """Replicates that did not see the row.""", kinds="i")
    oob_class_scores_: Floats | None = array(
        "nK", """Of several classes how well each fits each training row: the least of its mean raw
        scores against each other class, all models alike, over the replicates that did not see the
        row; 0 where there are none. None of two classes, and in models of before there were
        any.""", absent="None", of_pair="implied", only="several")
    class_offsets_: Floats | None = array(
        "K: not negative", """Of several classes under control of a rate what is added to the logit
        of each class's probability before the largest decides; else None.""", absent="None",
        of_pair="implied", only="several")
    lack_of_fit_: dict[str, float] | None = declare(
        """Whether intervals promise too much: "p_value", "statistic", "n_rows", "informative_rows",
        the p-value of each test and the columns where the logit bends, of
        `bootprob.metrics.lack_of_fit.lack_of_fit`. Intervals warn below 0.01, and of fewer than
        400 informative rows. None without calibration.""", kind=dict, absent="None",
        shown="dict of float or None")
    remarks_: list[str] | None = declare(
        """What `fit` warned of in the table or in the grid of C and γ, a sentence or two each; None
        in models of before there were any.""", kind=list, absent="None", of_pair="implied",
        shown="list of str")
    later_rows_: dict[str, Any] | None = declare(
        """Where `fit` was given times, how a model of the rows before the last tenth, with the same
        parameters, does on the last tenth: `bootprob.ensemble.later_rows.measured_later`; else
        None.""", kind=dict, absent="None", of_pair="implied", shown="dict or None")
    controlled_rates_: list[dict[str, Any]] = declare(
        """For each rate what was asked for, the share of the training rows that this requires, and
        what `predict` reaches out of bag; of several classes with the position of the "class" in
        `classes_`. Empty without control.""", kind=list, of_pair="implied",
        shown="list of dict")
    n_redrawn_: int = declare(
        """Bootstrap samples drawn again because a class was missing.""", kind=int, of_pair="same")
    entropy_: list[int] = declare(
        """Seed from which `bootstrap_counts` draws the samples again.""", kind=list,
        of_pair="same", shown="list of int")
    n_drawn_: int | None = declare(
        """Rows that each bootstrap sample of a large table draws: with ``kernel="auto"`` and more
        than 3,000 rows n, or 10,000 if that is fewer (docs/adaptive.md); None elsewhere.""",
        kind=int, absent="None", of_pair="same", shown="int or None")
    estimators_: list[list[Any]] | None = declare(
        """Fitted classifiers, B lists of R; of one that was fitted before, itself.""", kind=list,
        of_pair="same", whose="classifiers", apart=True, shown="list of list of classifier")
    machines_: list[Any] | None = declare(
        """Each `BootstrapSVC` among several candidates, fitted to the same samples; they are the
        last of `candidates_`.""", kind=list, of_pair="same", whose="classifiers", apart=True,
        shown="list of BootstrapSVC")
    frame_columns_: list[dict[str, Any]] | None = declare(
        """Of a data frame what its columns were like, so that rows of files and requests can be
        given to the classifiers as that was: `bootprob.encoding.given_columns.GivenColumns`; None
        of a matrix.""", kind=list, absent="None", of_pair="same", whose="classifiers",
        shown="list of dict or None")
    candidates_: list[Any] | None = declare(
        """What the R models of each replicate are, unfitted.""", kind=list, of_pair="same",
        whose="classifiers", apart=True, shown="list of classifier")
    drawn_counts_: NDArray[np.uint16] | None = array(
        "BN: not negative", """How often each tree of a forest saw each row of the table; None where
        samples are drawn again from `entropy_`.""", kinds="u", absent="None", of_pair="same",
        whose="classifiers")
    device_: str = declare("Where the ensemble was trained.", kind=str, of_pair="same")
    versions_: dict[str, str] = declare(
        """With what it was trained.""", kind=dict, of_pair="same", shown="dict of str")
    fit_seconds_: float = declare(
        """In how many seconds it was trained.""", kind=float, of_pair="same")
    # fmt: on

    def __init__(self, attributes: Mapping[str, Any]) -> None:
        for name in _names(isinstance(self, TwoClassState)):
            setattr(self, name, attributes.get(name))

    def is_of(self, attributes: Mapping[str, Any]) -> bool:
        """Whether these are the very attributes that it was made of."""
        return all(
            getattr(self, name) is attributes.get(name)
            for name in _names(isinstance(self, TwoClassState))
        )

    @cached_property
    def kernel(self) -> KernelFunction:
        """The kernel of rows that are standardised, before a feature map."""
        if self.estimators_ is not None and self.views_ is not None:
            return kernel_of_posterior(self.views_)
        return kernel_of(self.gamma_, self.kernel_, self.views_, self.feature_map_)

    @property
    def n_replicates(self) -> int:
        """Number of bootstrap samples trained, B."""
        return self.pair_ensembles_[0].n_replicates_

    @property
    def n_classes(self) -> int:
        """Classes of the whole table, whose pair this may be."""
        shared = self.shared_draws_
        codes = self.y_ if shared is None else shared["classes"]
        return int(codes.max()) + 1

    @property
    def pair(self) -> tuple[int, int]:
        """Of two classes their numbers among those of the whole table."""
        if self.shared_draws_ is None:
            return 0, 1
        codes = self.shared_draws_["classes"][self.shared_draws_["rows"]]
        return int(codes[self.y_ == 0][0]), int(codes[self.y_ == 1][0])

    @property
    def whole_weight(self) -> Floats:
        """Row weights of the whole table."""
        return self.sample_weight_ if self.shared_draws_ is None else self.shared_draws_["weight"]

    @property
    def units(self) -> NDArray[np.bool_]:
        """Training rows of positive weight, of each group one."""
        return one_of_each(self.sample_weight_ > 0, self.groups_)

    def bootstrap_counts(self) -> NDArray[np.uint16]:
        """Draw the bootstrap samples of the fit again, shape (B, n): how often each row occurs."""
        drawn, groups = self.shared_draws_, self.groups_
        if self.drawn_counts_ is not None:
            return self.drawn_counts_ if drawn is None else self.drawn_counts_[:, drawn["rows"]]
        codes, weight = self.y_, self.sample_weight_
        if drawn is not None:
            codes, weight, groups = drawn["classes"], drawn["weight"], drawn.get("groups")
        replicates = range(self.n_replicates)
        counts, _ = bootstrap_counts(
            codes, weight, replicates, self.entropy_, self.n_drawn_, groups
        )
        return (counts if drawn is None else counts[:, drawn["rows"]]).astype(np.uint16)


class TwoClassState(State):
    """What models of two classes have besides: machines, weights, calibration."""

    # fmt: off
    accuracy_: Floats = array(
        "BR: a share or NaN", """Out-of-bag accuracy of each model; NaN for a replicate that left no
        row out.""")
    weights_: Floats = array("R: a share", "Weight of each model of the grid in the ensemble.")
    bootstrap_intercept_: Floats = array(
        "BR", """Intercepts of all models, on ``(X - center_) / scale_``.""", stored="intercept_",
        whose="machines")
    bootstrap_coef_: Floats | None = array(
        "BRD", """Coefficients of linear models, on ``(X - center_) / scale_``, where D is p; with a
        feature map on its D columns.""", absent="None", stored="coef_", whose="machines")
    bootstrap_dual_coef_: Floats | None = array(
        "BRn", """Dual coefficients of RBF models and of linear models with more columns than
        rows.""", absent="None", stored="dual_coef_", whose="machines")
    certificates_: dict[str, NDArray[Any]] = declare(
        """"primal" and "dual" objective, relative "gap", "n_iter" and "status"
        (`bootprob_gpu.Status`) of every model.""", parts=_CERTIFICATES,
        shown="dict of ndarray, each of shape (B, R)", whose="machines")
    candidate_units_: Floats | None = array(
        "R2", """Slope and intercept that make log-odds of the scores of several candidates; None
        of one.""", absent="None", whose="classifiers")
    score_scale_: Floats = array(
        "B: positive", """Replicate scores are ``score / score_scale_ + score_offset_``, which gives
        all replicates the same mean and mean absolute deviation out of bag, and probability one
        half at 0; 1 and 0 without calibration.""")
    score_offset_: Floats = array("B", "See `score_scale_`.")
    oob_score_variance_: Floats = array(
        "n: not negative or NaN", """Variance of the out-of-bag scores of a row; NaN with fewer than
        two replicates.""")
    oob_jackknife_variance_: Floats = array(
        "n: not negative or NaN", """Variance of the mean score by the infinitesimal jackknife; NaN
        as above.""")
    oob_kernel_logits_: Floats | None = array(
        "ng2", """Mean and standard deviation of each training row's true logit under the g parts of
        `kernel_posterior_`, its own label left out.""", absent="None")
    posterior_slope_: float | None = declare(
        """With ``kernel="auto"`` what a unit of the posterior's own logit adds to every replicate's
        score; None where the posterior has no share in it.""", kind=float, absent="None",
        shown="float or None")
    posterior_share_: float | None = declare(
        """Weight of the posterior's own logit beside the machines'; None as above.""", kind=float,
        absent="None", shown="float or None")
    oob_model_scores_: Floats = array(
        "nR", """Mean raw score of each training row under each model over the replicates that did
        not see it, neither weighted nor scaled; 0 where there are none.""")
    calibration_: str | None = declare(
        """The calibration in use; differs from the parameter with "auto".""", kind=str,
        absent="None")
    calibrator_: dict[str, Floats] = declare(
        """What the calibrator is made of; empty for the sigmoid.""", parts=_CALIBRATORS,
        absent="empty")
    sigmoid_: tuple[float, float] = declare(
        """Slope and intercept of the out-of-bag sigmoid.""", kind=tuple, shown="tuple of float")
    sigmoid_information_: Floats = array("22", "Its Fisher information.")
    sigmoid_replicates_: Floats = array("B2", "What resampling the rows does to it.")
    true_logit_: Floats = array(
        "4", """What the interval "corrected" is made of:
        `bootprob.ensemble.uncertainty.true_logit.TrueLogit`.""")
    recalibration_: dict[str, Floats] | None = declare(
        """What `recalibrated` learnt since the fit: "coefficients" (intercept and slope of the
        logit), their "covariance", and what of it intervals hold already, "replaced"; else
        None.""",
        parts={"coefficients": part("2"), "covariance": part("22"), "replaced": part("22")},
        absent="None")
    monitor_: dict[str, Floats] | None = declare(
        """Where `watched` has seen rows: what is known of them, and the evidence that they are no
        longer those of the fit (`bootprob.ensemble.updates`); else None.""",
        parts=_MONITOR, absent="None")
    history_: list[dict[str, Any]] | None = declare(
        """What `watched` and `recalibrated` have found since the fit, an entry each; None if they
        were never called.""", kind=list, absent="None", of_pair="implied",
        shown="list of dict or None")
    kernel_posterior_: dict[str, NDArray[Any]] = declare(
        """What the kernel and the labels say of true logits, for the interval "corrected":
        `bootprob.ensemble.uncertainty.kernel_posterior.KernelPosterior`, or with ``kernel="auto"``
        `bootprob.ensemble.uncertainty.composite_posterior.CompositePosterior`. Empty for the linear
        kernel, and without calibration.""", parts=_KERNEL_POSTERIOR, absent="empty")
    counts_gram_: Floats = array(
        "BB", """Inner products of the centred bootstrap counts, for the infinitesimal
        jackknife.""")
    vote_thresholds_: Floats = array(
        "R", """Score above which a model votes for ``classes_[1]``; 0 but for
        ``control="threshold"``.""")
    score_threshold_: float = declare(
        """How far control has moved the scores down: the calibrated logit of a row is
        ``sigmoid_[0] · (decision_function + score_threshold_) + sigmoid_[1]``.""", kind=float)
    undecided_between_: Floats | None = array(
        "2: a share", """Where ``rates`` has "decided": the probability up to which a row is decided
        ``classes_[0]``, and that above which it is decided ``classes_[1]``; else None.""",
        absent="None")
    control_gap_: Floats | None = array(
        "BR: any", """With ``control="constrained"``: ``(objective − bound) / objective`` of each
        machine. No machine that keeps the constraints is better by more. The bound is the optimum
        without constraints, or what the exact method proves.""", absent="None", whose="machines")
    sampled_rows_: NDArray[np.int64] = array(
        "k: not negative", """Up to 20 training rows, evenly spaced over the out-of-bag scores.""",
        kinds="i")
    sampled_scores_: Floats = array(
        "kB: finite or NaN", """Their replicate scores, NaN where the replicate saw the row.""")
    # fmt: on

    @property
    def n_replicates(self) -> int:
        """Number of bootstrap samples trained, B."""
        return len(self.score_scale_)

    def calibration_rows(self) -> tuple[NDArray[np.bool_], Floats, NDArray[np.bool_], Floats]:
        """Which training rows the calibrator was fitted to; their scores, labels and weights."""
        scores, used = self.oob_decision_function_ + self.score_threshold_, self.sample_weight_ > 0
        taught = np.isfinite(scores) & used
        weight = in_effective_rows(self.sample_weight_)[taught]
        return taught, scores[taught], self.y_[taught] == 1, weight


def state_of(model: Any) -> State:
    """Read a model; an error of scikit-learn's says that it is not fitted.

    A DataError says that it is none of this package.
    """
    if not hasattr(model, "fit_seconds_"):  # scikit-learn's own look at a fitted one takes longer
        check_is_fitted(model)
    if not hasattr(model, "pair_ensembles_"):
        raise DataError(
            f"{type(model).__name__} is no model of bootprob; BootstrapClassifier makes one around "
            "a classifier of your own."
        )
    return (State if model.pair_ensembles_ else TwoClassState)(vars(model))


def two_class_state(model: Any, what: str) -> TwoClassState:
    """The same of what is of two classes alone; a DataError says so of several.

    Parameters
    ----------
    model : BootstrapSVC
    what : str
        What is asked for, in the plural.
    """
    state = state_of(model)
    if not isinstance(state, TwoClassState):
        rows = "" if state.preprocessor_ is None else " (with preprocessor_.transform(X))"
        raise DataError(
            f"The model has {len(state.classes_)} classes, and {what} are of two; ask one of "
            f"pair_ensembles_{rows}, or fit one class against the rest."
        )
    return state


def declared(
    state: type[State] = TwoClassState, of: Literal["machines", "classifiers"] | None = "machines"
) -> dict[str, Attribute]:
    """Attributes of models of two classes, or of several (`State`), by name.

    Of ensembles of support vector machines, of other classifiers, or (None) of either.
    """
    found = {} if state is State else declared(State, of)
    own = {name: each for name, each in vars(state).items() if isinstance(each, Attribute)}
    return found | {name: a for name, a in own.items() if of is None or a.whose in ("all", of)}


@cache
def _names(of_two: bool) -> tuple[str, ...]:
    """Of all attributes; without the cache they would be looked for at every prediction."""
    return tuple(declared(TwoClassState if of_two else State, None))
