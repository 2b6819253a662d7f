/**
 * Owns how the repositories of SWE-smith are tested. The facts are those of the `swesmith` package 0.0.9
 * (profiles/python.py): one command for nearly all, others for a few.
 */
export interface SmithCommand {
  readonly test: string;
  /** Whether test files follow the command; other runners find the tests themselves. */
  readonly takesFiles: boolean;
  /** Absent where the runner is not pytest: the record has to name one. */
  readonly parser?: string;
}

const PYTEST = "pytest --disable-warnings --color=no --tb=no --verbose";

const OTHERS: Readonly<Record<string, SmithCommand>> = {
  "mido/mido": { test: `${PYTEST} -rs -c /dev/null`, takesFiles: true, parser: "pytest" },
  "paramiko/paramiko": {
    test: "pytest -rA --color=no --disable-warnings",
    takesFiles: true,
    parser: "pytest",
  },
  "un33k/python-slugify": { test: "python test.py --verbose", takesFiles: false },
  "tornadoweb/tornado": { test: "python -m tornado.test --verbose", takesFiles: false },
};

export function smithCommandOf(repository: string): SmithCommand {
  return OTHERS[repository.toLowerCase()] ?? { test: PYTEST, takesFiles: true, parser: "pytest" };
}
