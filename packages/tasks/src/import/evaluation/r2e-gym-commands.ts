/**
 * Owns the repositories of R2E-Gym and how their tests are run, below `r2e_tests` of the repository. Sources of
 * facts: R2E-Gym/R2E-Gym, repo_analysis/base_dockerfiles (owners), repo_analysis_args.py and repo_testextract.py
 * (commands). Its tests of Pillow import a module that its records do not hold: they are not here.
 */
const OWNERS: Readonly<Record<string, string>> = {
  aiohttp: "aio-libs/aiohttp",
  coveragepy: "nedbat/coveragepy",
  datalad: "datalad/datalad",
  numpy: "numpy/numpy",
  orange3: "biolab/orange3",
  pandas: "pandas-dev/pandas",
  pyramid: "Pylons/pyramid",
  scrapy: "scrapy/scrapy",
  sympy: "sympy/sympy",
  tornado: "tornadoweb/tornado",
};

export interface R2eCommand {
  /** `owner/name`. */
  readonly repository: string;
  readonly prepare: readonly string[];
  readonly test: string;
}

const PYTHON = ".venv/bin/python -W ignore";
const QUIET = "export PYTHONWARNINGS='ignore::UserWarning,ignore::SyntaxWarning'";

/** Undefined for a project that is not known. */
export function r2eCommandOf(project: string): R2eCommand | undefined {
  const repository = Object.hasOwn(OWNERS, project) ? OWNERS[project] : undefined;
  if (repository === undefined) return undefined;
  if (project === "tornado")
    return { repository, prepare: [], test: `${PYTHON} r2e_tests/tornado_unittest_runner.py` };
  const pytest = `${PYTHON} -m pytest -rA r2e_tests`;
  if (project === "orange3")
    return {
      repository,
      prepare: [QUIET, "export QT_QPA_PLATFORM=minimal"],
      test: `xvfb-run --auto-servernum ${pytest}`,
    };
  return { repository, prepare: [QUIET], test: pytest };
}
