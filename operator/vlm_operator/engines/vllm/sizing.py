"""What the sizing must know about a version of vLLM: what its code does with models, and what the user's settings change."""

from collections.abc import Iterator

from vlm_operator.engines.base import PodInputs
from vlm_operator.engines.vllm.command_line import divide
from vlm_operator.engines.vllm.flags import assumed_flags
from vlm_operator.engines.vllm.reserved import WITHOUT_EFFECT
from vlm_operator.engines.vllm.versions import KNOWN_VERSIONS, nearest_known, version_of
from vlm_operator.sizing.engine_facts import EngineFacts, Readings, Setting
from vlm_operator.sizing.versions import parse_version

NAME = "vLLM"
READINGS = Readings(legacy=(0, 10, 2), newest=(0, 33, 0))
"""The catalogue has the classes of 14 releases up to the newest, and the least capabilities of these two."""

_OLD_ENCODER_DATA = frozenset(
    {
        "Glm4vForConditionalGeneration",
        "Glm4vMoeForConditionalGeneration",
        "KimiVLForConditionalGeneration",
        "Llama4ForConditionalGeneration",
        "MiniCPMV",
        "Qwen2_5_VLForConditionalGeneration",
    }
)
_ENCODER_DATA = _OLD_ENCODER_DATA | {
    "InternVLChatModel",
    "Qwen2VLForConditionalGeneration",
    "Qwen3VLForConditionalGeneration",
    "Qwen3VLMoeForConditionalGeneration",
}
ENCODER_DATA = dict.fromkeys(KNOWN_VERSIONS, _ENCODER_DATA) | {"0.10.2": _OLD_ENCODER_DATA}
"""Version -> classes of the catalogue's models with `supports_encoder_tp_data`; for the others vLLM falls back to shares."""

_WHOLE_IMAGES = frozenset(
    {
        "BagelForConditionalGeneration",
        "DeepseekV4ForCausalLM",  # with a vision tower it is run as the next one
        "DeepseekV4ForConditionalGeneration",
        "Gemma3ForConditionalGeneration",
        "HfMoondream",
        "Molmo2ForConditionalGeneration",
        "Moondream3ForCausalLM",
        "PaliGemmaForConditionalGeneration",
    }
)
WHOLE_IMAGES = dict.fromkeys(KNOWN_VERSIONS, _WHOLE_IMAGES) | {
    "0.10.2": frozenset[str](),
    "0.30": _WHOLE_IMAGES | {"DeepseekV41ForCausalLM"},
}
"""Version -> classes in which the tokens of an image look at each other both ways (`is_mm_prefix_lm`), so that vLLM sets
`--disable-chunked-mm-input` itself. It does for some checkpoints of Gemma 4 as well, which their class does not tell."""

_SETTINGS: dict[str, tuple[Setting, ...]] = {
    "--cpu-offload-gb": ("OtherSum",),
    "--disable-chunked-mm-input": ("WholeImages",),
    "--enable-expert-parallel": ("WholeExperts",),
    "--enforce-eager": ("Eager",),
    "--hf-overrides": ("LongerContext", "OtherSum"),
    "--kv-cache-memory-bytes": ("OtherSum",),
}
_LONGER_CONTEXT = "VLLM_ALLOW_LONG_MAX_MODEL_LEN"
_TRUE = ("1", "true")
"""How vLLM spells that the variable is on."""


def engine_facts(inputs: PodInputs) -> EngineFacts:
    """VLLM in the version that the inputs ask for."""
    version = version_of(inputs.engine)
    known = nearest_known(version)
    return EngineFacts(
        name=NAME,
        version=version,
        memory_as=parse_version(version),
        supported=KNOWN_VERSIONS,
        readings=READINGS,
        whole_images=WHOLE_IMAGES[known],
        encoder_data=ENCODER_DATA[known],
        settings=dict(_from_variables(inputs)) | _from_arguments(inputs),
    )


def _from_arguments(inputs: PodInputs) -> dict[Setting, str]:
    """Of a flag that is given twice the last one counts, also where it turns off what the first one turned on."""
    known = assumed_flags(version_of(inputs.engine))
    last: dict[str, str] = {}
    for given in divide(inputs.engine.args):
        flag = known.find(given.flag)
        if flag is None or flag.name not in _SETTINGS:
            continue
        if given.option in flag.negations or set(given.values[:1]) & set(WITHOUT_EFFECT.get(flag.name, ())):
            last.pop(flag.name, None)
        else:
            last[flag.name] = given.option
    return {setting: option for name, option in last.items() for setting in _SETTINGS[name]}


def _from_variables(inputs: PodInputs) -> Iterator[tuple[Setting, str]]:
    for variable in inputs.engine.env:
        value = "1" if variable.value is None else variable.value  # one from elsewhere is taken to be on
        if variable.name == _LONGER_CONTEXT and value.strip().lower() in _TRUE:
            yield "LongerContext", variable.name
