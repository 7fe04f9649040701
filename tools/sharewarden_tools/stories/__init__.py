"""Stories that the local stack plays, and what must come out of them."""
