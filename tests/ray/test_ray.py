"""Encoding on a real Ray cluster of two nodes: the same bytes, a killed node, a killed driver, machines that differ."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.scenes import write_scenes
from rmsh.core.errors import RmshError
from rmsh.features.executors import Ray, run
from rmsh.models import wheel_model

os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # as there, Ray then stays on loopback
pytest.importorskip("ray", reason="Ray is not installed; `make test-ray` installs and runs it")
pytestmark = [pytest.mark.ray, pytest.mark.slow]

SHARDS, SCENES = 12, 4  # of drawn scenes, and scenes in each

# A package with an encoder, as others may write one: it logs which shards it encodes, and takes its time.
PLUGIN = """
import os, time
from pathlib import Path
from rmsh.features.efficientnet import EfficientNet

class Logged(EfficientNet):
    def encode_readable(self, items, **options):
        with open(os.environ["SHARD_LOG"], "a") as log:
            log.write(Path(items[0]).parent.name + "\\n")
        time.sleep(0.5)
        return super().encode_readable(items, **options)
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of drivers and nodes, with the plugin; it is that of this process, too."""
    folder = tmp_path_factory.mktemp("plugin")
    (folder / "logged_encoder.py").write_text(PLUGIN)
    about = folder / "logged_encoder-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: logged-encoder\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[rmsh.encoders]\nlogged = logged_encoder:Logged\n")
    given = {"PYTHONPATH": os.pathsep.join([str(folder), *sys.path]), "SHARD_LOG": str(folder / "log.txt")}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in given.items():
            patch.setenv(name, value)
        patch.syspath_prepend(str(folder))
        yield dict(os.environ)


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tar shards of drawn scenes with captions."""
    folder = tmp_path_factory.mktemp("scenes")
    pairs = write_scenes(folder / "images", SHARDS * SCENES)
    (folder / "tars").mkdir()
    images, texts = np.asarray(pairs.images).tolist(), np.asarray(pairs.texts).tolist()
    for number in range(SHARDS):
        with tarfile.open(folder / "tars" / f"part-{number:02}.tar", "w") as archive:
            for row in range(number * SCENES, (number + 1) * SCENES):
                caption = folder / "caption.txt"
                caption.write_text(texts[row])
                archive.add(images[row], f"{row:03}.jpg")
                archive.add(caption, f"{row:03}.txt")
    return folder


@pytest.fixture(scope="module")
def model(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled model, with the encoder of the plugin."""
    wheel, folder = wheel_model(), tmp_path_factory.mktemp("model")
    logged = dict(wheel.encoders["image"]) | {"name": "logged"}
    wheel.with_encoders({**wheel.encoders, "image": logged}).save(folder)
    return folder


@pytest.fixture
def cluster(environment: dict[str, str]) -> Iterator[Any]:
    """A head without processors and two nodes with one each, on loopback, without a dashboard."""
    from ray.cluster_utils import Cluster

    small = {"object_store_memory": 80 << 20}
    found = Cluster(initialize_head=True, head_node_args=small | {"num_cpus": 0, "include_dashboard": False})
    nodes = [found.add_node(num_cpus=1, **small) for _ in range(2)]
    yield found, nodes
    found.shutdown()


def _encode(model: Path, scenes: Path, out: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "rmsh", "encode", str(model), str(scenes / "tars"), "--out", str(out), *options]


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _finished(out: Path) -> int:
    return len(list(out.glob("part-*.json")))


@contextmanager
def _driver(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A command that is killed at the end of the block, if it still runs."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as driver:
        try:
            yield driver
        finally:
            driver.kill()


def _wait(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _hashes(folder: Path) -> dict[str, str]:
    files = (file for file in folder.rglob("*") if file.is_file() and file.suffix != ".claim")
    return {file.relative_to(folder).as_posix(): sha256(file.read_bytes()).hexdigest() for file in files}


def test_a_killed_node_and_a_killed_driver_leave_the_bytes_of_one_process(
    cluster: Any, environment: dict[str, str], model: Path, scenes: Path, tmp_path: Path
) -> None:
    log = Path(environment["SHARD_LOG"])
    for name, options in (("one", ()), ("two", ("--executor", "processes:2"))):
        _run(_encode(model, scenes, tmp_path / name, *options))
    log.write_text("")
    found, nodes = cluster
    command = _encode(model, scenes, tmp_path / "ray", "--executor", "ray", "--address", found.address)

    with _driver(command) as driver:
        _wait(lambda: _finished(tmp_path / "ray") >= 3, driver)
    first = _finished(tmp_path / "ray")
    assert first < SHARDS
    assert not (tmp_path / "ray" / "manifest.json").exists()

    with _driver(command) as driver:
        _wait(lambda: _finished(tmp_path / "ray") >= first + 3, driver)
        found.remove_node(nodes[1], allow_graceful=False)
        _, told = driver.communicate(timeout=120)
    assert driver.returncode == 0, told

    assert _hashes(tmp_path / "one") == _hashes(tmp_path / "two") == _hashes(tmp_path / "ray")
    counts = Counter(log.read_text().split())
    assert len(counts) == SHARDS
    # Two shards were in flight when the driver was killed, one when the node was.
    assert sum(count - 1 for count in counts.values()) <= 3
    assert told.count("is repeated") <= 1


def test_a_build_encodes_on_the_cluster(cluster: Any, scenes: Path, tmp_path: Path) -> None:
    found, _ = cluster
    options = ["--learn-from", "nothing", "--json", "--quiet"]
    reports = {}
    for name, more in (("here", []), ("ray", ["--executor", "ray", "--address", found.address])):
        command = [sys.executable, "-m", "rmsh", "build", str(scenes / "images"), "--out", str(tmp_path / name)]
        reports[name] = json.loads(_run([*command, *options, *more]))["report"]["counts"]
    assert reports["here"] == reports["ray"]
    features = [sorted((tmp_path / f"{name}.build" / "features").glob("*.npy")) for name in ("here", "ray")]
    assert len(features[0]) == len(features[1]) == 2
    for here, there in zip(*features, strict=True):
        assert here.read_bytes() == there.read_bytes()


def test_machines_are_checked_before_any_work(cluster: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found, _ = cluster
    executor = Ray(found.address)
    try:
        assert executor.slots == 4
        assert dict(run(executor, "builtins:len", {"a": [1, 2]}, check="builtins:bool")) == {"a": 2}
        monkeypatch.setattr("rmsh.features.executors._VERSION", "0.0.9")
        with pytest.raises(RmshError, match=r"machine .* cannot take part: .*0\.0\.9"):
            list(run(executor, "os:mkdir", {"a": str(tmp_path / "made")}, check="builtins:bool"))
    finally:
        executor.close()
    assert not (tmp_path / "made").exists()


def _sockets_of_children() -> set[str]:
    """The inodes of the sockets of all processes that this one has started."""
    parents = {int(p.name): int((p / "stat").read_text().rpartition(")")[2].split()[1]) for p in _processes()}
    family = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    links = [os.readlink(file) for child in family - {os.getpid()} for file in Path(f"/proc/{child}/fd").iterdir()]
    return {link.removeprefix("socket:[").rstrip("]") for link in links if link.startswith("socket:")}


def _processes() -> list[Path]:
    return [folder for folder in Path("/proc").glob("[0-9]*") if (folder / "stat").exists()]


@pytest.mark.usefixtures("cluster")
def test_nothing_listens_beyond_loopback() -> None:
    loopback = ("0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000")
    lines = [
        line.split() for kind in ("tcp", "tcp6") for line in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]
    ]
    ours = _sockets_of_children()
    listening = [line[1] for line in lines if line[3] == "0A" and line[9] in ours]
    assert listening
    assert [address for address in listening if not address.startswith(loopback)] == []


def test_a_cluster_that_is_not_there_is_one_sentence() -> None:
    with pytest.raises(RmshError, match=r"No Ray cluster at 127\.0\.0\.1:1 .*--address"):
        Ray("127.0.0.1:1")
