"""What users may import: names of `bootprob` and of the folders below it, and nothing deeper.

Everything else may move. A name that is added or taken away here is a decision.
"""

import ast
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import bootprob
import bootprob_gpu

ROOT = Path(__file__).parents[1]
PUBLIC = {
    "bootprob": """
        BootprobError BootstrapClassifier BootstrapSVC ConstantColumnWarning ConstrainedSVC
        ConvexConstrainedSVC CopiedRowsWarning CostMatrix CostSensitiveClassifier DEFAULT_C
        DataError
        DoubtfulTableWarning FewRowsWarning GridEdgeWarning LackOfFitWarning LaterRowsWarning
        ModelFileError UnattainableRateError __version__ load probability_sensitivity save
    """,
    "bootprob.baselines": """
        BestCSVC PAPER_C PlattSVC PosteriorProbabilitySVC SollichSVC
    """,
    "bootprob.batch_scoring": """
        BadRow BadRowsError ScoringOptions ScoringSummary Tally load_once result_schema
        score_batches score_dataset
    """,
    "bootprob.calibration": """
        Beta CALIBRATORS Calibrator Isotonic ScoreAndVoteSigmoid Sigmoid VennAbers VoteSigmoid
        choose_calibration held_out_losses sigmoid_replicates vote_logits
    """,
    "bootprob.constrained": """
        ConstrainedProblem ConstrainedSVC ConvexConstrainedSVC Requirement Solution
    """,
    "bootprob.costs": """
        CostMatrix CostSensitiveClassifier Decisions RuleCost cost_of_rules
    """,
    "bootprob.displays": """
        ContributionsDisplay ControlDisplay ImportanceDisplay IntervalDisplay
        PartialDependenceDisplay
        ReliabilityDisplay StabilityDisplay
    """,
    "bootprob.explanation": """
        Contributions PartialDependence PermutationImportance contributions partial_dependence
        permutation_importance
    """,
    "bootprob.datasets": """
        CATALOG Dataset DatasetError FOLDER_VARIABLE NAMES Source at_hand load
    """,
    "bootprob.dea": """
        BenchmarkStudy Certificate ContributionCurve CrossEfficiency EfficiencyDistribution
        EfficiencyInterval EfficiencyResult Histograms InfeasibleSelectionError JointSelection
        OutputCorrelations OutputSelector Panel PanelError SelectionCurve SelectionGame
        SelectionRules SelectionSummary SubsetEfficiencies SupportedSelection UnitSelection
        benchmark_study contribution_curve cross_efficiency efficiency efficiency_histograms
        efficiency_interval output_correlations play_selection_game select_for_unit
        select_outputs selection_curve suggested_size summarise_curve support_histograms
        supported_selection
    """,
    "bootprob.encoding": """
        TablePreprocessor
    """,
    "bootprob.ensemble": """
        BootstrapClassifier BootstrapSVC ProbabilitySensitivity SubgroupRates conformal_p_values
        cross_fitted_proba out_of_bag_intervals out_of_bag_subgroups prediction_sets
        probability_sensitivity subgroup_rates
    """,
    "bootprob.intervals": """
        OF_SCORES OF_VOTES acceleration after_bootstrap_gram after_bootstrap_variance basic bca
        check_level check_score_method counts_gram jackknife_variance normal_quantile of_mixture
        of_votes percentile separated student_quantile studentised wald wilson
    """,
    "bootprob.metrics": """
        CalibrationBand CalibrationCurve CalibrationTest MetricInterval ReliabilityCurve Stability
        Subgroup Subgroups calibration_band calibration_line calibration_tests class_metrics
        effective_sample_size metric_intervals net_benefit reliability_curve stability
        subgroup_metrics
    """,
    "bootprob.monitoring": """
        CalibrationEvidence DriftEvidence
    """,
    "bootprob.onnx_export": """
        export_onnx register_skl2onnx
    """,
    "bootprob.persistence": """
        load save
    """,
    "bootprob.report": """
        box_plots card_of correlation_matrix model_card write_card write_dea_report write_report
        write_scored_report
    """,
    "bootprob.selection": """
        CostSensitiveSelector FeatureCosts Found KernelAlignmentSelector ParetoFront ParetoPoint
        ParetoSVC SelectionResult SelectionStability selection_stability
    """,
    "bootprob.server": """
        Limits create_app
    """,
    "bootprob.tables": """
        ColumnRoles HeldOut TableModel
    """,
    "bootprob_gpu": """
        Certificate FittedBatch InputError Kernel Problem Solver Status choose_solver fit
        iter_fit median_gamma model_scores replicate_scores resolve_device scale_gamma
        vote_shares votes
    """,
    "bootprob_gpu.derivatives": """
        differentiable_scores
    """,
}


def _public():
    """Packages with names of their own, and these."""
    for package in (bootprob, bootprob_gpu):
        folders = [each.name for each in pkgutil.iter_modules(package.__path__) if each.ispkg]
        for name in (package.__name__, *(f"{package.__name__}.{folder}" for folder in folders)):
            if names := getattr(importlib.import_module(name), "__all__", None):
                yield name, set(names)


def test_public_names_are_these():
    assert dict(_public()) == {name: set(names.split()) for name, names in PUBLIC.items()}


@pytest.mark.parametrize("package", PUBLIC)
def test_every_one_can_be_had(package):
    module = importlib.import_module(package)
    for name in PUBLIC[package].split():
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        module.no_such_name  # noqa: B018


def _shown():
    """Imports of ours in what users read: README, docs, examples and docstrings."""
    for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        text = path.read_text(encoding="utf-8")
        for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
            yield path.name, block
    for path in (ROOT / "examples").glob("*.py"):
        yield path.name, path.read_text(encoding="utf-8")


def test_documents_and_examples_import_nothing_else():
    found = 0
    for where, code in _shown():
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bootprob"):
                for alias in node.names:
                    assert alias.name in PUBLIC.get(node.module, "").split(), (where, node.module)
                    found += 1
    assert found > 50
