/**
 * Owns short logs of the JavaScript runners that have a parser of their own, with the per-test map each must give. The maps
 * are those of the official parsers, compared by the parity suite; where ours differs, `differs` says why.
 */
export interface RunnerLog {
  readonly parser: string;
  /** The official package's name; absent where it has none. */
  readonly official?: string;
  readonly version?: string;
  readonly instance?: string;
  readonly log: string;
  readonly map: Readonly<Record<string, string>>;
  readonly differs?: string;
}

const P = "passed";
const F = "failed";
const S = "skipped";

export const JAVASCRIPT_LOGS: readonly RunnerLog[] = [
  {
    parser: "calypso",
    official: "parse_log_calypso",
    log: `+ ./node_modules/.bin/jest -c=a.js one
PASS client/one.js
  reducer
    #items
      ✓ adds (5ms)
      ✕ removes
  other
    ✓ counts
Test Suites: 1 failed
  late
    ✓ not counted
+ ./node_modules/.bin/jest -c=a.js two
  selectors
    ✓ selects (12ms)
  ● selectors › explained
    ✓ not counted either`,
    map: {
      "reducer - #items - adds": P,
      "reducer - #items - removes": F,
      "other - counts": P,
      "selectors - selects": P,
    },
  },
  {
    parser: "lighthouse-mocha",
    official: "parse_log_lighthouse",
    version: "9.5",
    log: `running 2 test files
  Audit
    when fast
      ✔ scores (12ms)
      1) fails
    ✔ ends
  3 passing (2s)
  1) Audit
running 1 test files
  Gather
    ✔ gathers`,
    map: {
      "when fast - scores": P,
      "when fast - fails": F,
      "when fast - ends": P,
      gathers: P,
    },
  },
  {
    parser: "carbon",
    official: "parse_log_carbon",
    log: `PASS packages/a.test.js (5.123 s)
PASS packages/b.test.js
FAIL packages/c.test.js (12ms)
PASS packages/d (x).test.js (7.1s) extra`,
    map: {
      "packages/a.test.js": P,
      "packages/b.test.js": P,
      "packages/c.test.js": F,
      "packages/d (x).test.js": P,
    },
  },
  {
    parser: "grommet",
    official: "parse_log_grommet",
    log: "PASS src/a.js (5.1 s)\nFAIL src/b.js\nPASS src/c.js (12 ms)",
    map: { "src/a.js": P, "src/a.js (5.1 s)": P, "src/b.js": F, "src/c.js": P, "src/c.js (12 ms)": P },
    differs: "the name with its time is known too",
  },
  {
    parser: "highlightjs",
    official: "parse_log_highlightjs",
    log: `  hljs
    .highlight()
      ✓ should work (12ms)
      ✔ should too
      1) should not
  other suite
    ✓ ends

  3 passing (2s)
  1 failing

  1) hljs
       should not:`,
    map: {
      ".highlight().should work": P,
      ".highlight().should too": P,
      ".highlight().should not": F,
      "other suite.ends": P,
    },
  },
  {
    parser: "mocha",
    log: `  Router
    match
      ✓ matches (3ms)
      1) throws
      - later
  3 passing (2s)
  1) Router`,
    map: {
      "Router > match > matches": P,
      matches: P,
      "Router > match > throws": F,
      throws: F,
      "Router > match > later": S,
      later: S,
    },
  },
  {
    parser: "karma",
    official: "parse_log_karma",
    log: `24 01 2024 INFO [launcher]: Starting browser ChromeNoSandbox

  render()
    nested
      ✔ renders
      ✖ breaks
    ✔ is outside
  other
    ✔ runs

SUMMARY:
✔ 4 tests completed`,
    map: {
      "render() > nested > renders": P,
      "render() > nested > breaks": F,
      "render() > nested > is outside": P,
      "render() > runs": P,
    },
  },
  {
    parser: "chart-js",
    official: "parse_log_chart_js",
    log: "Chrome 100.0.1 (Linux x86_64) Chart draws a line FAILED\nChrome 100.0.1 (Linux x86_64): Executed 3 of 3 (1 FAILED)",
    map: { "Chart draws a line ": F, "Chart draws a line": F },
    differs: "the name without the space before its status is known too",
  },
  {
    parser: "bpmn-js",
    official: "parse_log_bpmn_js",
    log: "\u001b[1A\u001b[2KPhantomJS 2.1.1 (Linux 0.0.0) modeling moves FAILED\nHeadlessChrome 80.0 (Linux 0.0.0) import reads FAILED\nend",
    map: { "modeling moves ": F, "modeling moves": F, "import reads ": F, "import reads": F },
    differs: "the name without the space before its status is known too",
  },
  {
    parser: "openlayers",
    official: "parse_log_openlayers",
    log: `Chrome Headless 100.0.1 (Linux x86_64) ol.Map  zooms FAILED
  1) ol/format
       reads features:
     Error: expected 1
case layer-tile: mismatch 0.1
`,
    map: { "ol.Map zooms": F, "ol/format reads features:": F, "layer-tile": F },
  },
  {
    parser: "eslint",
    official: "parse_log_eslint",
    log: `  2 failing

  1) rules/indent
       valid cases
         should pass:

      AssertionError [ERR_ASSERTION]: Should have no errors
      at x

  2) cli
       should exit:
     TypeError: x`,
    map: { "rules/indent valid cases should pass:": F, "cli should exit:": F },
  },
  {
    parser: "marked",
    official: "parse_log_marked",
    log: "Failures:\n1) Marked Code spans should work\n  Message:\n2) Lexer   \n3 specs, 2 failures",
    map: { "Marked Code spans should work": F, Lexer: F },
  },
  {
    parser: "p5js",
    official: "parse_log_p5js",
    log: `  100 passing (2s)
  2 failing
{
  "inside": "1) not: this"
}
  1) Color
       lerp()
         interpolates:
     AssertionError: x
  2) Shape draws:
     Error`,
    map: { "Color:lerp():interpolates": F, "Shape draws": F },
  },
  {
    parser: "plotly",
    log: `  - lib :
    * adds : ok
    * fails : failed
  - plots :
    - bar :
      * draws : ok`,
    map: { "lib.adds": P, "lib.fails": F, "plots.bar.draws": P },
  },
  {
    parser: "quarto-cli",
    official: "parse_log_quarto_cli",
    log: `[unit] paths > joins ... \u001b[0m\u001b[32mok\u001b[0m (3ms)
[smoke] > render /tmp/abc12/x.qmd ... \u001b[0m\u001b[31mFAILED\u001b[0m (3s)
[smoke] > silent ...
[smoke] > render /tmp/abc12/y.qmd ... \u001b[0m\u001b[32mok\u001b[0m (3s)
ERRORS
[unit] explained ... \u001b[0m\u001b[31mFAILED\u001b[0m`,
    map: {
      "[unit] paths > joins": P,
      "[smoke] > render /tmp/0x.qmd": F,
      "[smoke] > silent": F,
      "[smoke] > render /tmp/0y.qmd": P,
    },
  },
  {
    parser: "mocha-json",
    official: "parse_log_prismjs",
    log: `+ ./node_modules/.bin/mocha tests/run.js --reporter json
{
  "stats": { "passes": 1 },
  "tests": [
    {
      "fullTitle": "a works"
    }
  ],
  "failures": [
    {
      "fullTitle": "a \\"quoted\\" test"
    }
  ],
  "passes": [
    {
      "fullTitle": "a works"
    }
  ]
}`,
    map: { 'a \\"quoted\\" test': F, 'a "quoted" test': F, "a works": P },
    differs: "the title as written in the file is known too",
  },
  {
    parser: "next-karma",
    official: "parse_log_next",
    version: "1.25",
    log: `+ xvfb-run npm run test
Starting browser Chrome
  Button
    size
      ✓ is small
      ✗ is large
LOG: 'noise'
  Icon
    ✓ draws
TOTAL: 3 SUCCESS
    ✓ not counted`,
    map: { "Button - size - is small": P, "Button - size - is large": F, "Icon - draws": P },
  },
  {
    parser: "next-cypress",
    official: "parse_log_next",
    version: "1.27",
    log: `  Running:  a-spec.js                                             (1 of 2)


  Affix
    ✓ sticks (123ms)
    1) falls

  1 passing (2s)
`,
    map: { "Affix: sticks": P, "Affix: falls": F },
  },
];
