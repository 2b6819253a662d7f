/**
 * Loaded by Node before anything of the tests: gives the test runner, and no other program, its channel. The runner is
 * told by its program; every other one goes on as if nothing had been there.
 *
 * Jest and Vitest get a reporter more on their command line, Mocha's runner is listened to. Written for Node 16 and up.
 */
"use strict";

const fs = require("node:fs");
const path = require("node:path");

const PROGRAMS = [
  ["jest", /[\\/](?:jest|jest-cli)[\\/]bin[\\/]jest(?:\.js)?$/],
  ["vitest", /[\\/]vitest[\\/]vitest\.mjs$/],
  ["mocha", /[\\/]mocha[\\/]bin[\\/]_?mocha(?:\.js)?$/],
];

function program() {
  try {
    const main = fs.realpathSync(process.argv[1]);
    const found = PROGRAMS.find(([, pattern]) => pattern.test(main));
    return found === undefined ? undefined : { name: found[0], main };
  } catch {
    return undefined;
  }
}

/** A function that sends a record, and the verifier's wish. */
function openPipe(place) {
  const [output, source] = place.split(",").map(Number);
  const pieces = [];
  const buffer = Buffer.alloc(4096);
  for (;;) {
    const count = again(() => fs.readSync(source, buffer, 0, buffer.length, null));
    if (count === 0) break;
    pieces.push(Buffer.from(buffer.subarray(0, count)));
  }
  fs.closeSync(source);
  const wish = JSON.parse(Buffer.concat(pieces).toString());
  const { writeSync } = fs;
  const { stringify } = JSON;
  let seq = 0;
  const send = (record) => {
    const line = Buffer.from(`${stringify({ ...record, nonce: wish.nonce, seq: seq++ })}\n`);
    for (let at = 0; at < line.length; ) at += again(() => writeSync(output, line, at));
  };
  return { send, wish };
}

function again(call) {
  for (;;) {
    try {
      return call();
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
    }
  }
}

let pipe;
/** To the reporter that is loaded first, and to nobody after it. */
exports.take = () => {
  const taken = pipe;
  pipe = undefined;
  return taken;
};

const place = process.env.MORTISE_CHANNEL;
const runner = place === undefined ? undefined : program();
if (runner !== undefined) {
  delete process.env.MORTISE_CHANNEL;
  const own = `--require=${__filename}`;
  const options = (process.env.NODE_OPTIONS || "").split(" ").filter((option) => option !== own);
  if (options.join("") === "") delete process.env.NODE_OPTIONS;
  else process.env.NODE_OPTIONS = options.join(" ");
  pipe = openPipe(place);
  pipe.send({ start: true, runner: runner.name });
  const names = (option) => process.argv.some((argument) => argument.split("=")[0] === option);
  if (runner.name === "jest") {
    if (!names("--reporters")) process.argv.push("--reporters=default");
    process.argv.push(`--reporters=${path.join(__dirname, "jest-reporter.cjs")}`);
  } else if (runner.name === "vitest") {
    if (!names("--reporter")) process.argv.push("--reporter=default");
    process.argv.push(`--reporter=${path.join(__dirname, "vitest-reporter.mjs")}`);
  } else require("./mocha-listener.cjs").listen(path.join(path.dirname(runner.main), ".."), exports.take());
}
