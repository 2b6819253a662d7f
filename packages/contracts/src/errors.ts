/**
 * Owns the error vocabulary: one class, one catalogue. A code is stable once released; the docs page of
 * errors is generated from this table. Does not decide what to do about an error beyond its disposition.
 */

/** Which edge of the system was crossed when it went wrong. */
export type Boundary =
  | "config"
  | "operator"
  | "transport"
  | "provider"
  | "harness"
  | "sandbox"
  | "task"
  | "verifier"
  | "trainer"
  | "policy"
  | "capture";

/** What the caller may do: try again, give up, treat as cancellation, or as a spent budget. */
export type Disposition = "retry" | "terminal" | "cancelled" | "budget";

interface CatalogueRow {
  readonly disposition: Disposition;
  readonly meaning: string;
  readonly fix: string;
}

/** Every stable code: MORTISE_<BOUNDARY>_<WHAT>. */
export const ERROR_CATALOGUE = {
  MORTISE_CONFIG_INVALID: {
    disposition: "terminal",
    meaning: "A configuration value is impossible.",
    fix: "Correct the named field to an allowed value.",
  },
  MORTISE_CONFIG_SYNTAX: {
    disposition: "terminal",
    meaning: "A configuration file is not valid TOML.",
    fix: "Correct the file at the named line.",
  },
  MORTISE_CONFIG_UNKNOWN_KEY: {
    disposition: "terminal",
    meaning: "A configuration key does not exist.",
    fix: "Use the nearest valid name given, or remove the key.",
  },
  MORTISE_CONFIG_UNREADABLE: {
    disposition: "terminal",
    meaning: "A configuration file cannot be read.",
    fix: "Check the path and its permissions.",
  },

  MORTISE_OPERATOR_ARCHIVE: {
    disposition: "terminal",
    meaning: "The archive directory cannot be continued.",
    fix: "Set archiver.directory to a new directory, or restore position.json there.",
  },
  MORTISE_OPERATOR_BAD_ID: {
    disposition: "terminal",
    meaning: "An id contains characters outside [A-Za-z0-9_-].",
    fix: "Use letters, digits, '_' and '-' only.",
  },
  MORTISE_OPERATOR_BUILD_FAILED: {
    disposition: "terminal",
    meaning: "The sources do not compile.",
    fix: "On an unchanged clone, remove node_modules and every dist folder and start again.",
  },
  MORTISE_OPERATOR_DISK_FULL: {
    disposition: "terminal",
    meaning: "Too little free disk space to start.",
    fix: "Free the stated amount of space, or set another state directory.",
  },
  MORTISE_OPERATOR_FILES: {
    disposition: "terminal",
    meaning: "A file or directory cannot be read or written.",
    fix: "Check that the named path exists, that its owner and permissions let this user in, and that its file system is writable.",
  },
  MORTISE_OPERATOR_INSTALL_FAILED: {
    disposition: "terminal",
    meaning: "Installing the dependencies failed.",
    fix: "Mend what the last lines of the installer name and start again.",
  },
  MORTISE_OPERATOR_LOCKFILE_OUTDATED: {
    disposition: "terminal",
    meaning: "A package.json asks for something the lockfile does not have.",
    fix: "Run `npx pnpm install` and commit pnpm-lock.yaml, or undo the change.",
  },
  MORTISE_OPERATOR_NATS_MISSING: {
    disposition: "terminal",
    meaning: "No usable nats-server (2.12 or newer) could be found or installed.",
    fix: "Install nats-server 2.12 or newer, or set NATS_URL to a running one; each attempt is listed with its reason.",
  },
  MORTISE_OPERATOR_NATS_TOO_OLD: {
    disposition: "terminal",
    meaning: "The NATS server is older than 2.12.",
    fix: "Upgrade the server that NATS_URL names, or unset NATS_URL.",
  },
  MORTISE_OPERATOR_NODE_TOO_OLD: {
    disposition: "terminal",
    meaning: "The command was started by a Node older than 20.",
    fix: "Install Node 20 or newer.",
  },
  MORTISE_OPERATOR_NO_PNPM: {
    disposition: "terminal",
    meaning: "Neither npx nor corepack is there to bring pnpm.",
    fix: "Install npm, which carries npx.",
  },
  MORTISE_OPERATOR_PORT_IN_USE: {
    disposition: "terminal",
    meaning: "A configured port is occupied.",
    fix: "Free the port or set the named field to another one; 0 takes a free one, except of nats.url.",
  },
  MORTISE_OPERATOR_RECORDING: {
    disposition: "terminal",
    meaning: "A recording cannot be read.",
    fix: "Give JSON lines of events, each with ev and id; a req event has method, url, headers and body.",
  },
  MORTISE_OPERATOR_REGISTRY_UNREACHABLE: {
    disposition: "terminal",
    meaning: "The npm registry could not be reached.",
    fix: "Check the network, the registry and the proxy settings.",
  },
  MORTISE_OPERATOR_PROTOCOLS: {
    disposition: "terminal",
    meaning: "Two results were measured under different protocols.",
    fix: "Measure both under one protocol; what is meant to differ is named with --vary.",
  },
  MORTISE_OPERATOR_RUN_EXISTS: {
    disposition: "terminal",
    meaning: "A run with this id exists already.",
    fix: "Choose another id, or resume it.",
  },
  MORTISE_OPERATOR_RUN_UNKNOWN: {
    disposition: "terminal",
    meaning: "There is no run with this id.",
    fix: "List the runs with `mortise runs list`.",
  },
  MORTISE_OPERATOR_SERVICE_DOWN: {
    disposition: "terminal",
    meaning: "A process of the run keeps ending right after its start.",
    fix: "Read the end of the named log; `--resume` continues the run once the cause is mended.",
  },
  MORTISE_OPERATOR_SITE_DOWN: {
    disposition: "terminal",
    meaning: "The services of the site are not up.",
    fix: "Start them with `mortise site up --site <file>`.",
  },
  MORTISE_OPERATOR_SITE_UP: {
    disposition: "terminal",
    meaning: "The services of the site are up already.",
    fix: "Use the site as it is, or end it with `mortise site down --site <file>`.",
  },
  MORTISE_OPERATOR_USAGE: {
    disposition: "terminal",
    meaning: "The command line is wrong.",
    fix: "See `mortise --help`.",
  },

  MORTISE_TRANSPORT_CANCELLED: {
    disposition: "cancelled",
    meaning: "A call was cancelled.",
    fix: "Nothing: whoever cancelled it wanted so.",
  },
  MORTISE_TRANSPORT_DECODE: {
    disposition: "terminal",
    meaning: "A message does not decode as the type its subject carries.",
    fix: "Look at the dead letter; a publisher is of another version.",
  },
  MORTISE_TRANSPORT_DENIED: {
    disposition: "terminal",
    meaning: "The bus or a service refused the credentials.",
    fix: "Use the identity files of this run.",
  },
  MORTISE_TRANSPORT_FENCED: {
    disposition: "terminal",
    meaning: "Another holder has taken the lease.",
    fix: "Nothing: the newer holder continues; this one must stop.",
  },
  MORTISE_TRANSPORT_FULL: {
    disposition: "retry",
    meaning: "A stream is full; publishes are refused.",
    fix: "Archive and prune finished runs, or raise the stream's size.",
  },
  MORTISE_TRANSPORT_INTERNAL: {
    disposition: "terminal",
    meaning: "Something failed that should not.",
    fix: "Report this with the cause from the log.",
  },
  MORTISE_TRANSPORT_MAILBOX_FULL: {
    disposition: "retry",
    meaning: "An actor's mailbox is full.",
    fix: "Its effects are stalled or it is overloaded; see the named actor.",
  },
  MORTISE_TRANSPORT_NOT_FOUND: {
    disposition: "terminal",
    meaning: "A stored message or object is not there.",
    fix: "Check the reference; it may have been pruned.",
  },
  MORTISE_TRANSPORT_SEQUENCE_CONFLICT: {
    disposition: "terminal",
    meaning: "Another writer appended to the subject first.",
    fix: "Re-read the subject and decide again.",
  },
  MORTISE_TRANSPORT_TOPOLOGY: {
    disposition: "terminal",
    meaning: "A stream, consumer or bucket exists with an incompatible definition.",
    fix: "Remove it, or use another NATS server or account.",
  },
  MORTISE_TRANSPORT_UNAVAILABLE: {
    disposition: "retry",
    meaning: "The bus or a service did not answer in time.",
    fix: "Check that it runs; the call is retried.",
  },

  MORTISE_POLICY_CHECKPOINT: {
    disposition: "terminal",
    meaning: "A checkpoint directory is incomplete or invalid.",
    fix: "Give a Hugging Face directory with config.json, safetensors, tokenizer.json and tokenizer_config.json.",
  },
  MORTISE_POLICY_NO_CHAT_TEMPLATE: {
    disposition: "terminal",
    meaning: "The tokenizer has no chat template.",
    fix: "Add `chat_template` to tokenizer_config.json (or a chat_template.jinja file).",
  },
  MORTISE_POLICY_SAFETENSORS: {
    disposition: "terminal",
    meaning: "A safetensors file is malformed.",
    fix: "Export the weights again; the named tensor or header field is wrong.",
  },
  MORTISE_POLICY_UNSUPPORTED: {
    disposition: "terminal",
    meaning: "The model architecture or option is not supported.",
    fix: "Use a Llama-, Qwen2- or Qwen3-style dense decoder.",
  },

  MORTISE_PROVIDER_BAD_REQUEST: {
    disposition: "terminal",
    meaning: "A model request is malformed.",
    fix: "Correct the named field of the request.",
  },
  MORTISE_PROVIDER_BUDGET: {
    disposition: "budget",
    meaning: "The session has used up a budget.",
    fix: "Raise the budget in the run configuration, or let the trial end.",
  },
  MORTISE_PROVIDER_CONTEXT_LENGTH: {
    disposition: "budget",
    meaning: "The request is longer than the context the policy has.",
    fix: "Shorten the prompt or use a policy with a longer context.",
  },
  MORTISE_PROVIDER_ENGINE: {
    disposition: "retry",
    meaning: "The engine failed or restarted.",
    fix: "The request may be sent again.",
  },
  MORTISE_PROVIDER_LISTENER: {
    disposition: "terminal",
    meaning: "A session token came through another endpoint than its own sandbox's.",
    fix: "Call the model API of the token's own sandbox; sessions opened without through_listener may be called directly.",
  },
  MORTISE_PROVIDER_NOT_FOUND: {
    disposition: "terminal",
    meaning: "The model API has no such route.",
    fix: "Use chat/completions, responses, messages, messages/count_tokens or models below the base URL.",
  },
  MORTISE_PROVIDER_TOO_LARGE: {
    disposition: "terminal",
    meaning: "A model request is larger than the body limit.",
    fix: "Send less history in one request.",
  },
  MORTISE_PROVIDER_UNAUTHORIZED: {
    disposition: "terminal",
    meaning: "The session token is missing, wrong or expired.",
    fix: "Use the token of the trial's own session.",
  },
  MORTISE_PROVIDER_UNKNOWN_SESSION: {
    disposition: "terminal",
    meaning: "There is no such session.",
    fix: "Open the session first.",
  },

  MORTISE_CAPTURE_INVALID: {
    disposition: "terminal",
    meaning: "Captured records contradict each other.",
    fix: "Report this: the capture journal must never do so.",
  },
  MORTISE_CAPTURE_LEDGER: {
    disposition: "terminal",
    meaning: "The token ledger does not balance.",
    fix: "Report this with the run's streams: tokens were lost or counted twice.",
  },

  MORTISE_HARNESS_REMOTE_ANSWER: {
    disposition: "terminal",
    meaning: "A remote runtime answered with something that cannot be used.",
    fix: "Run a runtime that speaks the version of the invocation format that the docs name.",
  },
  MORTISE_HARNESS_REMOTE_DENIED: {
    disposition: "terminal",
    meaning: "A remote runtime refuses the site's credentials.",
    fix: "Correct harness.<name>.remote.tokenFile of the site file.",
  },
  MORTISE_HARNESS_REMOTE_LOST: {
    disposition: "retry",
    meaning: "A remote runtime lost an invocation, or it cannot be told what became of it.",
    fix: "Look at the runtime's own log; the trial is lost and is tried again as a new one.",
  },
  MORTISE_HARNESS_REMOTE_REFUSED: {
    disposition: "retry",
    meaning: "A remote runtime did not begin an invocation.",
    fix: "See the reason: it is full, stops, cannot be reached, or cannot do what was asked.",
  },
  MORTISE_HARNESS_REMOTE_UNPROVEN: {
    disposition: "terminal",
    meaning: "The run demands proofs that a remote runtime cannot give.",
    fix: 'Set rollout.unproven = "allow" if nothing about egress and history needs to be proved, or use a local harness.',
  },
  MORTISE_HARNESS_RUNTIME: {
    disposition: "terminal",
    meaning: "The runtime of a harness cannot be obtained on this machine.",
    fix: "Check that its package registry can be reached and that the interpreter it needs is installed.",
  },
  MORTISE_HARNESS_UNFIT: {
    disposition: "terminal",
    meaning: "A task's image cannot run the harness.",
    fix: "Use an image that has what the reason names, or another harness for these tasks.",
  },
  MORTISE_HARNESS_UNKNOWN: {
    disposition: "terminal",
    meaning: "The run names a harness that the site does not define.",
    fix: "Add [harness.<name>] to the site file, or name a defined one.",
  },

  MORTISE_SANDBOX_BACKEND: {
    disposition: "terminal",
    meaning: "The configured sandbox backend cannot work on this host.",
    fix: "Install what the reason names, or set sandbox.backend to another.",
  },
  MORTISE_SANDBOX_IMAGE_BUILD: {
    disposition: "retry",
    meaning: "A task's image could not be built for a reason outside the task.",
    fix: "See the cause: network, space, time or the engine itself.",
  },
  MORTISE_SANDBOX_IMAGE_DENIED: {
    disposition: "terminal",
    meaning: "A registry refuses access to an image.",
    fix: "Log in with the registry's own tool, or correct the entry in the Docker configuration file.",
  },
  MORTISE_SANDBOX_IMAGE_DIGEST: {
    disposition: "retry",
    meaning: "Bytes of an image differ from their digest.",
    fix: "Pull again; if it stays so, the registry or mirror serves damaged content.",
  },
  MORTISE_SANDBOX_IMAGE_INVALID: {
    disposition: "terminal",
    meaning: "A manifest or configuration of an image cannot be used.",
    fix: "Build or convert the image as OCI or Docker schema 2 for this platform.",
  },
  MORTISE_SANDBOX_IMAGE_LAYER: {
    disposition: "terminal",
    meaning: "A layer of an image is damaged or would reach outside its root.",
    fix: "Do not use this image; rebuild it with an ordinary builder.",
  },
  MORTISE_SANDBOX_IMAGE_OVER_LIMIT: {
    disposition: "terminal",
    meaning: "An image is larger than a limit allows.",
    fix: "Raise the named limit if the image is trusted.",
  },
  MORTISE_SANDBOX_IMAGE_REFERENCE: {
    disposition: "terminal",
    meaning: "An image is named in a way that cannot be read.",
    fix: "Use registry/repository:tag or registry/repository@sha256:digest.",
  },
  MORTISE_SANDBOX_IMAGE_REGISTRY: {
    disposition: "retry",
    meaning: "A registry could not be reached or did not answer as one.",
    fix: "Check the registry and the network; a mirror can be set by a rewrite rule.",
  },
  MORTISE_SANDBOX_IMAGE_STORE: {
    disposition: "retry",
    meaning: "The image store could not be read or written.",
    fix: "See the reason; the store needs root, free space and a file system with extended attributes.",
  },
  MORTISE_SANDBOX_IMAGE_UNKNOWN: {
    disposition: "terminal",
    meaning: "There is no such image, or none for this platform.",
    fix: "Correct the name, tag or platform.",
  },
  MORTISE_SANDBOX_LOST: {
    disposition: "retry",
    meaning: "A sandbox disappeared before its result was taken.",
    fix: "The trial is retried.",
  },
  MORTISE_SANDBOX_NETWORK: {
    disposition: "terminal",
    meaning: "The network a task asks for cannot be given to a sandbox.",
    fix: "Correct the task's allowed_hosts, or see the reason; nothing was opened.",
  },
  MORTISE_SANDBOX_NETWORK_UNRESOLVED: {
    disposition: "retry",
    meaning: "A host of an allow-list has no address now.",
    fix: "Check the name and the resolver of this host.",
  },
  MORTISE_SANDBOX_NOT_CLOSED: {
    disposition: "retry",
    meaning: "A sandbox could not be shown to be sealed, so its agent was not started.",
    fix: "See the probe or step that is named; the trial is retried.",
  },
  MORTISE_SANDBOX_NOT_KEPT: {
    disposition: "terminal",
    meaning: "There is no kept sandbox of this trial at this manager.",
    fix: 'Set rollout.keep = "failed" or "always" in the run file; kept sandboxes expire.',
  },
  MORTISE_SANDBOX_NO_SPACE: {
    disposition: "retry",
    meaning: "The disk of a sandbox-manager is full.",
    fix: "Free space on the file system that is named: `mortise clean` removes caches that are not used.",
  },
  MORTISE_SANDBOX_OVER_LIMIT: {
    disposition: "terminal",
    meaning: "The agent's change is larger than the limit.",
    fix: "Raise the disk limit of the sandbox.",
  },
  MORTISE_SANDBOX_PATCH: {
    disposition: "terminal",
    meaning: "A patch object is malformed or leaves the workspace.",
    fix: "Send the patch as the sandbox-manager produced it.",
  },
  MORTISE_SANDBOX_SEAL: {
    disposition: "terminal",
    meaning: "A step of sealing a root filesystem could not be done.",
    fix: "See the reason. The sandbox is half sealed: remove it.",
  },
  MORTISE_SANDBOX_SEAL_ANSWER: {
    disposition: "terminal",
    meaning: "A sealed root filesystem still holds an answer, or could not be searched whole.",
    fix: "Rebuild the task's image without what the hits name, or drop the task.",
  },
  MORTISE_SANDBOX_SETUP: {
    disposition: "retry",
    meaning: "A sandbox could not be set up.",
    fix: "See the reason; the trial is retried.",
  },
  MORTISE_SANDBOX_STAGE_TIMEOUT: {
    disposition: "retry",
    meaning: "A stage of a trial took longer than it may.",
    fix: "Raise the named timeout of the run file, or see why the stage is slow.",
  },
  MORTISE_SANDBOX_STATE_IN_USE: {
    disposition: "terminal",
    meaning: "Another sandbox-manager uses this state directory.",
    fix: "Stop the other one, or give this one a state directory of its own.",
  },
  MORTISE_SANDBOX_UNKNOWN_LEASE: {
    disposition: "terminal",
    meaning: "There is no such lease at this manager.",
    fix: "The trial was lost or has ended; its report says which.",
  },

  MORTISE_TASK_BUILD: {
    disposition: "terminal",
    meaning: "A task's image cannot be built from its Dockerfile.",
    fix: "Correct the named step of environment/Dockerfile; it is not tried again until the task changes.",
  },
  MORTISE_TASK_DIGEST: {
    disposition: "terminal",
    meaning: "A task directory differs from the digest it was indexed with.",
    fix: "Rebuild the task index, or restore the task directory.",
  },
  MORTISE_TASK_EXISTS: {
    disposition: "terminal",
    meaning: "A task directory or index is there already, with other content.",
    fix: "Pass --replace to write it anew, or name another directory.",
  },
  MORTISE_TASK_INVALID: {
    disposition: "terminal",
    meaning: "A task directory is malformed.",
    fix: "Correct the named file and field.",
  },
  MORTISE_TASK_OVERLAP: {
    disposition: "terminal",
    meaning: "Two task sets that must be disjoint are not.",
    fix: "Exclude the named repositories or instances.",
  },
  MORTISE_TASK_RECORD: {
    disposition: "terminal",
    meaning: "A record of a data set cannot be used.",
    fix: "Correct the named field of the record, or leave the record out.",
  },
  MORTISE_TASK_SOURCE: {
    disposition: "terminal",
    meaning: "A source of tasks cannot be read.",
    fix: "Give a JSON, JSONL or parquet file, or a revision of a data set that can be reached.",
  },
  MORTISE_TASK_UNKNOWN: {
    disposition: "terminal",
    meaning: "A task id is not in the task directory.",
    fix: "Check tasks.directory and the task index.",
  },

  MORTISE_VERIFIER_INFRA: {
    disposition: "retry",
    meaning: "Verification failed for a reason that is not the agent's.",
    fix: "See the reason; the trial is retried.",
  },
  MORTISE_VERIFIER_RESULTS: {
    disposition: "terminal",
    meaning: "The test run gave no usable per-test results.",
    fix: "Check that tests/test.sh prints results in the task's format.",
  },

  MORTISE_TRAINER_CHECKPOINT: {
    disposition: "terminal",
    meaning: "A training checkpoint is missing, incomplete or does not belong to the published version.",
    fix: "Start the trainer with the state directory of this run; the published version cannot be resumed without its optimiser.",
  },
  MORTISE_TRAINER_COMPUTE: {
    disposition: "terminal",
    meaning: "The compute thread of the trainer ended.",
    fix: "See the reason; the step was not committed and is taken again after a restart.",
  },
  MORTISE_TRAINER_DEMONSTRATIONS: {
    disposition: "terminal",
    meaning: "The demonstrations file is malformed.",
    fix: "Correct the named line: JSONL with `messages`.",
  },
  MORTISE_TRAINER_NON_FINITE: {
    disposition: "terminal",
    meaning: "A loss or gradient is not finite.",
    fix: "Lower the learning rate; the step was not committed.",
  },
} as const satisfies Record<string, CatalogueRow>;

export type ErrorCode = keyof typeof ERROR_CATALOGUE;

export interface MortiseErrorInit {
  readonly code: ErrorCode;
  /** What was found, with the field, path or subject. */
  readonly message: string;
  /** Replaces the catalogue's fix when something more exact is known. */
  readonly fix?: string;
  readonly cause?: unknown;
  /** Wait at least this long before a retry, milliseconds. */
  readonly retryAfterMs?: number;
  readonly detail?: Readonly<Record<string, unknown>>;
}

/** The only error that crosses a package boundary on purpose. */
export class MortiseError extends Error {
  readonly code: ErrorCode;
  readonly boundary: Boundary;
  readonly disposition: Disposition;
  readonly fix: string;
  readonly retryAfterMs: number | undefined;
  readonly detail: Readonly<Record<string, unknown>>;

  constructor(init: MortiseErrorInit) {
    const row = ERROR_CATALOGUE[init.code];
    super(`${row.meaning} ${init.message}`, init.cause === undefined ? undefined : { cause: init.cause });
    this.name = "MortiseError";
    this.code = init.code;
    this.boundary = boundaryOf(init.code);
    this.disposition = row.disposition;
    this.fix = init.fix ?? row.fix;
    this.retryAfterMs = init.retryAfterMs;
    this.detail = init.detail ?? {};
  }
}

/** The boundary is the second word of the code. */
export function boundaryOf(code: ErrorCode): Boundary {
  return code.split("_")[1]!.toLowerCase() as Boundary;
}

export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === "string" && Object.hasOwn(ERROR_CATALOGUE, value);
}
