"""The cache keeps the newest version of every object, in whatever order the versions arrive, and lets the dead rest."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from unit.replicas.examples import OLDER, OURS
from unit.replicas.tables import table
from vlm_operator.runtime.cache import TOMBSTONES, Cache, key_of
from vlm_operator.runtime.kinds import POD, SERVICE, VLM_DEPLOYMENT

M, OTHER = ("models", "m"), ("models", "other")


def deployment(name: str = "m", *, version: int = 1, uid: str = "u") -> dict[str, Any]:
    return {"metadata": {"namespace": "models", "name": name, "uid": uid, "resourceVersion": str(version)}}


def pod(
    version: int = 1, *, name: str = "m-new-0", uid: str = "p", label: str | None = "m", **more: Any
) -> dict[str, Any]:
    labels = {"vlm.dev/deployment": label} if label else {}
    known = {"namespace": "models", "name": name, "uid": uid, "resourceVersion": str(version), "labels": labels}
    return {"metadata": known | more}


def service(version: int = 1, *, uid: str = "s", label: str | None = None) -> dict[str, Any]:
    return pod(version, name="m", uid=uid, label=label)


def filled(*pods: dict[str, Any]) -> Cache:
    cache = Cache()
    cache.put(VLM_DEPLOYMENT, deployment())
    for obj in pods:
        cache.put(POD, obj)
    return cache


def listed(cache: Cache, *pods: dict[str, Any], namespace: str | None = None) -> set[tuple[str, str]]:
    """The news of a list of pods as of version 8."""
    news: set[tuple[str, str]] = set()
    for obj in pods:
        news |= cache.put(POD, obj)
    places = {(obj["metadata"]["namespace"], obj["metadata"]["name"]) for obj in pods}
    return news | cache.drop_unlisted(POD, places, version=8, namespace=namespace)


def versions(cache: Cache, key: tuple[str, str] = M) -> dict[str, str]:
    return {name: obj["metadata"]["resourceVersion"] for (_, name), obj in cache.children(key).items()}


HOMES: list[tuple[str, dict[str, Any], tuple[str, str] | None]] = [
    ("by label", pod(), M),
    ("by controller", pod(label=None, ownerReferences=[OURS]), M),
    ("by a controller of an older deployment", pod(label=None, ownerReferences=[OLDER]), M),
    ("the controller counts, not the label that anybody can edit", pod(label="other", ownerReferences=[OURS]), M),
    (
        "an owner that does not control it does not count",
        pod(label=None, ownerReferences=[OURS | {"controller": False}]),
        None,
    ),
    ("a controller of another kind does not count", pod(ownerReferences=[OURS | {"kind": "ReplicaSet"}]), M),
    ("nothing names a deployment", pod(label=None), None),
    ("labels that are null", pod(labels=None, ownerReferences=None), None),
]


@table("obj, home", HOMES)
def test_where_an_object_belongs(obj: dict[str, Any], home: tuple[str, str] | None) -> None:
    assert key_of(POD, obj) == home
    cache = Cache()
    assert cache.put(POD, obj) == ({home} if home else set())
    assert ("Pod", "m-new-0") in cache.children(M) if home else not cache.children(M)


def test_a_deployment_is_itself() -> None:
    cache = filled(pod())
    assert cache.deployment(M) == deployment()
    assert cache.deployment(OTHER) is None
    assert list(cache.deployments()) == [M]
    assert list(cache.children(M)) == [("Pod", "m-new-0")]


def test_children_without_their_deployment_are_kept_but_no_deployment() -> None:
    cache = Cache()
    cache.put(POD, pod())
    assert list(cache.deployments()) == []
    assert versions(cache) == {"m-new-0": "1"}


def test_the_newest_version_wins_and_only_it_is_news() -> None:
    cache = filled(pod(5))
    assert cache.put(POD, pod(4)) == set()
    assert cache.put(POD, pod(5)) == set()
    assert versions(cache) == {"m-new-0": "5"}
    assert cache.put(POD, pod(10)) == {M}, "versions are numbers: 10 is newer than 5"
    assert versions(cache) == {"m-new-0": "10"}


def test_what_was_deleted_does_not_come_back() -> None:
    cache = filled(pod(5))
    assert cache.remove(POD, pod(6)) == {M}
    assert cache.put(POD, pod(5)) == set()
    assert versions(cache) == {}


def test_a_new_object_of_the_same_name_comes() -> None:
    cache = filled(pod(5))
    cache.remove(POD, pod(6))
    assert cache.put(POD, pod(7, uid="new")) == {M}
    assert versions(cache) == {"m-new-0": "7"}


def test_a_late_deletion_of_the_predecessor_does_not_remove_its_successor() -> None:
    cache = filled(pod(5))
    cache.put(POD, pod(7, uid="new"))
    assert cache.remove(POD, pod(6)) == set()
    assert versions(cache) == {"m-new-0": "7"}


def test_what_lost_the_label_of_the_watch_may_come_back() -> None:
    """A watch reports it as deleted, at the version that a read of the object then gives."""
    cache = filled(pod(5))
    assert cache.remove(POD, pod(6)) == {M}
    assert cache.put(POD, pod(6, label=None), key=M) == {M}
    assert cache.put(POD, pod(7)) == {M}


def test_what_is_gone_for_certain_never_comes_back() -> None:
    cache = filled(pod(5))
    assert cache.remove(POD, pod(5), certain=True) == {M}
    assert cache.put(POD, pod(99)) == set()
    assert cache.put(POD, pod(99, uid="new")) == {M}


def test_a_deletion_that_nobody_knew_of_is_no_news_but_is_remembered() -> None:
    cache = filled()
    assert cache.remove(POD, pod(6)) == set()
    assert cache.put(POD, pod(5)) == set()


def test_only_so_many_of_the_dead_are_remembered() -> None:
    cache = filled()
    cache.remove(POD, pod(6, uid="first"))
    for number in range(TOMBSTONES):
        cache.remove(POD, pod(6, uid=f"u{number}"))
    assert cache.put(POD, pod(5, uid="first")) == {M}
    assert cache.put(POD, pod(5, uid=f"u{TOMBSTONES - 1}")) == set()


def test_an_object_that_changes_its_home_is_news_for_both() -> None:
    cache = filled(pod(5))
    assert cache.put(POD, pod(6, label="other")) == {M, OTHER}
    assert (versions(cache), versions(cache, OTHER)) == ({}, {"m-new-0": "6"})
    assert cache.put(POD, pod(7, label=None)) == {OTHER}
    assert versions(cache, OTHER) == {}


def test_a_strangers_object_is_filed_under_who_asked_for_it() -> None:
    cache = filled()
    assert cache.put(SERVICE, service(3), key=M) == {M}
    assert list(cache.children(M)) == [("Service", "m")]
    assert cache.put(SERVICE, service(3), key=M) == set()
    assert cache.remove(SERVICE, service(4)) == {M}


def test_also_one_that_is_labelled_as_somebody_elses() -> None:
    cache = filled()
    cache.put(SERVICE, service(3, label="other"))
    assert ("Service", "m") in cache.children(OTHER)
    assert M in cache.put(SERVICE, service(3, label="other"), key=M)
    assert ("Service", "m") in cache.children(M)
    assert cache.put(SERVICE, service(3, label="other"), key=M) == set()


def test_a_list_replaces_what_is_older() -> None:
    cache = filled(pod(5), pod(5, name="m-new-1", uid="q"), pod(9, name="m-new-2", uid="r"))
    cache.put(SERVICE, service(1, label="m"))
    news = listed(cache, pod(6), pod(7, name="m-new-3", uid="t", label="other"))
    assert news == {M, OTHER}
    assert versions(cache) == {"m-new-0": "6", "m-new-2": "9", "m": "1"}, "m-new-2 is newer than the list"
    assert versions(cache, OTHER) == {"m-new-3": "7"}


def test_a_list_without_news_is_none() -> None:
    cache = filled(pod(5))
    assert listed(cache, pod(5)) == set()
    assert listed(cache, pod(4)) == set()


def test_a_list_of_one_namespace_leaves_the_others_alone() -> None:
    cache = filled(pod(5), pod(5, namespace="elsewhere", uid="q"))
    assert listed(cache, namespace="models") == {M}
    assert versions(cache, ("elsewhere", "m")) == {"m-new-0": "5"}


def test_nothing_is_left_of_a_deployment_that_is_gone() -> None:
    cache = filled(pod(5))
    cache.remove(POD, pod(6))
    cache.remove(VLM_DEPLOYMENT, deployment(version=7))
    assert (cache._by_key, cache._place) == ({}, {})


updates = st.lists(
    st.tuples(st.sampled_from(["put", "remove"]), st.integers(0, 2), st.sampled_from(["m", "other", None])), max_size=12
)


@given(updates, st.randoms(use_true_random=False))
def test_the_order_in_which_versions_arrive_does_not_matter(
    history: list[tuple[str, int, str | None]], random: Any
) -> None:
    """A history of three objects of one name, told in order and told in disorder, ends the same where it ends alive."""
    told = [
        (what, pod(version, uid=f"u{uid}", label=label)) for version, (what, uid, label) in enumerate(history, start=1)
    ]
    # Every uid lives once: what follows its removal is not told.
    dead: set[str] = set()
    valid = []
    for what, obj in told:
        uid = obj["metadata"]["uid"]
        if uid in dead:
            continue
        valid.append((what, obj))
        if what == "remove":
            dead.add(uid)
    caches = []
    for order in (valid, random.sample(valid, len(valid))):
        cache = Cache()
        for what, obj in order:
            (cache.put if what == "put" else cache.remove)(POD, obj)
        caches.append(cache)
    in_order, in_disorder = caches
    last = max((obj for _, obj in valid), key=lambda obj: int(obj["metadata"]["resourceVersion"]), default=None)
    if last is not None and last["metadata"]["uid"] not in dead and last["metadata"]["labels"]:
        assert in_order._by_key == in_disorder._by_key
    for cache in caches:
        held = [one.uid for objects in cache._by_key.values() for one in objects.values()]
        assert not dead & set(held)
        assert len(held) <= 1
        assert sorted(cache._place.values()) == sorted(key for key, objects in cache._by_key.items() for _ in objects)
