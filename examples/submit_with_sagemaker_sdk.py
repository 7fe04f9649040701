"""Submit a training job to a quota share with the SageMaker Python SDK, as it comes from PyPI.

The SDK is about 1 GB and wants an environment of its own: `pip install -r requirements-sagemaker.txt` there.
On AWS your profile and Region say where. On your own machine start `make deploy-local` in one shell, copy the
`export` lines that it prints into another, and run this there:

    .venvs/sagemaker/bin/python examples/submit_with_sagemaker_sdk.py my-run --share background
"""

import argparse

from sagemaker.train.aws_batch.training_queue import TrainingQueue
from sagemaker.train.configs import CheckpointConfig, Compute, OutputDataConfig, StoppingCondition
from sagemaker.train.model_trainer import ModelTrainer


def main() -> None:
    options = parse()
    trainer = ModelTrainer(
        base_job_name=options.name,
        training_image=options.image,
        role=options.role,
        compute=Compute(instance_type=options.instance, instance_count=1, volume_size_in_gb=50),
        stopping_condition=StoppingCondition(max_runtime_in_seconds=86_400),
        output_data_config=OutputDataConfig(s3_output_path="s3://three-team-output/models"),
        # A folder of its own for each job: the SDK would keep the one that it makes up for later jobs, too.
        checkpoint_config=CheckpointConfig(s3_uri=f"s3://three-team-checkpoints/{options.name}"),
        hyperparameters=dict(pair.split("=", 1) for pair in options.hyperparameter),
    )
    job = TrainingQueue(options.queue).submit(
        trainer,
        inputs=None,
        job_name=options.name,
        quota_share_name=options.share,
        priority=options.priority,
        tags={"team": "research"},
    )
    print(job.job_arn)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Submit a training job to a quota share.")
    parser.add_argument("name", help="name of the job")
    parser.add_argument("--queue", default="ml-train-qm")
    parser.add_argument("--share", default="background")
    parser.add_argument("--priority", type=int, default=100, help="at least 1: the SDK leaves 0 out")
    parser.add_argument("--instance", default="ml.g5.xlarge")
    parser.add_argument("--image", default="123456789012.dkr.ecr.us-east-1.amazonaws.com/train:1")
    parser.add_argument("--role", default="arn:aws:iam::123456789012:role/Training")
    parser.add_argument("--hyperparameter", action="append", default=[], metavar="NAME=VALUE")
    return parser.parse_args()


if __name__ == "__main__":
    main()
