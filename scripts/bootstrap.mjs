#!/usr/bin/env node
/**
 * Owns the way from a bare clone to a running command: `npm run quickstart` and `npm test` start here, under
 * whatever Node ≥ 20 the machine has. It obtains the exact pnpm, installs, builds, and hands over to Node 24.
 * Does not own what the command does (apps/cli) nor how the tree is compiled (build.mjs).
 *
 * Only built-in modules may be imported here and in bootstrap/: nothing is installed yet. They are imported
 * after the version check, so that an old Node says what is wrong instead of failing to parse.
 */
const NODE_MAJOR_MIN = 20;

const major = Number(process.versions.node.split(".")[0]);
if (major < NODE_MAJOR_MIN) {
  process.stderr.write(
    `MORTISE_OPERATOR_NODE_TOO_OLD (node): Node ${process.versions.node} started this command; ` +
      `it needs Node ${NODE_MAJOR_MIN} or newer.\n  fix: install Node ${NODE_MAJOR_MIN} or newer and run the same command again\n`,
  );
  process.exit(2);
}

const { reportFailure } = await import("./bootstrap/operator-error.mjs");
const [command, ...args] = process.argv.slice(2);
try {
  const { prepare } = await import("./bootstrap/prepare.mjs");
  const { runQuickstart, runTests } = await import("./bootstrap/commands.mjs");
  const commands = { quickstart: runQuickstart, test: runTests, prepare: () => 0 };
  if (command === undefined || !Object.hasOwn(commands, command)) {
    const { OperatorError } = await import("./bootstrap/operator-error.mjs");
    throw new OperatorError({
      code: "MORTISE_OPERATOR_USAGE",
      field: "command",
      message: `'${command ?? ""}' is not a command of the bootstrap script`,
      fix: `use one of: ${Object.keys(commands).join(", ")}`,
    });
  }
  await prepare();
  process.exitCode = await commands[command](args);
} catch (error) {
  process.exitCode = reportFailure(error, { json: args.includes("--json") });
}
