"""Where the packages are; all else is in pyproject.toml.

src/rowsep/packing and src/rowsep/optim are links to the folders at the top of the repository, so
that a checkout, an editable install, type checkers and editors see one package. Where the links
were lost, as in a zip archive or a checkout without them, the folders are taken by name.
"""

from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent
lost = [n for n in ("packing", "optim") if not (ROOT / "src" / "rowsep" / n).is_dir()]
packages = find_packages("src")
for name in lost:
    packages += [f"rowsep.{name}", *(f"rowsep.{name}.{one}" for one in find_packages(name))]
setup(package_dir={"": "src"} | {f"rowsep.{name}": name for name in lost}, packages=packages)
