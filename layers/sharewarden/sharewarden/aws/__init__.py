"""The ports over boto3, one file a port."""
