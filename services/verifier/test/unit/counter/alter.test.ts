/** Altered tests: what is altered, what is left alone, and under which names of a record it comes. */
import { describe, expect, test } from "vitest";
import { alterTests } from "../../../src/counter/alter.js";

const first = () => 0;

/** A diff that adds a file. */
function adding(path: string, text: string): string {
  const lines = text.split("\n");
  return [
    `diff --git a/${path} b/${path}`,
    "new file mode 100644",
    "--- /dev/null",
    `+++ b/${path}`,
    `@@ -0,0 +1,${lines.length} @@`,
    ...lines.map((line) => `+${line}`),
    "",
  ].join("\n");
}

/** The lines that became others. */
function changed(diff: string, expected: readonly string[]): string[] {
  const altered = alterTests(diff, expected, first);
  const before = diff.split("\n");
  return (altered?.diff.split("\n") ?? [])
    .flatMap((line, at) => (line === before[at] ? [] : [line.slice(1).trim()]))
    .concat(altered === undefined ? ["nothing"] : []);
}

describe("Python", () => {
  const one = (body: string, name = "test_a") =>
    changed(adding("tests/test_x.py", `def ${name}(n):\n${body}`), ["tests/test_x.py::test_a"]);

  test.each([
    ["    assert f(1) == 3", "assert f(1) == 2"],
    ["    assert 3 == f(1)", "assert 2 == f(1)"],
    ["    assert f(1) == 'ok'  # 'x'", "assert f(1) == 'aok'  # 'x'"],
    ["    assert f(1) == [1, {'a': 2}], 'why'", "assert f(1) == [0, {'a': 2}], 'why'"],
    ["    assert f(1) == 1.5", "assert f(1) == 0.5"],
    ["    assert f(1) == 0", "assert f(1) == 1"],
    ["    assert f(1) == g(1)", "assert f(1) != g(1)"],
    ["    assert f(1) is None", "assert f(1) is not None"],
    ["    assert 1 not in f(1)", "assert 1 in f(1)"],
    ["    assert f(1) < 2", "assert f(1) >= 2"],
    ["    assert f(x == 2)", "assert not f(x == 2)"],
    ["    assert not f(1)", "assert f(1)"],
    ["    x = f(1)\n    assert f(\n        1,\n    ) == 3", ") == 2"],
    ["    self.assertEqual(f(1), 'b, c')", "self.assertEqual(f(1), 'ab, c')"],
    ["    self.assertTrue(f(1))", "self.assertFalse(f(1))"],
    ["    self.assertIn(a, f(1), 'm')", "self.assertNotIn(a, f(1), 'm')"],
  ])("%s", (body, line) => {
    expect(one(body)).toEqual([line]);
  });

  test.each([
    ["may not be reached", "    if n:\n        return\n    assert f(1) == 3"],
    ["skips", "    pytest.skip('x') if n else 0\n    assert f(1) == 3"],
    ["is in a block", "    with raises(E):\n        assert f(1) == 3"],
    ["is two comparisons", "    assert 1 < f(1) < 3"],
    ["is compound", "    assert f(1) == 3 or n"],
    ["is a string", "    x = '''\n    assert f(1) == 3\n'''"],
    ["is two statements", "    assert f(1) == 3; g()"],
  ])("what %s is left alone", (_, body) => {
    expect(one(body)).toEqual(["nothing"]);
  });

  test("a test under a decorator that may turn a failure is left alone", () => {
    const text = (decorator: string) => adding("t.py", `${decorator}\ndef test_a():\n    assert f() == 1`);
    expect(changed(text("@pytest.mark.xfail"), ["t.py::test_a"])).toEqual(["nothing"]);
    expect(changed(text("@raises(AssertionError)"), ["t.py::test_a"])).toEqual(["nothing"]);
    expect(changed(text("@pytest.mark.parametrize('n', [1])"), ["t.py::test_a[1]"])).toEqual([
      "assert f() == 0",
    ]);
  });

  test.each([
    [
      "a mark of its class",
      "@pytest.mark.xfail\nclass A:\n    def test_a(self):\n        assert f() == 1",
      "A::test_a",
    ],
    ["its class", "@expectedFailure\nclass A:\n    def test_a(self):\n        assert f() == 1", "A::test_a"],
    [
      "a mark of the module",
      "pytestmark = [pytest.mark.xfail]\ndef test_a():\n    assert f() == 1",
      "test_a",
    ],
    [
      "a mark of its parameters",
      "@pytest.mark.parametrize('n', [pytest.param(1, marks=pytest.mark.xfail)])\ndef test_a(n):\n    assert f() == 1",
      "test_a[1]",
    ],
    ["itself", "def test_a(n):\n    if n:\n        pytest.xfail('x')\n    assert f() == 1", "test_a"],
    [
      "what it asks for",
      "def test_a(request):\n    assert f() == 1\n    mark(request, pytest.mark.xfail)",
      "test_a",
    ],
  ])("a test whose failure may be expected by %s is left alone", (_, text, name) => {
    expect(changed(adding("t.py", text), [`t.py::${name}`])).toEqual(["nothing"]);
  });

  test.each([
    ["yields", "def test_a():\n    assert f() == 1\n    yield g"],
    ["is a coroutine", "async def test_a():\n    assert f() == 1"],
    ["is defined again", "def test_a():\n    assert f() == 1\n\ndef test_a():\n    assert f() == 2"],
    [
      "is a coroutine again",
      "def test_a():\n    assert f() == 1\n\nasync def test_a():\n    assert f() == 2",
    ],
    ["is named anew", "def test_a():\n    assert f() == 1\n\ntest_a = broken(test_a)"],
  ])("a test that %s is left alone", (_, text) => {
    expect(changed(adding("t.py", text), ["t.py::test_a"])).toEqual(["nothing"]);
  });

  test("assertions the file defines itself are left alone", () => {
    const text = (own: string) =>
      `class A(TestCase):\n    def ${own}(self, a, b):\n        pass\n\n    def test_a(self):\n        self.assertEqual(f(), 1)`;
    expect(changed(adding("t.py", text("assertEqual")), ["t.py::A::test_a"])).toEqual(["nothing"]);
    expect(changed(adding("t.py", text("assertClose")), ["t.py::A::test_a"])).toEqual([
      "self.assertEqual(f(), 0)",
    ]);
  });

  test.each([
    ["    assert approx(f(1), abs=5) == 3", "assert approx(f(1), abs=5) != 3"],
    ["    assert [ANY, f(1)] == [3, 4]", "assert [ANY, f(1)] != [3, 4]"],
    ["    x = pytest.approx(f(1), abs=5)\n    assert x == 3", "assert x != 3"],
    ["    assert IsInt == 3", "assert IsInt != 3"],
  ])("no other value where something may equal both: %s", (body, line) => {
    expect(one(body)).toEqual([line]);
  });

  test("of a changed file added assertions, where the file as it was is known, and else none", () => {
    const original =
      "import x\n\n\nclass A:\n    more = [\n    ]\n\n    def test_old(self):\n        assert f(1) == 1\n\n    def test_known(self):\n        y = 1\n        z = 2\n        assert f(3) == 3\n";
    const diff = `diff --git a/t.py b/t.py
--- a/t.py
+++ b/t.py
@@ -7,3 +7,4 @@ class A:
 
     def test_old(self):
         assert f(1) == 1
+        assert f(2) == 2
@@ -14 +15,2 @@ class A:
         assert f(3) == 3
+        assert f(4) == 4
`;
    const names = ["t.py::A::test_old", "t.py::A::test_known"];
    const lines = (originals: ReadonlyMap<string, string>) =>
      alterTests(diff, names, first, originals)
        ?.diff.split("\n")
        .filter((line) => line.startsWith("+        "));
    expect(lines(new Map())).toBeUndefined();
    expect(lines(new Map([["t.py", original]]))).toEqual([
      "+        assert f(2) == 1",
      "+        assert f(4) == 3",
    ]);
    // A file it does not fit is not believed.
    expect(lines(new Map([["t.py", `\n${original}`]]))).toBeUndefined();
  });

  test("names of unittest and of SymPy's runner", () => {
    const method = adding(
      "tests/app/tests.py",
      "class B(TestCase):\n    def test_a(self):\n        self.assertEqual(f(), 1)",
    );
    for (const name of ["test_a (app.tests.B)", "test_a (app.tests.B.test_a)"])
      expect(alterTests(method, [name], first)?.tests.map(({ name }) => name)).toEqual([name]);
    expect(alterTests(method, ["test_a (other.tests.B)"], first)).toBeUndefined();
    expect(
      alterTests(
        adding("sympy/core/tests/test_x.py", "def test_a():\n    assert f() == 1"),
        ["test_a"],
        first,
      )?.tests.map(({ name }) => name),
    ).toEqual(["test_a"]);
  });
});

describe("others", () => {
  test.each([
    ["expect(f(1)).toBe(3);", "expect(f(1)).toBe(2);"],
    ["expect(f('x')).toEqual({ a: 'b' })", "expect(f('x')).toEqual({ a: 'ab' })"],
    ["expect(f(1)).toEqual(g(1));", "expect(f(1)).not.toEqual(g(1));"],
    ["expect(f(1)).to.deep.equal([1, 2]);", "expect(f(1)).to.deep.equal([0, 2]);"],
    ["assert.strictEqual(f(1), 'a', 'm');", "assert.strictEqual(f(1), 'aa', 'm');"],
    ["assert.equal(f(1), g);", "assert.notEqual(f(1), g);"],
    ["expect(f(1)).not.toBe(3);", "nothing"],
    ["expect(f(1)).resolves.toBe(3);", "nothing"],
    ["expect(f(1)).to.eventually.equal(3);", "nothing"],
    ["expect(f(1)).toMatchSnapshot();", "nothing"],
    ["expect(f(1)).to.equal(g, 'message');", "expect(f(1)).to.not.equal(g, 'message');"],
    ["expect(f(1)).to.equal(3, 'message');", "expect(f(1)).to.equal(2, 'message');"],
    ["expect(f(1)).toEqual({ 'a': undefined });", "expect(f(1)).not.toEqual({ 'a': undefined });"],
    [
      "expect({ a: expect.any(Number) }).toEqual({ a: 1 });",
      "expect({ a: expect.any(Number) }).not.toEqual({ a: 1 });",
    ],
  ])("JavaScript: %s", (line, becomes) => {
    const text = `describe("sums", () => {\n  it("adds", async () => {\n    const x = 1;\n    ${line}\n  });\n});`;
    expect(changed(adding("a.test.ts", text), ["sums adds"])).toEqual([becomes]);
  });

  test.each([
    ["a text", "const x = `\n    expect(f(1)).toBe(3);\n    `;"],
    ["a comment", "/*\n    expect(f(1)).toBe(3);\n    */"],
  ])("JavaScript: what stands in %s of several lines is left alone", (_, lines) => {
    const text = (inside: string) => `it("adds", () => {\n    ${inside}\n});`;
    expect(changed(adding("a.test.js", text(lines)), ["adds"])).toEqual(["nothing"]);
    const before = "f(`x`); // don't, see \"http://x\n    /* once */\n    expect(f(1)).toBe(3);";
    expect(changed(adding("a.test.js", text(before)), ["adds"])).toEqual(["expect(f(1)).toBe(2);"]);
  });

  test("JavaScript: a title twice is left alone", () => {
    const test = `it("adds", () => {\n  expect(f(1)).toBe(3);\n});`;
    expect(changed(adding("a.test.js", `${test}\n${test}`), ["adds"])).toEqual(["nothing"]);
  });

  test("JavaScript: a title that several names may mean is left alone", () => {
    const text = `it("adds", () => {\n  expect(f(1)).toBe(3);\n});`;
    expect(changed(adding("a.test.js", text), ["x adds", "y adds"])).toEqual(["nothing"]);
  });

  test("Go and Rust", () => {
    const go = `func TestAdd(t *testing.T) {\n\tif got := Add(1, 2); got != 3 {\n\t\tt.Errorf("got %d", got)\n\t}\n}`;
    expect(changed(adding("a_test.go", go), ["TestAdd"])).toEqual(["if got := Add(1, 2); got != 2 {"]);
    const rust = `#[test]\nfn adds() {\n    assert_eq!(add(1, 2), 3);\n}`;
    expect(changed(adding("tests/a.rs", rust), ["adds"])).toEqual(["assert_eq!(add(1, 2), 2);"]);
    expect(
      changed(adding("tests/a.rs", rust.replace("#[test]", "#[test]\n#[should_panic]")), ["adds"]),
    ).toEqual(["nothing"]);
  });

  test("Go and Rust: messages are left alone", () => {
    const go = (line: string) => adding("a_test.go", `func TestAdd(t *testing.T) {\n\t${line}\n}`);
    expect(changed(go('assert.Equal(t, f(), g(), "sum 3")'), ["TestAdd"])).toEqual([
      'assert.NotEqual(t, f(), g(), "sum 3")',
    ]);
    expect(changed(go('assert.Equal(t, 3, g(), "sum 3")'), ["TestAdd"])).toEqual([
      'assert.Equal(t, 2, g(), "sum 3")',
    ]);
    const rust = (line: string) => adding("tests/a.rs", `#[test]\nfn adds() {\n    ${line}\n}`);
    expect(changed(rust('assert_eq!(f(), g(), "sum {}", 3);'), ["adds"])).toEqual([
      'assert_ne!(f(), g(), "sum {}", 3);',
    ]);
  });
});
