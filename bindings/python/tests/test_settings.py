"""The parameters of the classifier are the table of settings."""

import inspect

import pytest

import ivoro


def test_every_setting_is_a_parameter_with_its_default():
    parameters = dict(inspect.signature(ivoro.IVoroClassifier.__init__).parameters)
    for name in ("self", "variant", "budget", "threads"):
        del parameters[name]
    table = ivoro.settings()
    assert list(parameters) == list(table)
    for name, parameter in parameters.items():
        # None leaves it to the first classes, or to the table
        if table[name]["chosen"]:
            assert parameter.default is None, name
        else:
            assert parameter.default in (None, table[name]["default"]), name


@pytest.mark.parametrize("name", list(ivoro.settings()))
def test_every_setting_is_described_and_reaches_the_model(name, samples):
    assert f"{name} :" in ivoro.IVoroClassifier.__doc__ or f"{name}," in ivoro.IVoroClassifier.__doc__
    default = ivoro.settings()[name]["default"]
    model = ivoro.IVoroClassifier("iVoro", **{name: default}).fit(*samples)
    found = dict(model.settings_, exponent=model.settings_["transform"]["lambda"])
    found.update(model.settings_["transform"])
    assert found[name] == default
