"""What it means when the API server does not carry out an action."""

import re
from dataclasses import dataclass

from vlm_operator.engines.failures import Cause, Waiting

ADMISSION_REFUSED = "AdmissionRefused"
"""The API server refused the object: a quota, a LimitRange, Pod Security or another admission check."""
PERMISSION_MISSING = "PermissionMissing"
"""The operator may not do it: its role lacks a permission."""
ADMISSION = Cause(
    reason=ADMISSION_REFUSED,
    meaning="the API server does not take the pod: a quota, a LimitRange, Pod Security or a webhook is against it",
    seen_in="answer of the API server",
    advice="raise the quota, or change spec.podTemplate.resources; the message has the API server's words",
    waiting=Waiting.MAY_HELP,
)
REFUSED = frozenset({ADMISSION_REFUSED, PERMISSION_MISSING})

_NO_RIGHT = re.compile(r'User "[^"]*" cannot \w+ resource ')
_NO_RIGHT_TO_OWN = "a resource you can't set finalizers on"
_NAMESPACE_ENDS = "because it is being terminated"
_KIND_NOT_KNOWN_YET = "cannot find RESTMapping"


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """The API server's no. It is at most one of `by_admission`, `namespace_ends` and `passing`."""

    code: int
    message: str
    retry_after: float = 0.0
    """Seconds that the API server asked to wait."""

    @property
    def by_admission(self) -> bool:
        """Whether the object itself was refused (quota, LimitRange, Pod Security, webhook, validation, no permission).

        Trying again at once is useless then.
        """
        return self.code in {400, 403, 422} and not self.namespace_ends and not self.passing

    @property
    def namespace_ends(self) -> bool:
        """Whether the namespace is being deleted, and everything in it with it."""
        return self.code == 403 and _NAMESPACE_ENDS in self.message

    @property
    def passing(self) -> bool:
        """Whether the same call may succeed a little later: no answer, overload, an error of the server.

        Where owner references are checked, the API server refuses those to a kind whose CRD is some seconds old.
        """
        return self.code in {0, 429} or self.code >= 500 or (self.code == 403 and _KIND_NOT_KNOWN_YET in self.message)

    @property
    def lacks_permission(self) -> bool:
        """Whether a permission of the operator is missing."""
        return self.code == 403 and (_NO_RIGHT_TO_OWN in self.message or bool(_NO_RIGHT.search(self.message)))

    @property
    def reason(self) -> str:
        """The reason in one word, of what is refused by admission."""
        return PERMISSION_MISSING if self.lacks_permission else ADMISSION_REFUSED

    @property
    def sentence(self) -> str:
        """The API server's words, and the way out where they do not tell it."""
        if not self.lacks_permission:
            return self.message
        lacking = "update vlmdeployments/finalizers" if _NO_RIGHT_TO_OWN in self.message else "this permission"
        return f"{self.message}; give {lacking} to the operator's ServiceAccount"
