"""A workload played on the lab in virtual time, and what became of it. Everything here is simulated."""
