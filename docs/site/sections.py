"""The order of the examples in the gallery."""

__all__ = ["SECTIONS"]

SECTIONS = {
    "First steps": [
        "undecided_rows",
        "classes_of_wine",
        "hardest_digits",
        "several_classes",
        "table_with_gaps",
    ],
    "How sure is a probability?": [
        "thesis_and_beyond",
        "more_rows",
        "far_from_all_rows",
        "truth_that_bends",
        "sets_of_digits",
        "how_good_on_new_rows",
    ],
    "Calibration": [
        "reliability_of_svc",
        "calibrators",
        "rare_class",
        "around_a_forest",
    ],
    "Decisions": [
        "decide_by_cost",
        "cost_of_each_loan",
        "rate_that_holds",
        "constrained_rates",
        "tune_by_gradient",
    ],
    "Why?": [
        "why_this_patient",
        "columns_that_count",
        "one_column_followed",
        "columns_worth_their_cost",
    ],
    "Rows that belong together": [
        "visits_of_patients",
        "world_that_changes",
    ],
    "Kernels": [
        "kernel_of_the_table",
        "boundaries",
    ],
    "Other": [
        "score_on_spark",
        "benchmark_units",
    ],
}
