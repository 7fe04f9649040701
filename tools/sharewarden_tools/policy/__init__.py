"""A policy as people write it: read, checked, tried out on cases, described to editors."""
