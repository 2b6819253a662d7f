/**
 * mini: a coding agent that repairs one function.
 *
 * Owns the conversation: it shows the function, carries out the edits the model asks for, and stops when the
 * model answers without a tool call. It speaks OpenAI Chat Completions and knows only the base URL and key in
 * its environment. Does not judge its own work. One file, node's own modules only, so that starting it costs
 * little more than starting node.
 */
"use strict";

const fs = require("node:fs");
const http = require("node:http");
const path = require("node:path");

const EXIT = { stopped: 0, usage: 2, unreachable: 3, refused: 4, malformed: 5, turnLimit: 6 };

/** A request is sent at most this many times, always with the same body. */
const MAX_ATTEMPTS = 5;
const FIRST_BACKOFF_MS = 100;
/** Silence on the socket after which the model counts as unreachable. */
const SILENCE_MS = 120_000;
/** The end of the tests' output says what failed; a model with a small context cannot take more. */
const TEST_OUTPUT_CHARS = 2000;
const TEST_TIMEOUT_MS = 30_000;

class Stop extends Error {
  constructor(exitCode, message) {
    super(message);
    this.exitCode = exitCode;
  }
}

// ---- code as the model sees it ----

const TOKEN =
  /\s+|\/\/[^\n]*|\/\*[\s\S]*?\*\/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\[\s\S]|[^`\\])*`|[\w$]+|[\s\S]/g;

/** Tokens that mean something, with their offset: no white space, no comment. */
function tokensOf(source) {
  const tokens = [];
  for (const match of source.matchAll(TOKEN)) {
    const text = match[0];
    if (!/^(?:\s|\/\/|\/\*)/.test(text)) tokens.push({ text, start: match.index });
  }
  return tokens;
}

/**
 * Code in canonical spacing (a space only where two words or two equal signs would run together) with the
 * offset of each character in the source, so that a place in the view can be found in the file.
 */
function viewOf(source) {
  let text = "";
  const offsets = [];
  let end = 0;
  for (const token of tokensOf(source)) {
    const joined = text.slice(-1) + token.text[0];
    if (token.start > end && text !== "" && /^(?:[\w$]{2}|\+\+|--|\/\/)$/.test(joined)) {
      text += " ";
      offsets.push(end);
    }
    text += token.text;
    for (let i = 0; i < token.text.length; i++) offsets.push(token.start + i);
    end = token.start + token.text.length;
  }
  return { text, offsets };
}

/** Where a function's parameter list starts and its body ends; undefined when the file does not define it. */
function locateFunction(source, name) {
  const tokens = tokensOf(source);
  for (let at = 0; at < tokens.length; at++) {
    if (tokens[at].text !== name) continue;
    let open = at + 1;
    while (["=", ":", "async", "function", "*"].includes(tokens[open]?.text)) open++;
    if (tokens[open]?.text !== "(") continue;
    let body = closing(tokens, open) + 1;
    if (tokens[body]?.text === "=" && tokens[body + 1]?.text === ">") body += 2;
    if (tokens[body]?.text !== "{") continue;
    const last = tokens[closing(tokens, body)];
    if (last !== undefined) return { start: tokens[open].start, end: last.start + 1 };
  }
  return undefined;
}

/** Index of the bracket that closes the one at `open`; the number of tokens when none does. */
function closing(tokens, open) {
  let depth = 0;
  for (let at = open; at < tokens.length; at++) {
    if ("([{".includes(tokens[at].text)) depth++;
    if (")]}".includes(tokens[at].text) && --depth === 0) return at;
  }
  return tokens.length;
}

// ---- tools ----

const EDIT_TOOL = {
  type: "function",
  function: {
    name: "edit",
    description: "Replace a piece of the function. `old` must occur in it exactly once.",
    parameters: {
      type: "object",
      properties: { old: { type: "string" }, new: { type: "string" } },
      required: ["old", "new"],
    },
  },
};

const TEST_TOOL = {
  type: "function",
  function: {
    name: "test",
    description: "Run the repository's tests.",
    parameters: { type: "object", properties: {} },
  },
};

/** Replaces `old` inside the function; false when it is not there exactly once. */
function edit(target, change) {
  if (typeof change?.old !== "string" || typeof change?.new !== "string") return false;
  const wanted = viewOf(change.old).text;
  const source = fs.readFileSync(target.file, "utf8");
  const view = viewOf(source.slice(target.start, target.end));
  const first = view.text.indexOf(wanted);
  if (wanted === "" || first < 0 || view.text.indexOf(wanted, first + 1) >= 0) return false;
  const from = target.start + view.offsets[first];
  const to = target.start + view.offsets[first + wanted.length - 1] + 1;
  fs.writeFileSync(target.file, source.slice(0, from) + change.new + source.slice(to));
  target.end += change.new.length - (to - from);
  return true;
}

/** Runs the tests and returns the end of their output. */
function runTests(workdir) {
  const { spawnSync } = require("node:child_process");
  const command = process.env.MINI_TEST_COMMAND ?? packageTestCommand(workdir);
  const done = spawnSync("sh", ["-c", command], { cwd: workdir, encoding: "utf8", timeout: TEST_TIMEOUT_MS });
  const ending = done.status === 0 ? "passed" : `failed (${done.status ?? done.signal})`;
  return `${`${done.stdout}${done.stderr}`.slice(-TEST_OUTPUT_CHARS)}\n${ending}`.trim();
}

function packageTestCommand(workdir) {
  const manifest = JSON.parse(fs.readFileSync(path.join(workdir, "package.json"), "utf8"));
  return manifest.scripts?.test ?? "exit 1";
}

function carryOut(call, target, options) {
  if (call.function.name === "test" && options.runsTests) return runTests(options.workdir);
  if (call.function.name !== "edit") return "error";
  let change;
  try {
    change = JSON.parse(call.function.arguments);
  } catch {
    return "error";
  }
  return edit(target, change) ? "ok" : "error";
}

// ---- model ----

/** One model call: the assistant message. Retries with the same body; throws Stop when there is no point. */
async function complete(model, messages, options) {
  const body = JSON.stringify({ model: model.name, messages, tools: options.tools, stream: options.streams });
  for (let attempt = 1; ; attempt++) {
    try {
      return await post(model, body, options.streams);
    } catch (error) {
      if (error instanceof Stop) throw error;
      if (attempt === MAX_ATTEMPTS) throw new Stop(EXIT.unreachable, `no reply: ${error.message}`);
      await new Promise((resolve) => setTimeout(resolve, FIRST_BACKOFF_MS * 2 ** (attempt - 1)));
    }
  }
}

/** Resolves with the message; rejects with Stop when refused or malformed, with another error to retry. */
function post(model, body, streams) {
  return new Promise((resolve, reject) => {
    const request = model.http.request(
      model.url,
      {
        method: "POST",
        agent: model.agent,
        timeout: SILENCE_MS,
        headers: {
          "content-type": "application/json",
          "content-length": Buffer.byteLength(body),
          authorization: `Bearer ${model.key}`,
        },
      },
      (response) => {
        response.setEncoding("utf8");
        let text = "";
        response.on("data", (chunk) => {
          text += chunk;
        });
        response.on("error", reject);
        response.on("end", () => {
          try {
            resolve(readReply(response.statusCode, text, streams));
          } catch (error) {
            reject(error);
          }
        });
      },
    );
    request.on("timeout", () => request.destroy(new Error("the model went silent")));
    request.on("error", reject);
    request.end(body);
  });
}

function readReply(status, text, streams) {
  if (status === 429 || status >= 500) throw new Error(`status ${status}`);
  if (status !== 200) throw new Stop(EXIT.refused, `status ${status}: ${text.slice(0, 500)}`);
  const message = streams ? joinDeltas(text) : parseReply(text).choices?.[0]?.message;
  if (typeof message !== "object" || message === null) {
    throw new Stop(EXIT.malformed, "the reply has no message");
  }
  const calls = message.tool_calls ?? [];
  if (calls.some((call) => typeof call.function?.name !== "string")) {
    throw new Stop(EXIT.malformed, "a tool call has no function name");
  }
  const content = message.content ?? null;
  return calls.length > 0
    ? { role: "assistant", content, tool_calls: calls }
    : { role: "assistant", content: content ?? "" };
}

/** Puts a streamed message together. A stream that breaks off or reports an error is worth a retry. */
function joinDeltas(text) {
  const message = { content: null, tool_calls: [] };
  let isComplete = false;
  for (const line of text.split("\n")) {
    if (!line.startsWith("data:")) continue;
    const payload = line.slice(5).trim();
    if (payload === "[DONE]") return finished(message, isComplete);
    const event = parseReply(payload);
    if (event.error !== undefined) throw new Error(`stream error: ${event.error?.message ?? "unknown"}`);
    const choice = event.choices?.[0];
    if (choice === undefined) continue;
    if (choice.finish_reason) isComplete = true;
    if (choice.delta?.content) message.content = (message.content ?? "") + choice.delta.content;
    for (const part of choice.delta?.tool_calls ?? []) addCallDelta(message.tool_calls, part);
  }
  return finished(message, isComplete);
}

function finished(message, isComplete) {
  if (!isComplete) throw new Error("the stream broke off");
  return message;
}

function addCallDelta(calls, part) {
  const index = part.index ?? 0;
  calls[index] ??= { type: "function", function: { name: "", arguments: "" } };
  const call = calls[index];
  if (part.id) call.id = part.id;
  call.function.name += part.function?.name ?? "";
  call.function.arguments += part.function?.arguments ?? "";
}

function parseReply(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Stop(EXIT.malformed, `the reply is not JSON: ${text.slice(0, 200)}`);
  }
}

// ---- the run ----

/** `Repair <function> in <file>: <sentence>` */
const INSTRUCTION = /(\S+) in (\S+): (.+)/;

async function run() {
  const options = readOptions();
  const target = readTarget(options);
  const model = openModel();
  const source = fs.readFileSync(target.file, "utf8").slice(target.start, target.end);
  const messages = [{ role: "user", content: `# ${target.sentence}\n${viewOf(source).text}` }];
  for (let turn = 1; turn <= options.maxTurns; turn++) {
    const reply = await complete(model, messages, options);
    messages.push(reply);
    if (reply.tool_calls === undefined) return reply.content;
    for (const call of reply.tool_calls) {
      messages.push({ role: "tool", tool_call_id: call.id, content: carryOut(call, target, options) });
    }
  }
  throw new Stop(EXIT.turnLimit, `still editing after ${options.maxTurns} turns`);
}

/** Options from the command line, else from the environment. */
function readOptions() {
  const given = {};
  const words = process.argv.slice(2);
  while (words.length > 0) {
    const word = words.shift();
    if (word === "--no-stream") given.stream = "0";
    else if (/^--(?:instruction|workdir|max-turns)$/.test(word) && words.length > 0)
      given[word] = words.shift();
    else throw new Stop(EXIT.usage, `unknown or incomplete option ${word}`);
  }
  const { env } = process;
  const maxTurns = Number(given["--max-turns"] ?? env.MINI_MAX_TURNS ?? 4);
  if (!Number.isInteger(maxTurns) || maxTurns < 1) throw new Stop(EXIT.usage, "max turns must be 1 or more");
  const runsTests = env.MINI_RUN_TESTS === "1";
  return {
    instructionFile: given["--instruction"] ?? env.MINI_INSTRUCTION_FILE,
    workdir: path.resolve(given["--workdir"] ?? env.MINI_WORKDIR ?? "."),
    maxTurns,
    runsTests,
    streams: (given.stream ?? env.MINI_STREAM) !== "0",
    tools: runsTests ? [EDIT_TOOL, TEST_TOOL] : [EDIT_TOOL],
  };
}

function readTarget(options) {
  const text =
    options.instructionFile === undefined
      ? process.env.MINI_INSTRUCTION
      : readRequired(options.instructionFile, "the instruction");
  const match = INSTRUCTION.exec(text ?? "");
  if (match === null)
    throw new Stop(EXIT.usage, "the instruction must say: Repair FUNCTION in FILE: SENTENCE");
  const [, name, relative, sentence] = match;
  const file = path.resolve(options.workdir, relative);
  if (!file.startsWith(options.workdir + path.sep)) {
    throw new Stop(EXIT.usage, `${relative} is outside the working directory`);
  }
  const range = locateFunction(readRequired(file, "the file of the instruction"), name);
  if (range === undefined) throw new Stop(EXIT.usage, `${relative} does not define ${name}`);
  return { file, sentence: sentence.trim(), ...range };
}

function readRequired(file, what) {
  try {
    return fs.readFileSync(file, "utf8");
  } catch (error) {
    throw new Stop(EXIT.usage, `cannot read ${what}: ${error.message}`);
  }
}

function openModel() {
  const { OPENAI_BASE_URL: base, OPENAI_API_KEY: key, OPENAI_MODEL: name } = process.env;
  for (const [variable, value] of Object.entries({
    OPENAI_BASE_URL: base,
    OPENAI_API_KEY: key,
    OPENAI_MODEL: name,
  })) {
    if (!value) throw new Stop(EXIT.usage, `${variable} is not set`);
  }
  if (!/^https?:\/\//.test(base))
    throw new Stop(EXIT.usage, "OPENAI_BASE_URL must start with http:// or https://");
  const client = base.startsWith("https:") ? require("node:https") : http;
  return {
    http: client,
    agent: new client.Agent({ keepAlive: true, maxSockets: 1 }),
    url: new URL(`${base.replace(/\/+$/, "")}/chat/completions`),
    key,
    name,
  };
}

async function main() {
  try {
    process.stdout.write(`${await run()}\n`);
    process.exit(EXIT.stopped);
  } catch (error) {
    process.stderr.write(`mini: ${error instanceof Stop ? error.message : error.stack}\n`);
    process.exit(error instanceof Stop ? error.exitCode : 1);
  }
}

if (require.main === module) main();
module.exports = { locateFunction, viewOf };
