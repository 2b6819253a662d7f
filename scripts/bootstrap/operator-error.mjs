/**
 * Owns how a failure before the CLI exists is told: the same shape as the CLI's own errors (code, field, fix,
 * exit code 2), written without the contracts package because that is not built yet.
 */

/** A condition that the person at the keyboard can mend. `code` is a row of docs/reference/errors.md. */
export class OperatorError extends Error {
  constructor({ code, field, message, fix, detail = "" }) {
    super(message);
    this.name = "OperatorError";
    this.code = code;
    this.field = field;
    this.fix = fix;
    this.detail = detail;
  }
}

/**
 * Prints a failure on stderr, and with `json` also as one object on stdout, the last line there.
 * @returns the exit code: 2 for an operator error, 1 for anything unforeseen.
 */
export function reportFailure(error, { json }) {
  if (!(error instanceof OperatorError)) {
    process.stderr.write(`${error?.stack ?? error}\n`);
    return 1;
  }
  const { code, field, message, fix, detail } = error;
  if (detail !== "") process.stderr.write(`${detail}\n`);
  process.stderr.write(`${code} (${field}): ${message}\n  fix: ${fix}\n`);
  if (json) process.stdout.write(`${JSON.stringify({ schema: 1, error: { code, field, message, fix } })}\n`);
  return 2;
}

/** What the output of a package manager says about why it failed. */
export function classifyInstallFailure(output, step) {
  const detail = output.trimEnd().split("\n").slice(-20).join("\n");
  if (/ENOSPC|no space left/i.test(output)) {
    return new OperatorError({
      code: "MORTISE_OPERATOR_DISK_FULL",
      field: "disk",
      message: `${step}: the disk filled up`,
      fix: "free some space and run the same command again; what was unpacked is reused",
      detail,
    });
  }
  if (
    /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ERR_PNPM_META_FETCH_FAIL|ERR_SOCKET_TIMEOUT/.test(
      output,
    )
  ) {
    return new OperatorError({
      code: "MORTISE_OPERATOR_REGISTRY_UNREACHABLE",
      field: "registry",
      message: `${step}: the npm registry could not be reached`,
      fix: "check the network and `npm config get registry` (and proxy settings), then run the same command again",
      detail,
    });
  }
  if (/ERR_PNPM_(OUTDATED_LOCKFILE|FROZEN_LOCKFILE)/.test(output)) {
    return new OperatorError({
      code: "MORTISE_OPERATOR_LOCKFILE_OUTDATED",
      field: "pnpm-lock.yaml",
      message: `${step}: a package.json asks for something the lockfile does not have`,
      fix: "run `npx pnpm install` and commit pnpm-lock.yaml, or undo the change to package.json",
      detail,
    });
  }
  return new OperatorError({
    code: "MORTISE_OPERATOR_INSTALL_FAILED",
    field: step,
    message: `${step} failed; its last lines are above`,
    fix: "mend what they name and run the same command again",
    detail,
  });
}
