"""Files for packaging agree with setup.cfg."""

import configparser
import pathlib
import re

import yaml

ROOT = pathlib.Path(__file__).parent.parent
SETUP = configparser.ConfigParser()
SETUP.read(ROOT / "setup.cfg", encoding="utf-8")
VERSIONS = re.findall(r"^Programming Language :: Python :: (3\.\d+)$", SETUP["metadata"]["classifiers"], re.MULTILINE)


def test_the_conda_recipe_has_the_version_and_the_dependencies_of_setup_cfg():
    recipe = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
    assert recipe["context"]["version"] == SETUP["metadata"]["version"]
    assert recipe["build"]["python"]["entry_points"] == SETUP["options.entry_points"]["console_scripts"].split("\n")[1:]
    wanted = [*SETUP["options"]["install_requires"].split(), f"python{SETUP['options']['python_requires']}"]
    assert sorted(text.replace(" ", "") for text in recipe["requirements"]["run"]) == sorted(wanted)


def test_ci_tests_every_version_that_the_classifiers_name():
    ci = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    matrix = ci["jobs"]["test"]["strategy"]["matrix"]
    assert matrix["python"] == VERSIONS
    assert len(matrix["os"]) == 3
    package = yaml.safe_load((ROOT / ".github" / "workflows" / "package.yml").read_text(encoding="utf-8"))
    assert package["jobs"]["kernels"]["strategy"]["matrix"]["python"] == VERSIONS  # wheels with kernels are for one version
