"""What mistakes cost: the matrix of costs, decisions by it, and the cost of rules.

A `CostMatrix` says what each mistake costs, and what asking a person does.
`CostSensitiveClassifier` decides by it around any classifier; `CostMatrix.decide` decides by
probabilities alone; `cost_of_rules` says what that saves beside simpler rules. Guide:
docs/costs.md.
"""

from typing import TYPE_CHECKING

from bootprob.runtime.late_names import late_names

if TYPE_CHECKING:
    from bootprob.costs.classifier import CostSensitiveClassifier
    from bootprob.costs.decisions import Decisions
    from bootprob.costs.matrix import CostMatrix
    from bootprob.costs.rules import RuleCost, cost_of_rules

__all__ = ["CostMatrix", "CostSensitiveClassifier", "Decisions", "RuleCost", "cost_of_rules"]

__getattr__ = late_names(
    __name__,
    {
        "CostMatrix": "matrix",
        "CostSensitiveClassifier": "classifier",
        "Decisions": "decisions",
        "RuleCost": "rules",
        "cost_of_rules": "rules",
    },
)
