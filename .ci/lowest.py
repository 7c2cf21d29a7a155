"""The lowest versions that pyproject.toml allows, as constraints for pip."""

import re
import tomllib
from pathlib import Path

BESIDE = "test", "dev"  # extras of those who change the code, not of those who use it

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
extras = [rows for name, rows in project["optional-dependencies"].items() if name not in BESIDE]
for requirement in sum(extras, project["dependencies"]):
    name, lowest = re.match(r"([\w.-]+)(?:\[.*?\])?>=([\w.]+)", requirement).groups()
    print(f"{name}=={lowest}")
