"""Which method do I need: the questions of docs/which_method.md as a picture.

python -m docs.studies.pictures.decision_tree
"""

from __future__ import annotations

from html import escape

from gpu.benchmarks.common.places import DOCS

__all__ = ["PICTURE", "main", "svg"]

PICTURE = DOCS / "pictures" / "which_method.svg"
_WIDTH, _LINE, _LEFT, _RIGHT = 560, 22, 20, 262
_INK, _LINES, _ASKED, _TOLD = "#1d2733", "#7d8690", "#eef2f5", "#fdeee3"

# A question, and its answers: what applies, and what is then used.
_QUESTIONS = [
    (
        ["Do rows belong together?"],
        [
            ("several rows of one patient", "fit(X, y, groups=…)"),
            ("rows in order of time", "fit(X, y, time=…)"),
            ("no", "fit(X, y)"),
        ],
    ),
    (
        ["Is there a model already?"],
        [
            ("yours: forest, pipeline, …", "BootstrapClassifier(model)"),
            ("none, or an SVC", "BootstrapSVC()"),
        ],
    ),
    (
        ["What do you need?"],
        [
            ("a probability", "predict_proba"),
            ("how sure that probability is", "proba_interval"),
            ("which classes are possible", "prediction_sets"),
            ("mistakes that cost differently", "CostSensitiveClassifier"),
            ("a rate that must hold", 'control="threshold"'),
            ("how good the model is", "metric_intervals"),
            ("why this probability", "contributions"),
            ("which columns are worth it", "CostSensitiveSelector"),
        ],
    ),
]


def svg() -> str:
    """The picture: questions one below the other, beside each its answers."""
    parts, y = [], 16
    for place, (question, answers) in enumerate(_QUESTIONS):
        if place:
            parts.append(f'<path d="M{_LEFT + 90} {y - 26}v26" marker-end="url(#end)"/>')
        parts.append(_box(_LEFT, y, 300, question, _ASKED, "bold"))
        top = y + 17
        y += 44
        for applies, used in answers:
            middle = y + 17
            parts.append(f'<path d="M{_LEFT + 12} {top + 17}V{middle}h14"/>')
            parts.append(f'<text x="{_LEFT + 32}" y="{middle + 5}">{escape(applies)}</text>')
            parts.append(_box(_RIGHT + 26, y, 252, [used], _TOLD, "code"))
            y += 40
        y += 30
    height = y - 22
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'font-family="sans-serif" font-size="15" fill="{_INK}" role="img">'
        "<title>Which method do I need?</title>"
        "<style>path{fill:none;stroke:" + _LINES + ";stroke-width:1.4}"
        ".bold{font-weight:bold;font-size:16px}.code{font-family:monospace;font-size:14px}</style>"
        '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
        f'markerHeight="8" orient="auto"><path d="M0 0l8 4l-8 4" style="fill:{_LINES}"/></marker>'
        f'</defs><rect width="{_WIDTH}" height="{height}" rx="8" fill="#fff"/>'
        + "".join(parts)
        + "</svg>\n"
    )


def _box(x: int, y: int, width: int, lines: list[str], colour: str, kind: str) -> str:
    text = "".join(
        f'<text x="{x + 12}" y="{y + 22 + _LINE * k}" class="{kind}">{escape(line)}</text>'
        for k, line in enumerate(lines)
    )
    height = 34 + _LINE * (len(lines) - 1)
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="5" fill="{colour}"/>{text}'


def main() -> None:
    """Draw it."""
    PICTURE.write_text(svg(), encoding="utf-8")


if __name__ == "__main__":
    main()
