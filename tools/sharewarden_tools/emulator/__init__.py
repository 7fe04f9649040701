"""The built template, deployed by the real SAM CLI into a local AWS, with the lab for Batch and SageMaker."""
