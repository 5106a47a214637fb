"""Examples run, types hold, stubs say what is there."""

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import ivoro
from conftest import ROOT

PACKAGE = ROOT / "bindings/python"
INSTALLED = Path(ivoro.__file__).parent


def blocks(path):
    return re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.M | re.S)


def python_section(path):
    """The Python examples of a page that belong to the package: those that import it."""
    code = blocks(path)
    return code if any("ivoro" in block for block in code) else []


@pytest.mark.parametrize("path", [PACKAGE / "README.md", ROOT / "README.md"], ids=["package", "root"])
def test_the_examples_of_the_read_me_run(path, tmp_path, monkeypatch, shipped):
    code = python_section(path)
    if path.parent == PACKAGE:
        assert len(code) >= 5
    monkeypatch.chdir(tmp_path)
    # the package's page names the file, the project's page where it lies
    for name in ("cifar100-small.features", "crates/ivoro-cli/data/cifar100-small.features"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).symlink_to(shipped)
    names = {}
    for block in code:
        exec(compile(block, str(path), "exec"), names)


def test_the_example_script_runs(tmp_path, shipped):
    script = PACKAGE / "examples/five_phases.py"
    done = subprocess.run([sys.executable, script, shipped, "--picture", tmp_path / "curve.png"],
                          check=True, capture_output=True, text=True)
    assert "merged" in done.stdout and "never saw it" in done.stdout
    assert (tmp_path / "curve.png").stat().st_size > 1000


def checked(*arguments, **options):
    done = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True,
                          **options)
    assert done.returncode == 0, done.stdout + done.stderr


def test_types_hold(tmp_path):
    checked("-m", "mypy", "--config-file", PACKAGE / "pyproject.toml", "--cache-dir", tmp_path,
            "--package", "ivoro", cwd=tmp_path)


def test_stubs_say_what_the_compiled_module_has(tmp_path):
    checked("-m", "mypy.stubtest", "ivoro._ivoro", "--ignore-disjoint-bases",
            "--mypy-config-file", PACKAGE / "pyproject.toml", cwd=tmp_path)


def test_types_reach_the_user(tmp_path):
    assert (INSTALLED / "py.typed").exists()
    (tmp_path / "user.py").write_text(
        "import ivoro\n"
        "model: ivoro.IVoroClassifier = ivoro.IVoroClassifier('iVoro').fit([[1.0]], ['a'])\n"
        "count: int = ivoro.thread_count('two')\n"
    )
    done = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", tmp_path, "user.py"],
                          cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert 'user.py:3: error: Argument 1 to "thread_count" has incompatible type "str"' in done.stdout


def test_licences_and_addresses_come_along():
    package = metadata.metadata("ivoro")
    assert package["License-Expression"] == "MIT OR Apache-2.0"
    assert set(package.get_all("License-File")) == {"LICENSE-MIT", "LICENSE-APACHE"}
    assert any("Repository" in url for url in package.get_all("Project-URL"))
    for name in ("LICENSE-MIT", "LICENSE-APACHE"):
        assert (PACKAGE / name).read_text() == (ROOT / name).read_text(), name
        files = [path for path in metadata.files("ivoro") if path.name == name]
        assert [path.read_text() for path in files] == [(ROOT / name).read_text()]


def test_the_version_is_the_library_s():
    manifest = (ROOT / "Cargo.toml").read_text()
    assert f'version = "{ivoro.__version__}"' in manifest


def test_importing_is_light(tmp_path):
    code = "import ivoro, sys; assert not {'matplotlib', 'ray'} & set(sys.modules)"
    checked("-c", code, cwd=tmp_path, env=dict(os.environ))
