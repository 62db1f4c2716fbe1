"""What an install is: one import name, torch and numpy at the core, wheel and sdist alike."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

import pytest

import rowsep

ROOT = Path(__file__).parents[1]
OPTIONAL = ("scipy", "cvxpy", "clarabel", "galois", "numba", "safetensors", "typer", "rich")
"""Packages of the extras that torch does not import itself."""


def tracked(*folders):
    listed = subprocess.run(
        ["git", "ls-files", *folders], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [name for name in listed.stdout.splitlines() if os.path.lexists(ROOT / name)]


def run(*command, cwd, path=()):
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    if path:
        environment["PYTHONPATH"] = os.pathsep.join(map(str, path))
    ended = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    return ended.returncode, ended.stdout, ended.stderr


def copy(tree):
    """The tracked files alone, links as links."""
    loose = ("setup.py", "pyproject.toml", "README.md", "LICENSE")
    for name in [*tracked("packing", "optim", "src"), *loose]:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name, follow_symlinks=False)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A wheel and an sdist."""
    tree, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("dist")
    copy(tree)
    program = f"""
from setuptools import build_meta
print(build_meta.build_wheel({str(out)!r}), build_meta.build_sdist({str(out)!r}))
"""
    code, said, err = run(sys.executable, "-c", program, cwd=tree)
    assert code == 0, err
    wheel, sdist = said.split()[-2:]
    return out / wheel, out / sdist


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """The wheel in a folder of its own."""
    folder = tmp_path_factory.mktemp("installed")
    pip = (sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet")
    code, _, err = run(*pip, "--target", str(folder), str(built[0]), cwd=folder)
    assert code == 0, err
    return folder


@pytest.fixture
def project(tmp_path):
    """A training repository whose own folders have the names of ours."""
    for name in ("packing", "optim", "experiments", "benchmarks"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise RuntimeError('the user has {name}')")
    return tmp_path


def test_a_wheel_adds_one_name_and_carries_every_file(built):
    wheel, sdist = built
    names = zipfile.ZipFile(wheel).namelist()
    tops = {PurePosixPath(name).parts[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"rowsep"}
    ours = {f"rowsep/{name}" for name in tracked("packing", "optim")}
    assert ours | {"rowsep/__init__.py", "rowsep/__main__.py", "rowsep/py.typed"} == {
        name for name in names if name.startswith("rowsep/")
    }
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/src/")[2] for name in archive.getnames() if "/src/" in name}
    assert ours <= packed


def test_a_tree_that_lost_its_links_builds_the_same_wheel(built, tmp_path):
    """As a zip archive does, and a checkout where links need a privilege."""
    copy(tmp_path)
    for name in ("packing", "optim"):
        link = tmp_path / "src" / "rowsep" / name
        target = os.readlink(link)
        link.unlink()
        link.write_text(target)
    program = "from setuptools import build_meta; print(build_meta.build_wheel('dist'))"
    code, said, err = run(sys.executable, "-c", program, cwd=tmp_path)
    assert code == 0, err
    wheels = zipfile.ZipFile(tmp_path / "dist" / said.split()[-1]), zipfile.ZipFile(built[0])
    assert set(wheels[0].namelist()) == set(wheels[1].namelist())


SCRIPT = """
import sys
import torch
before = set(sys.modules)
import rowsep.optim
print("|".join(sorted({name.partition(".")[0] for name in sys.modules.keys() - before})))
print("|".join(sorted(name for name in sys.modules.keys() - before if "torch" in name)))
import rowsep
head = torch.nn.Linear(8, 40, bias=False)
optimizer = rowsep.optim.RowwiseAdam(head.parameters(), lr=0.1)
head(torch.randn(16, 8)).logsumexp(dim=1).sum().backward()
optimizer.step()
solution = rowsep.solve(torch.randn(40, 8), passes=2)
assert rowsep.measure(solution.update).rho == solution.rho
print(rowsep.__file__, rowsep.packing.__file__, rowsep.__version__)
"""


def test_a_script_beside_folders_of_the_same_names(installed, project):
    """And `import rowsep.optim` imports nothing but itself on top of torch."""
    (project / "train.py").write_text(SCRIPT)
    code, out, err = run(sys.executable, "train.py", cwd=project, path=[installed])
    assert code == 0, err
    names, of_torch, files = out.splitlines()
    assert names == "rowsep"
    assert of_torch == ""
    assert files.count(str(installed)) == 2


def test_the_command_beside_folders_of_the_same_names(installed, project):
    command = (sys.executable, str(installed / "bin" / "rowsep"))
    code, out, err = run(*command, "measure", "--json", cwd=project, path=[project, installed])
    assert code == 0, err
    assert json.loads(out)["input"]["shape"] == [4096, 128]


CORE = """
import importlib.abc, sys
class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {optional!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
import torch
import rowsep
from rowsep import optim, packing
M = torch.randn(30, 4)
rowsep.measure(rowsep.solve(M, passes=2).update, momentum=M)
packing.steepest_step(M)
for name in optim.__all__:
    made = getattr(optim, name)
    if isinstance(made, type) and issubclass(made, optim.HeadOptimizer):
        if made is not optim.HeadOptimizer:
            p = torch.nn.Parameter(M.clone())
            p.grad = torch.randn(30, 4)
            made([p]).step()
for statement in (
    "packing.codes.best_code",
    "from rowsep.packing import minimal_diameter",
    "packing.solve(M[:4], solver='exact')",
    "packing.steepest_step(M, solver='cone')",
    "from rowsep.packing.bounds import semidefinite",
    "from rowsep.packing.io import demo_momentum; demo_momentum()",
):
    try:
        exec(statement)
    except ModuleNotFoundError as error:
        print(error)
sys.argv = ["rowsep", "measure"]
from rowsep.__main__ import main
print(main())
"""


def test_the_core_needs_torch_and_numpy_alone_and_the_rest_names_its_extra(tmp_path):
    (tmp_path / "core.py").write_text(CORE.format(optional=set(OPTIONAL)))
    code, out, err = run(sys.executable, "core.py", cwd=tmp_path)
    assert code == 0, err
    lines = out.splitlines()
    assert lines == [
        "scipy is not installed: pip install 'rowsep[codes]'",
        "scipy is not installed: pip install 'rowsep[exact]'",
        "scipy is not installed: pip install 'rowsep[exact]'",
        "cvxpy is not installed: pip install 'rowsep[exact]'",
        "cvxpy is not installed: pip install 'rowsep[exact]'",
        "safetensors is not installed: pip install 'rowsep[cli]'",
        "2",
    ]
    assert err.splitlines() == ["rowsep: typer is not installed: pip install 'rowsep[cli]'"]


def test_import_packing_from_a_clone(tmp_path):
    program = """
import torch, packing, packing.cloud
solution = packing.solve(torch.randn(30, 4), passes=2)
assert packing.cloud.ratio(solution.update).value == solution.rho
print(packing.__file__)
"""
    code, out, err = run(sys.executable, "-c", program, cwd=ROOT)
    assert code == 0, err
    assert out.strip() == str(ROOT / "packing" / "__init__.py")


def test_names_that_do_not_exist_are_refused():
    with pytest.raises(AttributeError, match="module 'rowsep' has no attribute 'separate'"):
        rowsep.separate  # noqa: B018
    assert set(rowsep.__all__) <= set(dir(rowsep))
    with pytest.raises(AttributeError, match="no attribute 'separate'"):
        rowsep.packing.separate  # noqa: B018
