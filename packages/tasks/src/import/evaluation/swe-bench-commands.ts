/**
 * Owns how the repositories of SWE-bench are tested and installed again, by version. The facts are those of the
 * `swebench` package 4.0.3 (harness/constants/python.py), where the records of older versions do not bring them;
 * the commands of eleven repositories were compared with logs of the official harness.
 */

export interface TestCommand {
  /** Shell lines before the installation: locale and variables. */
  readonly prepare: readonly string[];
  readonly install: readonly string[];
  /** The files or modules to test follow it. */
  readonly test: string;
}

const PYTEST = "pytest -rA";
const EDITABLE = "python -m pip install -e .";
const DJANGO = "./tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1";

const UTF8 = ["export LANG=en_US.UTF-8", "export LC_ALL=en_US.UTF-8", "export LANGUAGE=en_US:en"];

function plain(test: string, install: string): TestCommand {
  return { prepare: [], install: [install], test };
}

const BY_REPOSITORY: Readonly<Record<string, (version: string) => TestCommand>> = {
  "astropy/astropy": (version) =>
    plain(
      /^(0\.|1\.[1-3]$)/.test(version) ? `${PYTEST} -vv -o console_output_style=classic --tb=no` : PYTEST,
      "python -m pip install -e '.[test]' --verbose",
    ),
  "django/django": django,
  "marshmallow-code/marshmallow": () => plain(PYTEST, "python -m pip install -e '.[dev]'"),
  "matplotlib/matplotlib": (version) => {
    if (/^[12]\./.test(version)) return plain(PYTEST, "python setup.py build; python setup.py install");
    return plain(
      PYTEST,
      /^3\.[89]$/.test(version) ? "python -m pip install --no-build-isolation -e '.[dev]'" : EDITABLE,
    );
  },
  "mwaskom/seaborn": (version) =>
    plain("pytest --no-header -rA", version === "0.11" ? EDITABLE : "python -m pip install -e '.[dev]'"),
  "pallets/flask": () => plain(PYTEST, EDITABLE),
  "psf/requests": () => plain(PYTEST, "python -m pip install ."),
  "pvlib/pvlib-python": () => plain(PYTEST, "python -m pip install -e '.[all]'"),
  "pydata/xarray": () => plain(PYTEST, EDITABLE),
  "pydicom/pydicom": () => plain(PYTEST, EDITABLE),
  "pylint-dev/astroid": () => plain(PYTEST, EDITABLE),
  "pylint-dev/pylint": () => plain(PYTEST, EDITABLE),
  "pytest-dev/pytest": () => plain(PYTEST, EDITABLE),
  "pyvista/pyvista": () => plain(PYTEST, EDITABLE),
  "scikit-learn/scikit-learn": () =>
    plain(PYTEST, "python -m pip install -v --no-use-pep517 --no-build-isolation -e ."),
  "sphinx-doc/sphinx": () => plain("tox --current-env -epy39 -v --", "python -m pip install -e '.[test]'"),
  "sqlfluff/sqlfluff": () => plain(PYTEST, EDITABLE),
  "sympy/sympy": () =>
    plain("PYTHONWARNINGS='ignore::UserWarning,ignore::SyntaxWarning' bin/test -C --verbose", EDITABLE),
};

function django(version: string): TestCommand {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major >= 4) return plain(DJANGO, EDITABLE);
  if (major === 3)
    return {
      prepare: ["sed -i '/en_US.UTF-8/s/^# //g' /etc/locale.gen && locale-gen", ...UTF8],
      install: [EDITABLE],
      test: DJANGO,
    };
  const isOldest = major === 1 && minor < 7;
  return {
    prepare: isOldest ? [] : [...UTF8, "export PYTHONIOENCODING=utf8"],
    install: ["python setup.py install"],
    test: major === 1 && minor === 9 ? "./tests/runtests.py --verbosity 2" : DJANGO,
  };
}

/** Undefined for a repository SWE-bench does not have, and for a record without a version. */
export function testCommandOf(repo: string, version: string | undefined): TestCommand | undefined {
  return version === undefined ? undefined : BY_REPOSITORY[repo.toLowerCase()]?.(version);
}
