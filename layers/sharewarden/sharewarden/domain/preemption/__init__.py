"""Care of one preempted attempt: its case, who pushed it out, what was lost, how it went on."""
