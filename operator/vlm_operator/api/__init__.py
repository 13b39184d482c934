"""The `VLMDeployment` resource: its types, the rules they obey and the CRD generated from them.

Pure. What a spec means for pods is decided in `engines` and `replicas`; here it is only read and checked.
"""

GROUP = "vlm.dev"
VERSION = "v1alpha1"
KIND = "VLMDeployment"
PLURAL = "vlmdeployments"
SHORT_NAME = "vlmd"
API_VERSION = f"{GROUP}/{VERSION}"
