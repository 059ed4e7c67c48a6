import itertools
import json
import multiprocessing
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import boto3
import numpy as np
import pytest
from moto.server import ThreadedMotoServer
from tokenizers import Tokenizer

from trainfabric_plan.errors import InvalidInput, NotFound
from trainfabric_training.data import find_sources, open_corpus, prepare, sample_index, standard_library_sources
from trainfabric_training.data.__main__ import run


@pytest.fixture
def text(tmp_path: Path) -> Path:
    folder = tmp_path / "text"
    folder.mkdir()
    for number in range(20):
        (folder / f"{number:02d}.txt").write_text(f"document {number}: " + "the quick brown fox, äöü " * number)
    return folder


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    boto3.client("s3").create_bucket(Bucket="corpora")
    yield "s3://corpora/data"
    server.stop()


def test_samples_are_the_documents_one_after_the_other(text: Path, tmp_path: Path) -> None:
    prepare(text.iterdir(), str(tmp_path / "out" / "c"), 300)

    corpus = open_corpus(str(tmp_path / "out" / "c"), 16, tmp_path / "cache")

    samples = [corpus.sample(number) for number in range(len(corpus))]
    assert all(sample.shape == (17,) and sample.dtype == np.int64 for sample in samples)
    assert all(a[-1] == b[0] for a, b in itertools.pairwise(samples))
    stream = np.concatenate([samples[0], *(sample[1:] for sample in samples[1:])])
    tokenizer = Tokenizer.from_file(str(tmp_path / "out" / "c.tokenizer.json"))
    decoded = tokenizer.decode(stream.tolist(), skip_special_tokens=False)
    whole = "".join(path.read_text() + "<|endoftext|>" for path in sorted(text.iterdir()))
    assert whole.startswith(decoded.rstrip("\N{REPLACEMENT CHARACTER}"))
    assert len(corpus) == (corpus.facts.tokens - 1) // 16


def test_the_same_files_give_the_same_bytes_in_any_order(text: Path, tmp_path: Path) -> None:
    first = prepare(sorted(text.iterdir()), str(tmp_path / "a" / "c"), 300)
    second = prepare(sorted(text.iterdir(), reverse=True), str(tmp_path / "b" / "c"), 300)

    assert first == second
    for suffix in ("bin", "idx", "json", "tokenizer.json"):
        assert (tmp_path / "a" / f"c.{suffix}").read_bytes() == (tmp_path / "b" / f"c.{suffix}").read_bytes()


def test_files_that_are_no_text_are_skipped_and_counted(text: Path, tmp_path: Path) -> None:
    (text / "binary").write_bytes(b"\xff\xfe\x00")
    (text / "empty").write_bytes(b"")

    facts = prepare(find_sources(text, "*"), str(tmp_path / "c"), 300)

    assert (facts.documents, facts.skipped) == (20, 2)


def test_progress_is_told_phase_by_phase(text: Path, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []

    prepare(text.iterdir(), str(tmp_path / "c"), 300, lambda *told: seen.append(told))

    assert seen == [("train", 20, 20), ("encode", 20, 20), *(("write", number, 4) for number in range(1, 5))]


def test_a_corpus_in_a_bucket_is_downloaded_once(text: Path, tmp_path: Path, bucket: str) -> None:
    prepare(text.iterdir(), f"{bucket}/c", 300)
    first = open_corpus(f"{bucket}/c", 16, tmp_path / "cache").sample(3)
    for key in ("data/c.bin", "data/c.idx"):
        boto3.client("s3").delete_object(Bucket="corpora", Key=key)

    again = open_corpus(f"{bucket}/c", 16, tmp_path / "cache").sample(3)

    assert first.tolist() == again.tolist()


def test_ranks_that_open_it_at_once_share_one_download(text: Path, tmp_path: Path, bucket: str) -> None:
    prepare(text.iterdir(), f"{bucket}/c", 300)
    with multiprocessing.get_context("spawn").Pool(2) as ranks:
        lengths = ranks.starmap(_length, [(f"{bucket}/c", tmp_path / "cache")] * 4)

    assert len(set(lengths)) == 1
    assert [path.name for path in (tmp_path / "cache" / "corpora").glob("*") if path.is_dir()] == [
        open_corpus(f"{bucket}/c", 16, tmp_path / "cache").facts.identity
    ]


def _length(uri: str, cache: Path) -> int:
    return len(open_corpus(uri, 16, cache))


def test_a_damaged_object_is_refused_and_not_kept(text: Path, tmp_path: Path, bucket: str) -> None:
    facts = prepare(text.iterdir(), f"{bucket}/c", 300)
    boto3.client("s3").put_object(Bucket="corpora", Key="data/c.bin", Body=b"xx")

    for _ in range(2):
        with pytest.raises(InvalidInput) as caught:
            open_corpus(f"{bucket}/c", 16, tmp_path / "cache")

    assert str(caught.value) == (
        f"{bucket}/c.bin: sha256 must be {facts.bin_sha256}, as its facts say, got "
        "5dde896887f6754c9b15bfe3a441ae4806df2fde94001311e08bf110622e0bbe; "
        "the object is damaged or being replaced: prepare the corpus again"
    )


def test_a_missing_corpus_says_how_to_write_it(tmp_path: Path, bucket: str) -> None:
    with pytest.raises(NotFound) as caught:
        open_corpus(f"{bucket}/none", 16, tmp_path / "cache")

    assert str(caught.value) == (
        "s3://corpora/data/none.json: corpus must be a prepared one, got none; "
        "write it with python -m trainfabric_training.data prepare --output s3://corpora/data/none"
    )


def test_a_sequence_longer_than_the_corpus_is_refused(text: Path, tmp_path: Path) -> None:
    facts = prepare([text / "00.txt"], str(tmp_path / "c"), 300)

    with pytest.raises(InvalidInput) as caught:
        open_corpus(str(tmp_path / "c"), 4096, tmp_path / "cache")

    assert str(caught.value) == (
        f"{tmp_path}/c: sequence length must be at most {facts.tokens - 1} for a corpus of {facts.tokens} tokens, "
        "got 4096; use more text or a recipe with shorter sequences"
    )


def test_a_corpus_with_more_tokens_than_the_model_is_refused(text: Path, tmp_path: Path) -> None:
    prepare(text.iterdir(), str(tmp_path / "c"), 300)

    with pytest.raises(InvalidInput) as caught:
        open_corpus(str(tmp_path / "c"), 16, tmp_path / "cache", vocabulary=256)

    assert str(caught.value) == (
        f"{tmp_path}/c: vocabulary of the corpus must be at most the 256 entries of the model, got 300; "
        "prepare the corpus with the recipe's vocabulary"
    )


def test_a_token_that_the_vocabulary_does_not_have_is_refused(text: Path, tmp_path: Path) -> None:
    prepare(text.iterdir(), str(tmp_path / "c"), 300)
    damaged = np.fromfile(tmp_path / "c.bin", "<u2")
    damaged[20] = 300
    damaged.tofile(tmp_path / "c.bin")

    with pytest.raises(InvalidInput) as caught:
        open_corpus(str(tmp_path / "c"), 16, tmp_path / "cache").sample(1)

    assert str(caught.value) == (
        f"{tmp_path}/c: token of sample 1 must be from 0 to 299, got 300; the file is damaged: prepare the corpus again"
    )


def test_facts_that_do_not_fit_the_tokens_are_refused(text: Path, tmp_path: Path) -> None:
    facts = prepare(text.iterdir(), str(tmp_path / "c"), 300)
    (tmp_path / "c.json").write_text(facts.model_copy(update={"tokens": 5}).model_dump_json())

    with pytest.raises(InvalidInput) as caught:
        open_corpus(str(tmp_path / "c"), 2, tmp_path / "cache")

    assert str(caught.value) == (
        f"{tmp_path}/c: number of tokens must be 5, as its facts say, got {facts.tokens}; prepare the corpus again"
    )


def test_facts_that_are_no_facts_are_refused(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text("{}")

    with pytest.raises(InvalidInput) as caught:
        open_corpus(str(tmp_path / "c"), 2, tmp_path / "cache")

    assert str(caught.value).splitlines()[0] == (
        f"{tmp_path.as_uri()}/c.json: documents must be as the command data prepare writes it, got field required; "
        "prepare the corpus again"
    )


def test_a_vocabulary_without_room_for_every_byte_is_refused(text: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        prepare(text.iterdir(), str(tmp_path / "c"), 256)

    assert str(caught.value) == (
        "tokenizer: vocabulary must be at least 257 (256 bytes and the end of a document) and below 2^31, got 256; "
        "use the vocabulary of the recipe"
    )


def test_an_address_without_a_name_is_refused(text: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        prepare(text.iterdir(), "s3://bucket", 300)

    assert str(caught.value) == (
        "'s3://bucket': corpus address must be the folder and the beginning of the files' names, "
        "such as s3://bucket/data/name, got 's3://bucket'"
    )


def test_every_epoch_visits_every_sample_once_in_another_order() -> None:
    epochs = [[sample_index(7, epoch * 1000 + n, 1000) for n in range(1000)] for epoch in range(3)]

    assert all(sorted(epoch) == list(range(1000)) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]
    assert epochs[0] != sorted(epochs[0])


@pytest.mark.parametrize("samples", [1, 2, 3, 5, 64, 65])
def test_the_order_is_a_permutation_for_any_number_of_samples(samples: int) -> None:
    assert sorted(sample_index(-3, n, samples) for n in range(samples)) == list(range(samples))


def test_the_order_is_fixed_forever() -> None:
    assert [sample_index(1234, position, 26_567) for position in range(6)] == [26180, 11199, 738, 22252, 10599, 9786]


def test_positions_are_spread_evenly() -> None:
    early = [sample_index(1, n, 100_000) for n in range(1000)]

    assert 47_000 < sum(early) / len(early) < 53_000


def test_a_negative_position_is_our_own_mistake() -> None:
    with pytest.raises(ValueError, match="samples must be at least 1 and position at least 0, got 10 and -1"):
        sample_index(1, -1, 10)


def test_the_standard_library_is_megabytes_of_sources_without_tests() -> None:
    files = standard_library_sources()

    assert sum(path.stat().st_size for path in files) > 5_000_000
    library = Path(sysconfig.get_path("stdlib"))
    assert not [path for path in files if {"test", "tests", "site-packages"} & set(path.relative_to(library).parts)]


def test_the_command_prepares_and_prints_the_facts(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["prepare", "--sources", str(text), "--pattern", "0*.txt", "--vocabulary", "300", "--json"]

    status = run([*arguments, "--output", str(tmp_path / "c")])

    printed = json.loads(capsys.readouterr().out)
    assert status == 0
    assert printed == json.loads((tmp_path / "c.json").read_text())
    assert printed["documents"] == 10


def test_the_command_leaves_with_two_if_no_file_matches(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = run(["prepare", "--sources", str(text), "--pattern", "*.py", "--output", str(tmp_path / "c")])

    assert status == 2
    assert capsys.readouterr().err == (
        f"{text}: source files must match *.py, got none; correct the directory or the pattern\n"
    )
