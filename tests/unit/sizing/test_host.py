"""Memory of the node that a replica uses."""

from vlm_operator.sizing.host import API_SERVER, ENGINE, WORKER, host_memory
from vlm_operator.sizing.memory import GIB
from vlm_operator.sizing.weights import Layout


def test_prepared_images_are_kept_by_every_front_end_and_every_engine() -> None:
    assert host_memory(Layout(), processor_cache=4 * GIB).processor_cache == 8 * GIB
    assert host_memory(Layout(data=2), processor_cache=4 * GIB).processor_cache == 16 * GIB
    assert host_memory(Layout(), processor_cache=4 * GIB, api_servers=3).processor_cache == 16 * GIB
    assert host_memory(Layout(), processor_cache=0).processor_cache == 0


def test_there_is_a_worker_and_a_share_of_dev_shm_per_gpu() -> None:
    found = host_memory(Layout(tensor=2, pipeline=2))
    assert found.processes == API_SERVER + ENGINE + 4 * WORKER
    assert found.shared == 4 * GIB


def test_loading_takes_a_file_at_most_and_no_more_than_there_is() -> None:
    assert host_memory(Layout(), checkpoint=500 * GIB).loading == host_memory(Layout()).loading == 5 * GIB
    assert host_memory(Layout(), checkpoint=1 * GIB).loading == GIB


def test_loading_is_over_when_images_are_cached() -> None:
    found = host_memory(Layout(), processor_cache=0)
    assert found.total == found.processes + found.loading + found.shared
