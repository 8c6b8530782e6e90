"""What is done to docstrings before they are parsed."""

from docs.site.docstring_text import each_by_itself, with_links

TEXT = """Do it.

Parameters
----------
inputs, outputs
    What units use
    and make.
level : float
    Of the interval.
**first, second
    Others.

Returns
-------
left, right
    Together they stay.
"""


def test_parameters_described_together_are_described_one_by_one():
    found = each_by_itself(TEXT)
    together = "    What units use\n    and make.\n"
    assert f"inputs\n{together}outputs\n{together}level : float\n" in found
    assert "**first\n    Others.\nsecond\n    Others.\n\nReturns\n" in found
    assert "\nleft, right\n" in found
    assert each_by_itself(found) == found


def test_the_last_section_and_texts_without_one():
    assert each_by_itself("Parameters\n----------\na, b\n    Both.").endswith("b\n    Both.\n")
    assert each_by_itself("Nothing, of this.\n    Kind.") == "Nothing, of this.\n    Kind."


def test_pages_are_linked_by_their_titles():
    assert with_links("docs/costs.md has it.") == "[Costs instead of rates](../costs.md) has it."
