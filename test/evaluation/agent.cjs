/**
 * A harness for the tests: asks the model once and does what it says in a shell. What a trial does is the script's choice,
 * which knows the trial.
 */
"use strict";
const { spawnSync } = require("node:child_process");

(async () => {
  const { MODEL_URL, TOKEN, INSTRUCTION } = process.env;
  const response = await fetch(`${MODEL_URL}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "policy", messages: [{ role: "user", content: INSTRUCTION }] }),
  });
  if (!response.ok) process.exit(3);
  const { choices } = await response.json();
  const { status, stdout, stderr } = spawnSync("sh", ["-c", choices[0].message.content]);
  process.stdout.write(`${stdout}${stderr}`);
  process.exit(status === 0 ? 0 : 1);
})().catch(() => process.exit(3));
