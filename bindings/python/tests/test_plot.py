"""Pictures: what they show is what the classifier says."""

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402  the backend comes first
from matplotlib.path import Path  # noqa: E402

import ivoro  # noqa: E402
from ivoro import IVoroClassifier, plot  # noqa: E402


@pytest.fixture(autouse=True)
def figure():
    yield pyplot.figure()
    pyplot.close("all")


def plane(classes=7):
    rng = np.random.default_rng(3)
    y = np.repeat(np.arange(classes), 12)
    centres = rng.uniform(-3, 3, (classes, 2))
    return (centres[y] + rng.normal(0, 0.5, (len(y), 2)) * [1, 3]).astype(np.float32), y


@pytest.mark.parametrize("variant", ["iVoro", "iVoro-W", "iVoro-R", "iVoro-WR"])
def test_every_point_lies_in_the_cell_of_its_answer(variant):
    model = IVoroClassifier(variant).fit(*plane())
    box = (-6.0, 6.0, -9.0, 9.0)
    cells = plot.polygons(*model.model_.diagram(), box)
    points = np.random.default_rng(0).uniform(box[::2], box[1::2], (2000, 2)).astype(np.float32)
    answers = model.predict(points)
    inside = np.array([Path(cell).contains_points(points) for cell in cells if len(cell)])
    names = np.array([int(name) for name, cell in zip(model.model_.classes, cells, strict=True)
                      if len(cell)])
    alone = inside.sum(axis=0) == 1
    assert alone.mean() > 0.995  # a point on an edge is in two cells or in none
    assert np.mean(names[inside[:, alone].argmax(axis=0)] == answers[alone]) > 0.999


def test_cells_fill_the_box():
    model = IVoroClassifier("iVoro").fit(*plane())

    def area(cell):
        x, y = cell.T
        return 0.5 * abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1)))

    cells = plot.polygons(*model.model_.diagram(), (-2, 2, -1, 1))
    assert sum(area(cell) for cell in cells if len(cell)) == pytest.approx(8.0)


def test_a_picture_of_cells():
    X, y = plane()
    model = IVoroClassifier("iVoro-W").fit(X, y)
    ax = plot.cells(model, X, y)
    assert len(ax.patches) == 7
    assert plot.cells(model, box=(0, 1, 0, 2), ax=ax).get_ylim() == (0, 2)


@pytest.mark.parametrize("variant", ["iVoro-N", "iVoro-D"])
def test_cells_that_are_no_polygons(variant):
    with pytest.raises(ValueError, match="no letter besides W and R"):
        plot.cells(IVoroClassifier(variant).fit(*plane()))


def test_cells_of_more_than_two_features(samples):
    with pytest.raises(ValueError, match="with 6 features"):
        plot.cells(IVoroClassifier("iVoro").fit(*samples))


def test_curves_of_phases_and_of_records(samples, queries):
    def comparison():
        return ivoro.run((*samples, *queries), "2,1,1", "iVoro,iVoro-N", exponent=0.5)

    lines = plot.accuracy(comparison()).get_lines()
    assert [line.get_label() for line in lines] == ["iVoro", "iVoro-N"]
    assert lines[0].get_xdata().tolist() == [2, 3, 4]
    record = plot.accuracy(comparison().record(), pyplot.figure().gca()).get_lines()
    assert np.array_equal(record[1].get_ydata(), lines[1].get_ydata())


def test_more_classes_than_colours_can_be_told_apart():
    X, y = plane(13)
    ax = plot.cells(IVoroClassifier("iVoro").fit(X, y), X, y)
    assert len({patch.get_facecolor() for patch in ax.patches}) == 13
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [str(at) for at in range(13)]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("feature 0", "feature 1")


def test_more_methods_than_colours_can_be_told_apart():
    phases = [{"method": f"method {at}", "classes": 2, "accuracy": 50.0 + at} for at in range(16)]
    ax = plot.accuracy(phases)
    assert len({(line.get_color(), line.get_linestyle()) for line in ax.get_lines()}) == 16
    assert ax.get_legend().get_bbox_to_anchor().x0 > ax.bbox.x1, "beside the curves"
