/** Owns the short logs of all runners that have a parser of their own (runner-logs-javascript.ts says what they are). */
import { JAVASCRIPT_LOGS, type RunnerLog } from "./runner-logs-javascript.js";

const P = "passed";
const F = "failed";
const S = "skipped";

export const RUNNER_LOGS: readonly RunnerLog[] = [
  ...JAVASCRIPT_LOGS,
  {
    parser: "jest-json",
    official: "parse_log_jest_json",
    log: "[PASSED] List adds\n  [FAILED] List removes\nPASSED x",
    map: { "List adds": P, "List removes": F },
  },
  {
    parser: "redis",
    official: "parse_log_redis",
    log: "[ok]: SET and GET (3 ms)\n[err]: EXPIRE works in tests/unit/expire.tcl\n[skip]: slow\n[ignore]: not here",
    map: { "SET and GET": P, "EXPIRE works": F, slow: S, "not here": S },
  },
  {
    parser: "jq",
    official: "parse_log_jq",
    log: "PASS: tests/jqtest\n FAIL: tests/mantest\nERROR: x",
    map: { "tests/jqtest": P, "tests/mantest": F },
  },
  {
    parser: "doctest",
    official: "parse_log_doctest",
    log: `noise <before>
<doctest binary="x">
  <TestSuite>
    <TestCase name="parses &amp; prints" filename="a.cpp">
      <SubCase name="a &lt; b">
        <Expression success="true" type="CHECK"/>
      </SubCase>
      <SubCase name="bad"
               filename="x">
        <Expression success="false" type="CHECK">
          <Original> x > y </Original>
        </Expression>
      </SubCase>
    </TestCase>
  </TestSuite>
</doctest>`,
    map: { "parses & prints > a < b": P, "parses & prints > bad": F },
  },
  {
    parser: "micropython",
    official: "parse_log_micropython_test",
    log: "pass  basics/a.py\nFAIL  basics/b.py\nskip  basics/c.py\npassing",
    map: { "basics/a.py": P, "basics/b.py": F, "basics/c.py": S },
  },
  {
    parser: "googletest",
    official: "parse_log_googletest",
    log: "[       OK ] format_test.escape (3 ms)\n1: [  FAILED  ] format_test.width (x) (0 ms)\n[  FAILED  ] format_test.width",
    map: { "format_test.escape": P, "format_test.width (x)": F },
  },
  {
    parser: "ctest",
    log: " 1/3 Test  #1: alpha ............   Passed    0.01 sec\n 2/3 Test #2: beta .............***Failed  0.02 sec\n 3/3 Test #3: gamma ...........***Skipped 0.00 sec",
    map: { alpha: P, beta: F, gamma: S },
  },
  {
    parser: "maven",
    official: "parse_log_maven",
    log: `+ mvnd test -B -Dtest=a.BTest#one -pl core
[INFO] BUILD SUCCESS
+ mvnd test -B -pl core -Dtest=a.BTest#two
+ mvnd test -B -Dtest=a.BTest#three
[INFO] BUILD FAILURE
[INFO] BUILD SUCCESS`,
    map: { "a.BTest#one": P, "a.BTest#two": F, "a.BTest#three": P },
  },
  {
    parser: "ant",
    official: "parse_log_ant",
    log: "   [junit] [PASS] javac: A.java\n   [junit] [FAIL] ecj: B.java\n[junit]  [ERR] C.java",
    map: { "javac: A.java": P, "ecj: B.java": F, "C.java": F },
  },
  {
    parser: "gradle",
    official: "parse_log_gradle_custom",
    log: `io.reactivex.ATest > one PASSED
io.reactivex.ATest > two FAILED
io.reactivex.ATest > three
warning: in between
PASSED
> Task :test FAILED`,
    map: { "io.reactivex.ATest > one": P, "io.reactivex.ATest > two": F, "io.reactivex.ATest > three": P },
  },
  {
    parser: "phpunit",
    official: "parse_log_phpunit",
    log: "Carbon Add (Tests\\Carbon\\Add)\n ✔ Adds years\n ✘ Adds months  with data set #1\n ↩ Skipped one\n   │\nOther (Tests\\Other)\n ✔ Adds years",
    map: {
      "Carbon Add > Adds years": P,
      "Carbon Add > Adds months  with data set #1": F,
      "Carbon Add > Skipped one": S,
      "Other > Adds years": P,
    },
  },
  {
    parser: "minitest",
    official: "parse_log_minitest",
    log: "TestSite#test_reads. = 0.01 s = .\nTestSite#test_fails. = 0.02 s = F\nTestSite#test_errs. = 0.02 s = E\nRun options: --seed 3",
    map: { "TestSite#test_reads": P, "TestSite#test_fails": F, "TestSite#test_errs": "error" },
  },
  {
    parser: "cucumber",
    official: "parse_log_cucumber",
    log: "features/a.feature ....\nfeatures/b.feature ..F.",
    map: { "features/a.feature": P, "features/b.feature": F },
  },
  {
    parser: "ruby-unit",
    official: "parse_log_ruby_unit",
    log: "  test: adds: one:\t.: (0.001)\n  test_fails:\t\tF\n  test_omitted: O\n  test_errs: E",
    map: { "adds: one": P, test_fails: F, test_omitted: S, test_errs: "error" },
  },
  {
    parser: "rspec-json",
    official: "parse_log_rspec_transformed_json",
    log: "FPM reads - a file - passed\nFPM fails - failed\nnoise",
    map: { "FPM reads - a file": P, "FPM fails": F },
  },
  {
    parser: "tap",
    official: "parse_log_tap",
    log: "TAP version 13\nok 1 adds\n    ok 2 nested one\nnot ok 3 fails\nok 4 later # SKIP slow\n1..4",
    map: { adds: P, "nested one": P, fails: F, later: S },
    differs: "a directive is no part of the name: the test was skipped",
  },
  {
    parser: "junit-xml",
    log: `<?xml version="1.0"?><testsuites><testsuite name="pytest" tests="4">
<testcase classname="tests.test_a.TestB" name="test_c[x &lt; y]" time="0.1"/>
<testcase classname="tests.test_a" name="test_d"><failure message="a > b">x</failure></testcase>
<testcase classname="tests.test_a" name="test_e"><skipped type="pytest.xfail" message="m"/></testcase>
<testcase classname="com.example.Thing" name="works" file="src/thing.js"><error/></testcase>
</testsuite></testsuites>`,
    map: {
      "tests.test_a.TestB.test_c[x < y]": P,
      "tests.test_a.TestB::test_c[x < y]": P,
      "test_c[x < y]": P,
      "tests/test_a.py::TestB::test_c[x < y]": P,
      "tests.test_a.test_d": F,
      "tests.test_a::test_d": F,
      test_d: F,
      "tests/test_a.py::test_d": F,
      "tests.test_a.test_e": "xfailed",
      "tests.test_a::test_e": "xfailed",
      test_e: "xfailed",
      "tests/test_a.py::test_e": "xfailed",
      "com.example.Thing.works": "error",
      "com.example.Thing::works": "error",
      works: "error",
      "src/thing.js::Thing::works": "error",
    },
  },
];
