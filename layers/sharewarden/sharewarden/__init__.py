"""Sharewarden: the controller around AWS Batch quota management for SageMaker Training."""
