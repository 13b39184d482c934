"""What is wrong with a spec as far as sizes go, memory aside: the model, its context, its images and the GPUs.

Each check is a function from the subject to findings; `check` runs them all, those of the neighbouring modules too.
"""

from collections.abc import Callable, Iterator

from vlm_operator.api.findings import Finding
from vlm_operator.sizing import devices, parallelism, quantization, versions
from vlm_operator.sizing.catalogue.similar import similar_model
from vlm_operator.sizing.catalogue.sizes import expected_sizes, published_size, size_agrees
from vlm_operator.sizing.images import (
    ImageSize,
    RefusedImageError,
    image_tokens,
    largest_image,
    largest_photo,
    takes_pixel_limits,
)
from vlm_operator.sizing.images.settings import settings_of
from vlm_operator.sizing.subject import Subject, choices

MODEL_UNKNOWN = "ModelUnknown"
"""The sizes of the model are not known, so that hardly anything is checked."""
SIZE_MISMATCH = "SizeMismatch"
"""The size of the model is not that of the named model."""
ARCHITECTURE_CONTRADICTORY = "ArchitectureContradictory"
"""Stated sizes of the model cannot all be true, so that hardly anything is checked."""
ARCHITECTURE_IGNORED = "ArchitectureIgnored"
"""The catalogue knows the model, so that the facts in the spec are not used."""
CONTEXT_TOO_LONG = "ContextTooLong"
"""maxModelLen is beyond what the model was made for."""
IMAGE_EXCEEDS_CONTEXT = "ImageExceedsContext"
"""One image takes more tokens than a request may have. An error where the spec asks for such images or where ordinary ones
are too large; the engine runs without the largest ones that the model would allow, and refuses them one by one."""
ORDINARY_IMAGE = (1024, 1024)
"""Width and height in pixels of an image that every deployment is expected to take."""
IMAGES_EXCEED_CONTEXT = "ImagesExceedContext"
"""The allowed number of largest images takes more tokens than a request may have."""
IMAGE_EXCEEDS_BUDGET = "ImageExceedsEncoderBudget"
"""One image takes more tokens than a step of the engine, and images may not be divided among steps."""
IMAGES_OFF = "ImagesTurnedOff"
"""Requests may not hold an image."""
PIXEL_LIMITS_UNUSED = "PixelLimitsUnused"
"""The model resizes images in its own way, so that limits in pixels have no effect."""
PIXEL_LIMITS_CROSSED = "PixelLimitsCrossed"
"""A limit in pixels contradicts the model's own other limit."""


def check(subject: Subject) -> Iterator[Finding]:
    """Everything that is wrong, memory aside."""
    for one in CHECKS:
        yield from one(subject)


def _model_is_known(subject: Subject) -> Iterator[Finding]:
    if subject.contradiction is not None:
        yield Finding(
            reason=ARCHITECTURE_CONTRADICTORY,
            severity="Error",
            field=f"spec.model.architecture.{subject.contradiction.field}",
            message=subject.contradiction.message,
            advice=subject.contradiction.advice,
        )
    elif subject.architecture is None:
        name = subject.spec.model.name
        known = "is not in the catalogue" if subject.row is None else "is in the catalogue without its sizes"
        near = similar_model(subject.catalogue, name) if subject.row is None else None
        yield Finding(
            reason=MODEL_UNKNOWN,
            severity="Warning",
            field="spec.model.name",
            message=f"{name} {known}: fit, parallelism and images are not checked",
            advice=(f"did you mean {near}? otherwise " if near else "")
            + "add spec.model.architecture; `kubectl vlm plan --config config.json` prints it",
        )
    elif subject.row and subject.row.architecture and subject.spec.model.architecture:
        yield Finding(
            reason=ARCHITECTURE_IGNORED,
            severity="Warning",
            field="spec.model.architecture",
            message=f"the catalogue knows {subject.row.hf_id}, so its own sizes are used",
            advice="remove it, or give the model a name of its own",
        )


def _size_is_right(subject: Subject) -> Iterator[Finding]:
    size, row = subject.spec.model.size, subject.row
    if size is None or row is None or size_agrees(row, size):
        return
    right = expected_sizes(row)
    named = published_size(row) is not None
    yield Finding(
        reason=SIZE_MISMATCH,
        severity="Error",
        field="spec.model.size",
        message=f"size is {size}, but {row.hf_id} has {right[0]} {'in its name' if named else 'parameters in all'}",
        advice=f"set size to {choices(right)}, or name another model",
    )


def _context_is_possible(subject: Subject) -> Iterator[Finding]:
    wanted, sizes = subject.spec.model.max_model_len, subject.architecture
    if wanted is None or sizes is None or sizes.max_context is None or wanted <= sizes.max_context:
        return
    doubt = subject.doubt("maxContext")
    yield Finding(
        reason=CONTEXT_TOO_LONG,
        severity="Warning" if "LongerContext" in subject.engine.settings else "Error",
        field="spec.model.maxModelLen",
        message=f"maxModelLen is {wanted}, but the model's longest context is {sizes.max_context} tokens{doubt}",
        advice=f"set maxModelLen to {sizes.max_context} or less",
    )


def images_allowed(subject: Subject) -> bool:
    """Whether a request may hold an image."""
    limits = subject.spec.multimodal.limits_per_prompt
    return limits is None or limits.image != 0


def largest(subject: Subject) -> ImageSize | None:
    """The image with the most tokens that a user may send; None when images are off or the rule is unknown.

    Strips that no camera makes are left out where they cost more than anything else.
    """
    sizes = subject.architecture
    if sizes is None or sizes.images is None or not images_allowed(subject):
        return None
    limits = subject.spec.multimodal
    bounds = {"min_pixels": limits.min_pixels, "max_pixels": limits.max_pixels}
    image = largest_image(sizes.images, vision=sizes.vision, **bounds)
    if takes_pixel_limits(sizes.images):
        return image
    photo = largest_photo(sizes.images, vision=sizes.vision, **bounds)
    return photo if photo.tokens < image.tokens else image


def context(subject: Subject) -> int | None:
    """Tokens that a request may have: those of the spec, else what the model allows."""
    given = subject.spec.model.max_model_len
    return given or (subject.architecture.max_context if subject.architecture else None)


def _images_fit_context(subject: Subject) -> Iterator[Finding]:
    image, tokens = largest(subject), context(subject)
    sizes = subject.architecture
    if image is None or tokens is None or sizes is None or sizes.cross_attention_layers:
        return  # with cross-attention images are looked at from outside the context
    if image.tokens >= tokens:
        yield _too_large(subject, image, tokens)
        return
    limits = subject.spec.multimodal.limits_per_prompt
    number = limits.image if limits and limits.image else 1
    if number * image.tokens >= tokens:
        yield Finding(
            reason=IMAGES_EXCEED_CONTEXT,
            severity="Warning",
            field="spec.multimodal.limitsPerPrompt.image",
            message=(
                f"{number} images of {image.width}x{image.height} take {number} x {image.tokens} ="
                f" {number * image.tokens} tokens, and a request has {tokens} at most"
            ),
            advice=f"expect refusals, or set image to {(tokens - 1) // image.tokens}{_or_fewer_pixels(subject)}",
        )


def _or_fewer_pixels(subject: Subject) -> str:
    return " or lower maxPixels" if _has_free_resolution(subject) else ""


def _has_free_resolution(subject: Subject) -> bool:
    images = subject.architecture.images if subject.architecture else None
    return images is not None and takes_pixel_limits(images)


def _too_large(subject: Subject, image: ImageSize, tokens: int) -> Finding:
    """Exactly as many tokens as the context has would leave none for a question."""
    free = _has_free_resolution(subject)
    longer = f"set maxModelLen above {image.tokens}"
    pixels = _most_pixels(subject) * (tokens // 2) // image.tokens
    limits = "minPixels and maxPixels" if pixels < (subject.spec.multimodal.min_pixels or 0) else "maxPixels"
    advice = (
        f"set {limits} to {pixels}, with which an image takes half of that, or {longer}" if free and pixels else longer
    )
    given, ordinary = subject.spec.multimodal, tokens_of(subject, *ORDINARY_IMAGE)
    asked = free and (given.max_pixels or given.min_pixels)
    wrong = image.tokens > tokens and (asked or ordinary is None or ordinary > tokens)
    return Finding(
        reason=IMAGE_EXCEEDS_CONTEXT,
        severity="Error" if wrong else "Warning",
        field="spec.multimodal.maxPixels" if free else "spec.model.maxModelLen",
        message=(
            f"the largest image allowed ({image.width}x{image.height}) takes {image.tokens} tokens,"
            f" and a request has {tokens} at most{subject.doubt('images')}"
            f"{'' if wrong else ': such images are refused one by one'}"
        ),
        advice=advice,
    )


def tokens_of(subject: Subject, width: int, height: int) -> int | None:
    """Tokens of an image; None when the way of resizing is unknown or refuses the image."""
    sizes, limits = subject.architecture, subject.spec.multimodal
    if sizes is None or sizes.images is None:
        return None
    bounds = {"min_pixels": limits.min_pixels, "max_pixels": limits.max_pixels}
    try:
        return image_tokens(sizes.images, width, height, vision=sizes.vision, **bounds)
    except RefusedImageError:
        return None


def _most_pixels(subject: Subject) -> int:
    """The pixels of the largest image; 0 where there is no limit. A least number beyond the largest one wins."""
    sizes, limits = subject.architecture, subject.spec.multimodal
    if sizes is None or sizes.images is None:
        return 0
    return max(
        settings_of(sizes.images, sizes.vision, limits.min_pixels, limits.max_pixels).max_pixels, limits.min_pixels or 0
    )


def _images_fit_steps(subject: Subject) -> Iterator[Finding]:
    """The engine raises its budget to the largest image unless images must not be divided among steps."""
    image, step = largest(subject), subject.spec.engine.max_num_batched_tokens
    if image is None or step is None or image.tokens <= step:
        return
    advice = f"set maxNumBatchedTokens to {image.tokens} or more"
    if subject.class_name in subject.engine.whole_images:
        why = f"{subject.engine.name} does not divide images of {subject.class_name}"
    elif flag := subject.engine.settings.get("WholeImages"):
        why = f"{flag} forbids to divide it"
        advice += f", or remove {flag}"
    else:
        return
    yield Finding(
        reason=IMAGE_EXCEEDS_BUDGET,
        severity="Error",
        field="spec.engine.maxNumBatchedTokens",
        message=(
            f"the largest image allowed ({image.width}x{image.height}) takes {image.tokens} tokens, a step has {step},"
            f" and {why}"
        ),
        advice=advice,
    )


def _pixel_limits_are_used(subject: Subject) -> Iterator[Finding]:
    limits = subject.spec.multimodal
    given = [name for name, value in (("minPixels", limits.min_pixels), ("maxPixels", limits.max_pixels)) if value]
    if not images_allowed(subject):
        yield Finding(
            reason=IMAGES_OFF,
            severity="Warning",
            field="spec.multimodal.limitsPerPrompt.image",
            message="image is 0: requests with an image are refused",
            advice="remove it, or set image to 1, unless the model is to answer without images",
        )
    elif given and subject.architecture and subject.architecture.images and not _has_free_resolution(subject):
        rule = subject.architecture.images.rule
        yield Finding(
            reason=PIXEL_LIMITS_UNUSED,
            severity="Warning",
            field=f"spec.multimodal.{given[-1]}",
            message=f"the model resizes images in its own way ({rule}), so that {' and '.join(given)} changes nothing",
            advice=f"remove {' and '.join(given)}; limitsPerPrompt.image bounds the tokens of a request",
        )


def _pixel_limits_agree(subject: Subject) -> Iterator[Finding]:
    """One limit of the spec against the model's own other one; two limits of the spec are compared by the API server."""
    limits, sizes = subject.spec.multimodal, subject.architecture
    if sizes is None or sizes.images is None or not _has_free_resolution(subject):
        return
    own = sizes.images
    least, most = limits.min_pixels or own.min_pixels, limits.max_pixels or own.max_pixels
    if least is None or most is None or least <= most or (limits.min_pixels and limits.max_pixels):
        return
    wrong, right = ("maxPixels", "minPixels") if limits.max_pixels else ("minPixels", "maxPixels")
    yield Finding(
        reason=PIXEL_LIMITS_CROSSED,
        severity="Warning",
        field=f"spec.multimodal.{wrong}",
        message=f"minPixels {least} is greater than maxPixels {most}, and {right} is the model's own",
        advice=f"set {right} as well",
    )


CHECKS: tuple[Callable[[Subject], Iterator[Finding]], ...] = (
    _model_is_known,
    _size_is_right,
    _context_is_possible,
    quantization.check,
    versions.check,
    parallelism.check,
    devices.check,
    _images_fit_context,
    _images_fit_steps,
    _pixel_limits_are_used,
    _pixel_limits_agree,
)
