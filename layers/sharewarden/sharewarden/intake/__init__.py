"""From what a function is handed to its use case, and back to what it answers: one module a function.

Each imports the use case of its function alone, since a cold start pays for all that is imported.
"""
