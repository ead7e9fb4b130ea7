"""The three benchmarks of the paper, declared: who publishes them, what they hold, how they are split, what is open."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rmsh.core.errors import ConfigError
from rmsh.data.benchmarks.protocols import Protocol


@dataclass(frozen=True)
class Benchmark:
    """What is known of a benchmark before its files are read.

    Args:
        name: what the command line calls it.
        title: its own name, with its owner.
        published: which files the owner publishes, and where.
        licence: under which terms.
        citation: the publication to cite.
        marker: a path that only the owner's layout has.
        layout: the files that are read, as the owner names them.
        text_width: the width of the paper's text features; those of its pictures are 2,048 wide (ResNet-152).
        protocols: how it is split; the first is the default.
        open_points: what the paper does not say, and what is done about it.
    """

    name: str
    title: str
    published: str
    licence: str
    citation: str
    marker: str
    layout: str
    text_width: int
    protocols: tuple[Protocol, ...]
    open_points: tuple[str, ...]

    def protocol(self, name: str) -> Protocol:
        """The protocol of that name, or a sentence that lists them."""
        for protocol in self.protocols:
            if protocol.name == name:
                return protocol
        known = ", ".join(protocol.name for protocol in self.protocols)
        raise ConfigError(f"There is no split {name!r} of {self.name}; known are {known}.")

    @property
    def missing(self) -> str:
        """What a person without the files is told."""
        return f"{self.title} is published by its owner: {self.published}. rmsh downloads nothing; unpack it there."


IMAGE_WIDTH = 2048  # of the paper's picture features

_TENTH = Protocol("tenth", "a tenth asks, the rest is searched and learned from: for a part of the data set")
_SEED = "The paper names neither the pairs it drew nor a seed; they are drawn uniformly with the seed of the split."

MIRFLICKR25K = Benchmark(
    name="mirflickr25k",
    title="MIRFLICKR-25K (LIACS Medialab, Leiden University)",
    published="mirflickr25k.zip and mirflickr25k_annotations_v080.zip at https://press.liacs.nl/mirflickr/mirdownload.html",
    licence="pictures under Creative Commons licences, each its own (meta/license); annotations for research",
    citation="M. J. Huiskes, M. S. Lew: The MIR Flickr Retrieval Evaluation. ACM MIR 2008",
    marker="meta/tags",
    layout="im*.jpg, meta/tags/tags*.txt, doc/common_tags.txt, mirflickr25k_annotations_v080/<topic>.txt",
    text_width=1386,
    protocols=(
        Protocol("paper", "RMSH: 18,006 searched and learned from, 2,000 ask", queries=2000, database=18_006),
        Protocol(
            "dcmh", "DCMH's counts: 2,000 ask, the rest is searched, 10,000 learned from", queries=2000, train=10_000
        ),
        Protocol(
            "dcmh-rows",
            "DCMH's own split, if the rows are in the order of its files: the first 2,000 ask, the next 10,000 train",
            queries=2000,
            train=10_000,
            in_order=True,
        ),
        Protocol(
            "djsrh", "DJSRH's counts: 2,000 ask, the rest is searched, 5,000 learned from", queries=2000, train=5000
        ),
        _TENTH,
    ),
    open_points=(
        _SEED,
        "The paper's 18,006 + 2,000 are 20,006 pairs; the community's files have 20,015. Which nine are missing is not "
        "said; that many are left out by the draw.",
        "A pair without tags is one without any of the 1,386 tags that are on at least 20 of the 25,000 pictures "
        "(doc/common_tags.txt); the labels are the 24 topics, not the 14 stricter ones (_r1).",
    ),
)

NUSWIDE = Benchmark(
    name="nuswide",
    title="NUS-WIDE (Lab for Media Search, National University of Singapore)",
    published=(
        "Groundtruth, ConceptsList, ImageList and NUS_WID_Tags at "
        "https://lms.comp.nus.edu.sg/wp-content/uploads/2019/research/nuswide/NUS-WIDE.html and "
        "https://github.com/NExTplusplus/NUS-WIDE; pictures on request there"
    ),
    licence="for research, after the owner's agreement form; pictures belong to their Flickr owners",
    citation="T.-S. Chua et al.: NUS-WIDE, a Real-World Web Image Database. ACM CIVR 2009",
    marker="Groundtruth",
    layout=(
        "ImageList/Imagelist.txt, ConceptsList/Concepts81.txt, Groundtruth/AllLabels/Labels_<concept>.txt, "
        "NUS_WID_Tags/TagList1k.txt, NUS_WID_Tags/AllTags1k.txt, Flickr/<folder>/<number>_<photo>.jpg"
    ),
    text_width=1000,
    protocols=(
        Protocol(
            "paper",
            "RMSH: 10 labels; 80,000 searched, 5,000 of them learned from, 2,000 ask",
            queries=2000,
            database=80_000,
            train=5000,
            classes=10,
        ),
        Protocol(
            "dcmh",
            "DCMH's counts: 21 labels; 2,100 ask, the rest is searched, 10,500 learned from",
            queries=2100,
            train=10_500,
            classes=21,
            worded=False,
        ),
        Protocol(
            "djsrh",
            "DJSRH's counts: 10 labels; 2,000 ask, the rest is searched, 5,000 learned from",
            queries=2000,
            train=5000,
            classes=10,
            worded=False,
        ),
        Protocol(
            "hashnet",
            "HashNet's counts: 81 labels; 5,000 ask, the rest is searched, 10,000 learned from",
            queries=5000,
            train=10_000,
            worded=False,
        ),
        replace(_TENTH, classes=10),
    ),
    open_points=(
        _SEED,
        "The paper's 260,648 pictures are a slip of the owner's 269,648.",
        "The paper prunes pairs without label or tag and keeps 186,577. Pairs without any of the 10 labels or any of "
        "the 1,000 tags are removed here; dcmh, djsrh and hashnet remove those without label only, as counts of others "
        "(195,834 of 21 labels; 190,421 where tags are asked for too) suggest that the community does.",
        "The most frequent labels are counted over all pictures of the owner's list.",
    ),
)

MSCOCO = Benchmark(
    name="mscoco",
    title="MS COCO 2014 (COCO Consortium)",
    published=(
        "annotations_trainval2014.zip, and the pictures train2014.zip and val2014.zip, at "
        "https://cocodataset.org/#download"
    ),
    licence="annotations CC BY 4.0; pictures under Flickr's terms",
    citation="T.-Y. Lin et al.: Microsoft COCO: Common Objects in Context. ECCV 2014",
    marker="annotations",
    layout="annotations/{instances,captions}_{train,val}2014.json, {train,val}2014/COCO_*.jpg",
    text_width=4800,
    protocols=(
        Protocol(
            "paper",
            "RMSH: all 82,783 training pictures are searched and learned from, 4,956 validation pictures ask",
            queries=4956,
            labelled=False,
            worded=False,
            parts=("train", "val"),
        ),
        Protocol(
            "labelled",
            "the paper's, without the training pictures that have no label",
            queries=4956,
            worded=False,
            parts=("train", "val"),
        ),
        Protocol(
            "hashnet",
            "HashNet's counts: labelled pictures of both parts; 5,000 ask, the rest is searched, 10,000 learned from",
            queries=5000,
            train=10_000,
        ),
        _TENTH,
    ),
    open_points=(
        _SEED,
        "The paper keeps all 82,783 training pictures, some of which have no label: they stay in the database, "
        "relevant to nothing, and training skips them. The split 'labelled' leaves them out.",
        "4,956 queries are what is left of 5,000 where about 0.9 % of the validation pictures have no label; queries "
        "are drawn from the labelled ones.",
        "The first caption is the first of the file that is not blank; an annotation of a crowd counts for its "
        "category.",
    ),
)

BENCHMARKS = {benchmark.name: benchmark for benchmark in (MIRFLICKR25K, NUSWIDE, MSCOCO)}


def find_benchmark(name: str) -> Benchmark:
    """The benchmark of that name, or a sentence that lists them.

    Example:
        >>> find_benchmark("mscoco").protocols[0].queries
        4956
    """
    if name not in BENCHMARKS:
        raise ConfigError(f"There is no benchmark {name!r}; known are {', '.join(BENCHMARKS)}.")
    return BENCHMARKS[name]
