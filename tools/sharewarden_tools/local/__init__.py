"""The pieces of the template on one machine, around the real handlers."""
