"""Which of many configurations of one thing are tested in ``make test``.

The others, marked so, are in ``make endurance``.
"""

from collections.abc import Sequence
from itertools import combinations, product

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

# What parameters can change: what is learnt, and what the learnt gives. Names, tags and parameters
# are the class's, and it looks at its input before the parameters matter.
OF_PARAMETERS = {
    "check_class_weight_classifiers",
    "check_classifiers_classes",
    "check_classifiers_one_label",
    "check_classifiers_one_label_sample_weights",
    "check_decision_proba_consistency",
    "check_dict_unchanged",
    "check_dont_overwrite_parameters",
    "check_estimators_overwrite_params",
    "check_estimators_pickle",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit_idempotent",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_non_transformer_estimators_n_iter",
    "check_sample_weight_equivalence_on_dense_data",
}


# Of these, those that fit no more than two tables of two classes.
OF_FEW_FITS = {
    "check_classifiers_one_label",
    "check_classifiers_one_label_sample_weights",
    "check_decision_proba_consistency",
    "check_estimators_pickle",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
}


def parametrize_with_configurations(
    whole: list[BaseEstimator],
    others: list[BaseEstimator],
    slow: Sequence[BaseEstimator] = (),
    expected_failed_checks=None,
) -> pytest.MarkDecorator:
    """All of scikit-learn's checks of ``whole``; of ``others``, those alone that parameters change.

    ``others`` are further configurations of a class that is checked as a whole, here or elsewhere;
    of ``slow`` ones, seconds a fit, those checks alone that fit little. The rest of their checks is
    left to ``make endurance``. Draws are fixed: few votes may rank rows as scores do not.
    """
    for each in (*whole, *others, *slow):
        if "random_state" in each.get_params(deep=False):
            each.set_params(random_state=0)
    every = parametrize_with_checks(
        [*whole, *others, *slow], expected_failed_checks=expected_failed_checks
    )
    names, cases = every.args
    chosen = []
    for case in cases:
        case = case if hasattr(case, "marks") else pytest.param(*case)
        estimator, check = case.values
        is_quick = (
            any(estimator is one for one in whole)
            or (any(estimator is one for one in others) and _of_parameters(check))
            or (check.func.__name__ in OF_FEW_FITS and not check.keywords)
        )
        if not is_quick:
            case = pytest.param(*case.values, marks=[*case.marks, pytest.mark.endurance])
        chosen.append(case)
    return pytest.mark.parametrize(names, chosen, **every.kwargs)


def _of_parameters(check) -> bool:
    name, options = check.func.__name__, check.keywords
    # Of its three kinds of rows, those that are hardest to take.
    if name == "check_classifiers_train":
        return options == {"readonly_memmap": True, "X_dtype": "float32"}
    return name in OF_PARAMETERS and not options


def parametrize_covering(strength: int, /, **axes: Sequence[object]) -> pytest.MarkDecorator:
    """All combinations of values in ``make endurance``, and in ``make test`` those that cover them.

    Any ``strength`` values of different axes occur together in one of them at least: 2 for what
    depends on two of the axes at most.
    """
    every = list(product(*(range(len(values)) for values in axes.values())))

    def covered(case: tuple[int, ...]) -> set[object]:
        return set(combinations(enumerate(case), strength))

    missing = set().union(*map(covered, every))
    quick = set()
    while missing:
        quick.add(most := max(every, key=lambda case: len(covered(case) & missing)))
        missing -= covered(most)
    return pytest.mark.parametrize(
        tuple(axes),
        [
            pytest.param(
                *(values[k] for values, k in zip(axes.values(), case, strict=True)),
                marks=() if case in quick else pytest.mark.endurance,
            )
            for case in every
        ],
    )
