"""The steps of the preemption workflow, one module each. ``frame.py`` takes one; ``start.py`` opens cases."""
