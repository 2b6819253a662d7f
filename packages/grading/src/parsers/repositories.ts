/**
 * Owns which repository of the data sets is read by which parser. A record that names its parser does not
 * need a row. Source: the parser tables of the `swebench` package, versions 2.1, 4.0 and 5.0, and of its
 * fork for SWE-Gym.
 */

const BY_PARSER: Readonly<Record<string, readonly string[]>> = {
  pytest: [
    "marshmallow-code/marshmallow",
    "pallets/flask",
    "pvlib/pvlib-python",
    "pydata/xarray",
    "pylint-dev/astroid",
    "pytest-dev/pytest",
    "pyvista/pyvista",
    "sqlfluff/sqlfluff",
  ],
  "pytest-options": ["psf/requests", "pydicom/pydicom", "pylint-dev/pylint"],
  "pytest-v2": ["astropy/astropy", "scikit-learn/scikit-learn", "sphinx-doc/sphinx"],
  django: ["django/django"],
  matplotlib: ["matplotlib/matplotlib"],
  seaborn: ["mwaskom/seaborn"],
  sympy: ["sympy/sympy"],
  jest: ["babel/babel", "facebook/docusaurus"],
  "immutable-js": ["immutable-js/immutable-js"],
  vitest: ["vuejs/core"],
  karma: ["preactjs/preact"],
  tap: ["axios/axios", "mrdoob/three.js"],
  calypso: ["Automattic/wp-calypso"],
  "chart-js": ["chartjs/Chart.js"],
  marked: ["markedjs/marked"],
  p5js: ["processing/p5.js"],
  carbon: [
    "carbon-design-system/carbon",
    "diegomura/react-pdf",
    "prettier/prettier",
    "scratchfoundation/scratch-gui",
  ],
  next: ["alibaba-fusion/next"],
  "bpmn-js": ["bpmn-io/bpmn-js"],
  "mocha-json": ["cypress-io/cypress", "PrismJS/prism"],
  grommet: ["emotion-js/emotion", "grommet/grommet"],
  eslint: ["eslint/eslint"],
  lighthouse: ["GoogleChrome/lighthouse"],
  highlightjs: ["highlightjs/highlight.js"],
  openlayers: ["openlayers/openlayers"],
  plotly: ["plotly/plotly.js"],
  "quarto-cli": ["quarto-dev/quarto-cli"],
  redis: ["redis/redis", "valkey-io/valkey"],
  jq: ["jqlang/jq"],
  doctest: ["nlohmann/json"],
  micropython: ["micropython/micropython"],
  googletest: ["fmtlib/fmt"],
  gotest: [
    "caddyserver/caddy",
    "gin-gonic/gin",
    "gohugoio/hugo",
    "hashicorp/terraform",
    "prometheus/prometheus",
  ],
  cargo: [
    "astral-sh/ruff",
    "burntsushi/ripgrep",
    "nushell/nushell",
    "sharkdp/bat",
    "tokio-rs/axum",
    "tokio-rs/tokio",
    "uutils/coreutils",
  ],
  maven: ["apache/druid", "google/gson", "javaparser/javaparser"],
  ant: ["projectlombok/lombok"],
  gradle: ["apache/lucene", "reactivex/rxjava"],
  phpunit: [
    "briannesbitt/carbon",
    "laravel/framework",
    "php-cs-fixer/php-cs-fixer",
    "phpoffice/phpspreadsheet",
  ],
  "ruby-unit": ["faker-ruby/faker", "fluent/fluentd"],
  "rspec-json": ["fastlane/fastlane", "jordansissel/fpm", "rubocop/rubocop"],
  jekyll: ["jekyll/jekyll"],
};

/** SWE-Gym: pytest throughout, and its harness writes no marks. */
const SWE_GYM = [
  "bokeh/bokeh",
  "conan-io/conan",
  "dask/dask",
  "facebookresearch/hydra",
  "getmoto/moto",
  "iterative/dvc",
  "modin-project/modin",
  "Project-MONAI/MONAI",
  "pandas-dev/pandas",
  "pydantic/pydantic",
  "python/mypy",
] as const;

export const REPOSITORY_PARSERS: ReadonlyMap<string, string> = new Map([
  ...Object.entries(BY_PARSER).flatMap(([parser, repos]) =>
    repos.map((repo) => [repo.toLowerCase(), parser] as const),
  ),
  ...SWE_GYM.map((repo) => [repo.toLowerCase(), "pytest"] as const),
]);

export const UNMARKED_REPOSITORIES: ReadonlySet<string> = new Set(SWE_GYM.map((repo) => repo.toLowerCase()));
