"""Every pattern of the resource together with what it means in words.

The words are what people read: the API server shows them (as the message of a CEL rule beside the bare pattern), and so
do findings. The syntax is what RE2 (the API server), Rust's regex (pydantic) and CEL strings have in common: no
look-around, no classes such as digit or space by backslash (ASCII in one, Unicode in the other), no single quote.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Pattern:
    """A regular expression and its meaning."""

    regex: str
    meaning: str
    """What a value must be, to complete the sentence "the field ..."."""
    familiar: bool = False
    """Whether Kubernetes itself shows this pattern to its users, so that the API server need not explain it."""


_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_SEGMENT = r"\.*[A-Za-z0-9_@=+-][A-Za-z0-9_.@=+-]*"
_CRON_FIELD = "[A-Za-z0-9*,/?-]+"
_COUNT = "(0|[1-9][0-9]{0,3})"
# The digits allowed with each unit keep values below about 10^15, so that every canonical spelling matches again.
_NUMBERS_WITH_UNIT = "|".join(
    rf"[0-9]{{1,{digits - 1}}}([0-9]|\.[0-9]{{1,3}})?({units})"
    for digits, units in ((12, "Ki|k"), (9, "Mi|M"), (6, "Gi|G"), (3, "Ti|T"))
)

DURATION = Pattern(
    r"^([0-9]{1,5}(\.[0-9]{1,3})?(s|m|h)|[0-9]{1,8}ms){1,4}$",
    "must be a duration, for example 90s, 5m or 1h30m",
)
MEMORY = Pattern(
    rf"^([0-9]{{1,15}}|{_NUMBERS_WITH_UNIT})$",
    "must be a number of bytes with a unit of Kubernetes, for example 48Gi or 49152Mi",
)
QUANTITY = Pattern(
    rf"^([0-9]{{1,15}}(\.[0-9]{{1,3}})?|[0-9]{{1,18}}m|{_NUMBERS_WITH_UNIT})$",
    "must be a Kubernetes quantity, for example 4, 500m or 16Gi",
    familiar=True,
)
DNS_LABEL = Pattern(
    f"^{_LABEL}$",
    "must be lower-case letters, digits and -, with a letter or digit at both ends",
    familiar=True,
)
SUBDOMAIN = Pattern(
    f"^{_SUBDOMAIN}$",
    "must be lower-case letters, digits, - and ., with a letter or digit at both ends",
    familiar=True,
)
DATA_KEY = Pattern("^[-._a-zA-Z0-9]+$", "must be letters, digits, ., - and _", familiar=True)
LABEL_KEY = Pattern(
    f"^({_SUBDOMAIN}/)?{_QUALIFIED}$",
    "must be a label key, for example team or example.com/team: letters, digits, -, _ and ., at most 63 after the /",
    familiar=True,
)
LABEL_VALUE = Pattern(
    "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$",
    "must be letters, digits, -, _ and ., with a letter or digit at both ends",
    familiar=True,
)
EXTENDED_RESOURCE = Pattern(
    f"^{_SUBDOMAIN}/{_QUALIFIED}$",
    "must be an extended resource with its domain, for example nvidia.com/gpu",
)
MODEL_NAME = Pattern(
    "^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?$",
    "must be a model name of one or two parts, for example Qwen/Qwen2.5-VL-7B-Instruct",
)
MODEL_SIZE = Pattern(
    r"^([1-9][0-9]{0,3}(\.[0-9]{1,3})?|0\.[0-9]{0,2}[1-9])[MBT]$",
    "must be the size in the published name, for example 7B, 0.5B or 256M",
)
ARCHITECTURE_NAME = Pattern(
    "^[A-Za-z0-9_]+$",
    "must be a class name as in config.json, for example Qwen2_5_VLForConditionalGeneration",
)
ENV_NAME = Pattern("^[A-Za-z_][A-Za-z0-9_]*$", "must be letters, digits and _, and not start with a digit")
ENGINE_VERSION = Pattern(
    rf"^{_COUNT}\.{_COUNT}(\.{_COUNT})?$",
    "must be a version of two or three numbers without a leading v, for example 0.33",
)
IMAGE_REFERENCE = Pattern(
    "^[a-zA-Z0-9][a-zA-Z0-9._:/@-]*$",
    "must be an image, for example registry.example.com/vllm:0.33",
)
RELATIVE_PATH = Pattern(
    f"^({_SEGMENT}(/{_SEGMENT})*)?$",
    "must be a folder inside the volume, without a leading or trailing / and without . or .. as parts",
)
URI = Pattern(
    r"^(s3|gs|az|https|hf)://[!#%&(-\[\]-_a-~]+$",
    "must be an address that starts with s3://, gs://, az://, https:// or hf://, without spaces, quotes or $",
)
GIT_REVISION = Pattern("^[A-Za-z0-9][A-Za-z0-9._/-]*$", "must be a branch, a tag or a commit")
CRON = Pattern(
    f"^{_CRON_FIELD}( +{_CRON_FIELD}){{4}}$",
    "must be a cron expression with five fields, for example 0 7 * * 1-5",
)
TIME_ZONE = Pattern("^[A-Za-z0-9_+/-]+$", "must be an IANA time zone, for example Europe/Berlin")
CAMEL_CASE = Pattern("^[A-Za-z][A-Za-z0-9]*$", "must be letters and digits, and start with a letter", familiar=True)

ENGINE_RELEASE = Pattern(
    r"^[0-9]+(\.[0-9]+)+(\.post[0-9]+)?$", "must be a release such as 0.33.0 or 0.8.5.post1, without a leading v"
)
COMPUTE_CAPABILITY = Pattern(
    r"^([0-9]{1,2}\.[0-9]|gfx[0-9a-f]{3,6})$", "must be a compute capability such as 8.9 in quotes, or for AMD gfx942"
)
MIG_PROFILE = Pattern(r"^[1-9]g\.[0-9]{1,3}gb$", "must be the profile of a slice, for example 1g.10gb")

BY_REGEX: dict[str, Pattern] = {
    pattern.regex: pattern for pattern in list(globals().values()) if isinstance(pattern, Pattern)
}
"""All of them, by their regular expressions."""
