"""Submit a training job to a quota share with plain boto3.

On AWS your profile and Region say where. On your own machine start `sharewarden local serve` in one shell,
copy the `export` lines that it prints into another, and run this there:

    python examples/submit_with_boto3.py my-run --share background
"""

import argparse
import json
import sys

import boto3
from botocore.exceptions import BotoCoreError, ClientError


def main() -> None:
    options = parse()
    payload = {
        "TrainingJobName": options.name,
        "RoleArn": "arn:aws:iam::123456789012:role/Training",
        "AlgorithmSpecification": {"TrainingImage": options.image, "TrainingInputMode": "FastFile"},
        "ResourceConfig": {"InstanceType": options.instance, "InstanceCount": 1, "VolumeSizeInGB": 50},
        "OutputDataConfig": {"S3OutputPath": "s3://three-team-output/models"},
        # Preemption can reach a lending share: without this every preemption starts from zero.
        "CheckpointConfig": {"S3Uri": f"s3://three-team-checkpoints/{options.name}"},
        "StoppingCondition": {"MaxRuntimeInSeconds": 86_400},
    }
    try:
        answer = boto3.client("batch").submit_service_job(
            jobName=options.name,
            jobQueue=options.queue,
            quotaShareName=options.share,
            schedulingPriority=options.priority,
            serviceJobType="SAGEMAKER_TRAINING",
            serviceRequestPayload=json.dumps(payload),
            tags={"team": "research"},
        )
    except (ClientError, BotoCoreError) as error:
        sys.exit(f"not submitted: {error}")
    print(answer["jobId"])


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Submit a training job to a quota share.")
    parser.add_argument("name", help="name of the job")
    parser.add_argument("--queue", default="ml-train-qm")
    parser.add_argument("--share", default="background")
    parser.add_argument("--priority", type=int, default=100)
    parser.add_argument("--instance", default="ml.g5.xlarge")
    parser.add_argument("--image", default="123456789012.dkr.ecr.us-east-1.amazonaws.com/train:1")
    return parser.parse_args()


if __name__ == "__main__":
    main()
