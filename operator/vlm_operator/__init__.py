"""vlm-operator: serves vision-language models on Kubernetes GPUs from one `VLMDeployment` each."""

__version__ = "0.1.0"
