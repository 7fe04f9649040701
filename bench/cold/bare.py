"""The least that any function over the same three services does before its first event."""

import boto3

for service in ("dynamodb", "sqs", "batch"):
    boto3.client(service)
