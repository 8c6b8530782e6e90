"""Studies of the papers' tables and figures, each with the page of docs that it writes."""
