"""Recognisers: taught and asked with photos."""

import io
import json
import pickle
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_sample_images
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import ivoro

Image = pytest.importorskip("PIL.Image")

SOURCES = dict(zip(("china", "flower"), load_sample_images().images, strict=True))
KINDS = [*SOURCES, "grey"]


def shot(kind, number):
    """A photo of one of three kinds: parts of scikit-learn's sample photographs, and a pattern."""
    rng = np.random.default_rng(number)
    if kind == "grey":
        return rng.integers(100, 140, (180, 200, 3), dtype=np.uint8)
    source = SOURCES[kind]
    top, left = rng.integers(0, 200), rng.integers(0, 340)
    return np.ascontiguousarray(source[top : top + 220, left : left + 280])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Photos in folders by class, to learn and to ask about."""
    place = tmp_path_factory.mktemp("photos")
    for part, numbers in (("train", range(5)), ("asked", range(20, 23))):
        for kind in KINDS:
            (place / part / kind).mkdir(parents=True)
            for number in numbers:
                Image.fromarray(shot(kind, number)).save(place / part / kind / f"{number}.png")
    return place


@pytest.fixture(scope="module")
def taught(folder, tmp_path_factory):
    """The file of a model that knows `china` and `flower`."""
    path = tmp_path_factory.mktemp("model") / "kinds"
    recogniser = ivoro.Recogniser("iVoro-NF")
    recogniser.teach([folder / "train/china", folder / "train/flower"], ["china", "flower"])
    recogniser.save(path)
    return path


def named(answers):
    return [answer.top[0].class_name for answer in answers]


def test_folders_teach_their_classes(folder, tmp_path):
    place = tmp_path / "photos"
    for kind in KINDS:
        (place / kind).mkdir(parents=True)
        Image.fromarray(shot(kind, 1)).save(place / kind / "1.png")
        Image.fromarray(shot(kind, 2)).save(place / kind / "2.png")
    (place / "flower" / "copy.png").write_bytes((place / "flower" / "1.png").read_bytes())
    (place / "flower" / "half.png").write_bytes((place / "flower" / "1.png").read_bytes()[:900])
    (place / "flower" / "Thumbs.db").write_bytes(b"nothing")
    recogniser = ivoro.Recogniser("iVoro-N")
    lesson = recogniser.teach(place)
    assert lesson.photos == 6 and lesson.classes == {"china": 2, "flower": 2, "grey": 2}
    assert recogniser.counts == lesson.classes and recogniser.classes == sorted(KINDS)
    (skipped,) = lesson.skipped
    assert skipped.kind == "truncated" and skipped.photo.endswith("half.png")
    assert [(it.photo[-8:], it.of[-5:]) for it in lesson.duplicates] == [("copy.png", "1.png")] or [
        it.of[-8:] for it in lesson.duplicates
    ] == ["copy.png"]
    assert [name[-9:] for name in lesson.other_files] == ["Thumbs.db"]
    answers = recogniser.ask(folder / "asked")
    assert len(answers) == 9 and {answer.place for answer in answers} == {0}
    assert named(answers) == [kind for kind in sorted(KINDS) for _ in range(3)]
    assert all(kind in answer.photo for kind, answer in zip(named(answers), answers, strict=True))
    assert not answers.skipped and repr(recogniser).startswith("<Recogniser: 3 classes, iVoro-N, eff")


def test_paths_bytes_arrays_and_pillow_give_one_answer(taught, folder, tmp_path):
    recogniser = ivoro.Recogniser.open(taught)
    path = folder / "asked/flower/20.png"
    pixels = shot("flower", 20)
    forms = [path, str(path), path.read_bytes(), pixels, Image.open(path), Image.fromarray(pixels)]
    expected = recogniser.ask(path)[0]
    assert expected.class_name == "flower" and expected.top[0].probability > 0.5
    for form in forms:
        (one,) = recogniser.ask(form)
        assert (one.top, one.strangeness) == (expected.top, expected.strangeness)
    together = recogniser.ask(iter(forms))
    assert [answer.place for answer in together] == list(range(len(forms)))
    assert named(together) == ["flower"] * len(forms)
    assert together[2].photo == "photo 2" and together[0].photo == str(path)
    # a file is named by what it holds, an image of Pillow is turned as a camera noted
    exif = Image.Exif()
    exif[0x0112] = 6
    turned, stored = tmp_path / "turned.png", Image.fromarray(pixels).transpose(Image.Transpose.ROTATE_90)
    stored.save(turned, exif=exif)
    assert recogniser.ask(Image.open(turned))[0].top == expected.top
    # the program turns what has shrunk already: values differ by a step
    near = pytest.approx(expected.top[0].distance, rel=0.05)
    assert recogniser.ask(turned)[0].top[0].distance == near
    clear = np.dstack([pixels, np.full(pixels.shape[:2], 255, dtype=np.uint8)])
    assert recogniser.ask(clear)[0].top == expected.top
    cmyk = io.BytesIO()
    Image.fromarray(pixels).convert("CMYK").save(cmyk, "TIFF")
    in_file = recogniser.ask(cmyk.getvalue())[0]
    assert recogniser.ask(Image.open(cmyk))[0].top == in_file.top
    grey = Image.fromarray(pixels).convert("L")
    assert recogniser.ask(grey)[0].top == recogniser.ask(np.asarray(grey))[0].top


def test_the_program_and_python_say_the_same(program, folder, tmp_path):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    environment = {"SOURCE_DATE_EPOCH": "1", "IVORO_NETWORKS": str(tmp_path / "networks")}

    def run(*arguments):
        command = [program, *map(str, arguments)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    recogniser = ivoro.Recogniser()
    recogniser.teach(folder / "train")
    recogniser.save(ours)
    run("learn", theirs, folder / "train")
    opened = ivoro.Recogniser.open(theirs)
    assert opened.variant == recogniser.variant and opened.counts == recogniser.counts
    assert opened.classifier().model_ == recogniser.classifier().model_
    for path, model in ((ours, recogniser), (theirs, opened)):
        lines = run("predict", path, folder / "asked", "--format", "jsonl").splitlines()
        found = model.ask(folder / "asked")
        assert len(lines) == len(found) == 9
        for line, answer in zip(map(json.loads, lines), found, strict=True):
            top = [(it["class"], it["probability"], it["distance"]) for it in line["top"]]
            assert [(it.class_name, it.probability, it.distance) for it in answer.top] == top
            assert (answer.photo, answer.unknown) == (line["file"], line["unknown"])
            assert answer.strangeness == line["strangeness"]
    # what one taught, the other takes back
    recogniser.update(folder / "asked/grey", "grey")
    recogniser.save(ours)
    run("retract", ours, folder / "asked/grey", "--from", "grey")
    assert ivoro.Recogniser.open(ours).counts == opened.counts


def test_taught_updated_taken_back_calibrated(taught, folder, tmp_path):
    recogniser = ivoro.Recogniser.open(taught)
    before = recogniser.classifier().model_
    lesson = recogniser.teach(folder / "train/grey", "grey", receipt=tmp_path / "grey.receipt")
    assert (lesson.photos, recogniser.counts["grey"]) == (5, 5)
    assert (tmp_path / "grey.receipt").exists()
    with pytest.raises(ValueError, match="not overwritten"):
        recogniser.teach(folder / "train/grey", "grey", receipt=tmp_path / "grey.receipt")
    more = [shot("grey", number) for number in range(40, 43)]
    assert recogniser.update(more, "grey").classes == {"grey": 3}
    with pytest.raises(ValueError, match="dog is not in the model"):
        recogniser.update(more, "dog")
    with pytest.raises(ValueError, match="last digits"):
        recogniser.retract(more[:2], "grey")
    assert recogniser.retract(more, ["grey"] * 3).photos == 3
    assert recogniser.retract(folder / "train/grey", "grey").photos == 5
    assert recogniser.classes == ["china", "flower"] and recogniser.classifier().model_ == before
    calibrated = recogniser.calibrate([folder / "asked/china", folder / "asked/flower"], ["china", "flower"])
    assert calibrated.photos == 6
    recogniser.rename("china", "temple")
    recogniser.forget("flower")
    assert recogniser.classes == ["temple"] and recogniser.journal["entries"][-1]["verb"] == "forget"
    assert recogniser.audit()


def test_what_is_wrong_is_said_and_changes_nothing(taught, folder, tmp_path):
    recogniser = ivoro.Recogniser.open(taught)
    before = recogniser.classifier().model_
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"no photo")
    whole = folder / "asked/china/20.png"
    with pytest.raises(ValueError, match="broken.jpg"):
        recogniser.ask([whole, broken])
    answers = recogniser.ask([broken, whole, tmp_path / "broken.jpg"], strict=False)
    assert [answer.place for answer in answers] == [1]
    assert [it.kind for it in answers.skipped] == ["unreadable", "unreadable"]
    assert not recogniser.ask([broken], strict=False)
    for photos, classes, error, match in [
        (tmp_path / "absent", None, FileNotFoundError, "absent"),
        (broken, "x", ValueError, "unreadable 1"),
        ([whole, broken], "x", None, ""),
        (shot("grey", 1), None, ValueError, "photo 0, which lies in no folder"),
        ([whole, whole], ["a"] * 3, ValueError, "for all photos or 2, found 3"),
        (whole, "", ValueError, "name"),
        ([1, 2], "x", TypeError, "found int"),
        (np.zeros((4, 4, 3)), "x", ValueError, "float64"),
        (np.zeros((4, 4, 2), dtype="uint8"), "x", ValueError, "channels"),
        ([], "x", ValueError, "no photo"),
    ]:
        if error is None:
            assert recogniser.teach(photos, classes).skipped[0].kind == "unreadable"
            recogniser.retract(photos, classes)
            continue
        with pytest.raises(error, match=match):
            recogniser.teach(photos, classes)
    with pytest.raises(ValueError, match="broken.jpg"):
        recogniser.teach([whole, broken], "x", strict=True)
    with pytest.raises(ValueError, match="class_from"):
        recogniser.teach(folder / "train", class_from="middle")
    with pytest.raises(ValueError, match="top = 0"):
        recogniser.ask(whole, top=0)
    assert recogniser.classifier().model_ == before
    features = tmp_path / "features"
    ivoro.IVoroClassifier("iVoro").fit([[0.0], [1.0]], ["a", "b"]).save(features)
    with pytest.raises(ValueError, match="network"):
        ivoro.Recogniser.open(features)
    with pytest.raises(ValueError):
        ivoro.Recogniser().ask(whole)


def test_unknown_bursts_and_how_many(taught, folder):
    recogniser = ivoro.Recogniser.open(taught)
    noise = np.random.default_rng(5).integers(0, 256, (224, 224, 3), dtype=np.uint8)
    (answer,) = recogniser.ask(noise)
    assert answer.unknown and answer.class_name is None and len(answer.top) == 2
    assert recogniser.ask(noise, reject=None)[0].unknown is None
    asked = [folder / "asked/china", folder / "asked/flower"]
    bursts = recogniser.ask(asked, burst=3, top=1)
    assert named(bursts) == ["china", "flower"] and [it.burst for it in bursts] == [3, 3]
    votes = recogniser.ask(asked, burst=3, burst_rule="vote")
    assert named(votes) == ["china", "flower"] and votes[0].top[0].probability is None


def test_many_threads_and_pickles(taught, folder):
    recogniser = ivoro.Recogniser.open(taught, threads=1)
    asked = [shot(kind, number) for kind in ("china", "flower") for number in range(50, 53)]
    expected = recogniser.ask(asked, reject=None)
    with ThreadPoolExecutor(4) as pool:
        lesson = pool.submit(recogniser.teach, folder / "train/grey", "grey")
        answers = [pool.submit(recogniser.ask, asked, reject=None) for _ in range(6)]
        assert all(named(answer.result()) == named(expected) for answer in answers)
        assert lesson.result().photos == 5
    again = pickle.loads(pickle.dumps(recogniser))
    assert again.classifier().model_ == recogniser.classifier().model_ and again.threads == 1
    assert again.ask(asked[0]).answers == recogniser.ask(asked[0]).answers


def test_the_interpreter_runs_on_and_ctrl_c_stops(taught):
    recogniser = ivoro.Recogniser.open(taught, threads=1)
    photos = [shot("china", number) for number in range(8)] * 40
    ticks = []

    def press():
        for _ in range(10):
            ticks.append(time.monotonic())
            time.sleep(0.05)
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=press)
    before = recogniser.counts
    thread.start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        recogniser.teach(photos, "much", keep_duplicates=True)
    thread.join()
    assert len(ticks) == 10 and time.monotonic() - begun < 30
    assert recogniser.counts == before


def test_the_classifier_takes_features_of_the_network(taught, folder):
    recogniser = ivoro.Recogniser.open(taught)
    paths = sorted((folder / "asked/flower").iterdir())
    X = recogniser.network.features(paths, views=("0", "0m"))
    classifier = recogniser.classifier()
    assert classifier.predict(X).tolist() == ["flower"] * 3
    distances, _ = classifier.kneighbors(X, 1)
    found = [answer.top[0].distance for answer in recogniser.ask(paths)]
    assert np.allclose(distances[:, 0], found, rtol=1e-4)


def test_photos_in_a_pipeline(folder):
    paths = sorted((folder / "train").glob("*/*.png"))
    y = [path.parent.name for path in paths]
    pipeline = make_pipeline(ivoro.PhotoFeatures(), ivoro.IVoroClassifier("iVoro-N"))
    assert cross_val_score(pipeline, paths, y, cv=3).mean() > 0.8
    asked = sorted((folder / "asked").glob("*/*.png"))
    fitted = pipeline.fit(paths, y)
    assert fitted.score(asked, [path.parent.name for path in asked]) == 1.0
    assert pickle.loads(pickle.dumps(fitted)).predict(asked).tolist() == fitted.predict(asked).tolist()
    features = ivoro.PhotoFeatures(views=("0", "0m"))
    assert features.transform(asked[:2]).shape == (2, 2, 1280)
    inner = clone(features).set_params(layer="block11", views=("0",))
    assert inner.fit_transform([shot("grey", 1)]).shape == (1, 672)
    assert inner.get_feature_names_out()[-1] == "block11_671"
    with pytest.raises(ValueError, match="absent"):
        ivoro.PhotoFeatures("absent").transform(asked)
