"""The commands, in the order of the page."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["COMMANDS", "Command"]

_FIT = (
    "bootprob fit known.csv --target churn --drop signed_up "
    "--kernel linear --n-bootstraps 20 --seed 0"
)
_ASK = "curl -s localhost:8000/predict -H 'Content-Type: application/json' -d "


@dataclass(frozen=True)
class Command:
    """What is typed, and why.

    Attributes
    ----------
    about : str
        A sentence before it.
    line : str
        What is typed, as a shell takes it.
    trained : bool
        Whether it trains a model or needs one.
    how : {"run", "interrupt", "serve"}
        Interrupted by Ctrl-C once it trains, or asked by the next lines while it runs.
    most : int, optional
        Lines of its answer that the page shows; by default all.
    """

    about: str
    line: str
    trained: bool = False
    how: str = "run"
    most: int | None = None

    def shown(self, said: str) -> str:
        """What the page shows of what was said."""
        lines = said.splitlines()
        if self.most is None or len(lines) <= self.most:
            return said
        return "\n".join([*lines[: self.most], "…"])


COMMANDS = (
    Command("What is there?", "bootprob --help"),
    Command("Something is missing.", "bootprob fit"),
    Command("", "bootprob fit customers.csv"),
    Command("", "bootprob fit customers.csv --target churn"),
    Command("Names that are not there.", "bootprob fit custmers.csv --target churn -o churn.model"),
    Command("", "bootprob fit customers.csv --target Churn -o churn.model"),
    Command("", "bootprob fit known.csv --target churn --positive Yes -o churn.model"),
    Command("", "bootprob fti customers.csv"),
    Command("A folder is no table.", "bootprob fit data --target churn -o churn.model"),
    Command("Nor is an empty file.", "bootprob fit empty.csv --target churn -o churn.model"),
    Command(
        "A text file of another name.", "bootprob fit customers.txt --target churn -o churn.model"
    ),
    Command(
        "An Excel file that was called CSV.", "bootprob fit book.csv --target churn -o churn.model"
    ),
    Command(
        "Customers of whom nobody knows yet whether they leave.",
        "bootprob fit customers.csv --target churn -o churn.model",
    ),
    Command("Only those who left.", "bootprob fit leavers.csv --target churn -o churn.model"),
    Command("A quantity is no class.", "bootprob fit known.csv --target income -o income.model"),
    Command(
        "The model in place of the table.", "bootprob fit known.csv --target churn -o known.csv"
    ),
    Command(
        "The model in place of another table.", "bootprob fit known.csv --target churn -o new.csv"
    ),
    Command(
        "A folder that is not there.", "bootprob fit known.csv --target churn -o models/churn.model"
    ),
    Command(
        "Ctrl-C while it trains: nothing is written.",
        "bootprob fit known.csv --target churn --n-bootstraps 5000 -o churn.model",
        trained=True,
        how="interrupt",
    ),
    Command("It works. 20 bootstrap samples are few, and quick.", f"{_FIT} -o churn.model", True),
    Command(
        "The same of an Excel file.",
        f"{_FIT.replace('.csv', '.xlsx')} -o excel.model",
        trained=True,
        most=3,
    ),
    Command(
        "More than two classes.",
        "bootprob fit flowers.csv --target species --all-classes --kernel linear --n-bootstraps 20 "
        "--seed 0 -o flowers.model",
        trained=True,
        most=2,
    ),
    Command(
        "Those of whom nobody knows.", "bootprob predict churn.model new.csv -o predicted.csv", True
    ),
    Command("", "head -n 3 predicted.csv", True),
    Command("A column is missing.", "bootprob predict churn.model without_age.csv -o o.csv", True),
    Command(
        "A column more, and a value that was not there.",
        "bootprob predict churn.model other.csv -o o.csv",
        True,
    ),
    Command("Words instead of numbers.", "bootprob predict churn.model words.csv -o o.csv", True),
    Command("The wrong way round.", "bootprob predict new.csv churn.model -o o.csv"),
    Command("Into the table that is read.", "bootprob predict churn.model new.csv -o new.csv"),
    Command("Into a workbook.", "bootprob predict churn.model new.csv -o predicted.xlsx"),
    Command("A percentage.", "bootprob predict churn.model new.csv --level 95 -o o.csv"),
    Command("A report of the model,", "bootprob report churn.model -o churn.html", True),
    Command("of what was predicted,", "bootprob report predicted.csv -o predicted.html", True),
    Command("of a table that was not,", "bootprob report new.csv -o new.html"),
    Command("and as a PDF.", "bootprob report churn.model -o churn.pdf"),
    Command("Why?", "bootprob explain churn.model new.csv -o why.csv", True),
    Command("For other programs.", "bootprob export churn.model -o churn.onnx", True),
    Command("Any number of rows.", "bootprob score churn.model new.csv -o scored/", True),
    Command("The same again.", "bootprob score churn.model new.csv -o scored/", True),
    Command("Over HTTP,", "bootprob serve churn.model", True, "serve", most=2),
    Command(
        "asked from another window,",
        f"{_ASK}"
        '\'{"records": [{"age": 45, "income": 3000, "region": null, "contract": "monthly"}]}\'',
        True,
    ),
    Command(
        "and asked in vain.",
        f"{_ASK}"
        '\'{"records": [{"age": "old", "income": 3000, "region": "west", "contract": "yearly"}]}\'',
        True,
    ),
)
