/**
 * A small agent that is nothing to Mortise but a command: it sends its task to an OpenAI endpoint, runs what the
 * tool `sh` is asked for, and ends with the first answer that asks for nothing. Stands for any program an operator
 * configures; it knows no more than its environment and its settings file.
 */
"use strict";
const { spawnSync } = require("node:child_process");
const fs = require("node:fs");

const { AGENT_URL, AGENT_KEY, AGENT_TASK, AGENT_SETTINGS, AGENT_LOG } = process.env;
const EXIT_TURN_LIMIT = 9;
const { model, maxTurns } = JSON.parse(fs.readFileSync(AGENT_SETTINGS, "utf8"));
const tools = [
  {
    type: "function",
    function: {
      name: "sh",
      description: "Runs a script.",
      parameters: { type: "object", properties: { script: { type: "string" } }, required: ["script"] },
    },
  },
];

async function ask(messages) {
  const response = await fetch(`${AGENT_URL}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${AGENT_KEY}`, "content-type": "application/json" },
    body: JSON.stringify({ model, messages, tools }),
  });
  if (!response.ok) throw new Error(`the model answered ${response.status}: ${await response.text()}`);
  return (await response.json()).choices[0].message;
}

function run({ id, function: { arguments: given } }) {
  const { stdout, stderr, status } = spawnSync("sh", ["-c", JSON.parse(given).script], { encoding: "utf8" });
  return { role: "tool", tool_call_id: id, content: `${stdout}${stderr}exit code ${status}` };
}

async function main() {
  const messages = [{ role: "user", content: AGENT_TASK }];
  for (let turn = 0; turn < maxTurns; turn++) {
    const message = await ask(messages);
    messages.push(message);
    fs.writeFileSync(AGENT_LOG, JSON.stringify(messages));
    if (!message.tool_calls?.length) return 0;
    messages.push(...message.tool_calls.map(run));
  }
  return EXIT_TURN_LIMIT;
}

main().then(
  (code) => process.exit(code),
  (error) => {
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  },
);
