/**
 * Owns how the eleven repositories of SWE-Gym are tested. The facts are those of the harness it is graded with
 * (SWE-Gym/SWE-Bench-Package, swegym/harness/constants.py). Its installation steps download packages and are
 * left out: the images are installed already, in place; only pandas, which must be compiled, is built again.
 */
import type { TestCommand } from "./swe-bench-commands.js";

export interface GymCommand extends TestCommand {
  /** Tests are chosen by the names of cases in the test patch, not by its files. */
  readonly isSelectedByCase: boolean;
}

const SERIAL = "pytest -n0 -rA";

const TESTS: Readonly<Record<string, string>> = {
  "bokeh/bokeh": "pytest -rA -n0",
  "conan-io/conan": SERIAL,
  "dask/dask": `${SERIAL} --color=no`,
  "facebookresearch/hydra": "pytest -rA --tb=long",
  "getmoto/moto": SERIAL,
  "iterative/dvc": "pytest -rA",
  "modin-project/modin": SERIAL,
  "pandas-dev/pandas": "pytest -rA --tb=long",
  "project-monai/monai": "pytest -rA",
  "pydantic/pydantic": "pytest -rA --tb=short -vv -o console_output_style=classic --no-header",
  "python/mypy": `${SERIAL} -k`,
};

/** The versions of mypy whose tests run in parallel. */
const PARALLEL_MYPY = /^1\.(7|8|9|1\d)$/;

export function isGymRepository(repo: string): boolean {
  return Object.hasOwn(TESTS, repo.toLowerCase());
}

/** `repo` is one of SWE-Gym's. */
export function gymCommandOf(repo: string, version: string | undefined): GymCommand {
  const name = repo.toLowerCase();
  const isMypy = name === "python/mypy";
  return {
    prepare: name === "conan-io/conan" ? ["export PYTHONPATH=$PWD"] : [],
    install:
      name === "pandas-dev/pandas"
        ? ["python -m pip install -ve . --no-build-isolation --no-deps -Ceditable-verbose=true"]
        : [],
    test: isMypy && PARALLEL_MYPY.test(version ?? "") ? "pytest -rA -k" : (TESTS[name] ?? "pytest -rA"),
    isSelectedByCase: isMypy,
  };
}
