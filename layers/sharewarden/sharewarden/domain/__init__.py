"""Pure facts and decisions: no boto3, no clock, no environment.

All times are epoch milliseconds (int), as AWS Batch gives them.
"""
