"""What people see of a training run."""

from trainfabric_cdk.observability.dashboard import TrainingDashboard

__all__ = ["TrainingDashboard"]
