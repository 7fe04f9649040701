"""Can a bump help? From a frozen view of one queue's pool to an answer with its reasons.

``view`` is what is looked at, ``capacity`` the books of one instance type, ``reading`` what Batch does with
them, ``can_help`` the answer, ``levers`` what would help instead.
"""
