"""The tutorial can be followed as it stands, and its answers are those of its commands."""

import re
import sys

import numpy as np
import pytest

from docs.studies.pictures import decision_tree
from docs.studies.pictures.what_intervals_mean import SEED, TRUTH, of_many_tables
from docs.studies.tutorial.loans import FOLDER, write_tables
from docs.studies.tutorial.study import PAGE, followed

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="wants head")


def test_its_tables_are_those_of_their_generator(tmp_path):
    write_tables(tmp_path)
    for name in ("loans", "applicants", "truth"):
        made = (tmp_path / f"{name}.csv").read_text(encoding="utf-8")
        assert made == (FOLDER / f"{name}.csv").read_text(encoding="utf-8")


def test_it_can_be_followed(tmp_path):
    page = PAGE.read_text(encoding="utf-8")
    text = followed(page, tmp_path, more=" --kernel linear --n-bootstraps 20")
    assert re.findall(r"^\$ .*$", text, re.M)[0] == "$ head -n 4 loans.csv"
    assert text.count("```") == page.count("```")
    for picture in re.findall(r"\]\(pictures/(\w+\.svg)\)", page):
        assert (tmp_path / picture).stat().st_size > 10_000
    assert len(list(tmp_path.glob("tutorial_*.svg"))) == 2


@pytest.mark.endurance
def test_its_answers_are_those_of_its_commands(tmp_path):
    def without_digits(text):  # the last of which are another processor's
        return re.sub(r"\d+", "#", re.sub(r"[ ━┏┓┳┻═]+", " ", text))

    page = PAGE.read_text(encoding="utf-8")
    assert without_digits(followed(page, tmp_path)) == without_digits(page)


def test_the_picture_of_methods_is_that_of_its_questions():
    assert decision_tree.PICTURE.read_text(encoding="utf-8") == decision_tree.svg()


@pytest.mark.endurance
@pytest.mark.filterwarnings("ignore::bootprob.exceptions.LackOfFitWarning")
def test_two_of_forty_intervals_miss_the_truth_as_the_page_says():
    bounds, _ = of_many_tables(np.random.default_rng(SEED))
    missed = (bounds[:, 0] > TRUTH) | (bounds[:, 1] < TRUTH)
    page = (PAGE.parent / "what_intervals_mean.md").read_text(encoding="utf-8")
    assert "Two of the forty miss the truth." in page
    assert f"{TRUTH:.0%}".replace("%", " %") in page
    assert missed.sum() == 2
