/** A template that rewrites earlier turns: every request is rendered whole, captured exactly, and says so (C2). */
import { assembleTrial, unpackIds } from "@mortise/capture";
import { TurnRelation } from "@mortise/contracts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { FORGETFUL_TEMPLATE } from "../../../packages/rendering/test/templates.js";
import { call } from "./http-client.js";
import { openSession, ProxyFixture, type Replica, RUN } from "./proxy-fixture.js";
import { ScriptedEngine } from "./scripted-engine.js";

let fixture: ProxyFixture;
let replica: Replica;
const engine = new ScriptedEngine();

beforeAll(async () => {
  fixture = await ProxyFixture.create({ chatTemplate: FORGETFUL_TEMPLATE });
  replica = await fixture.start(() => engine);
  await fixture.publishWeights(0);
});
afterAll(() => fixture.stop());

test("each turn is a branch under its own context, and each is trained", async () => {
  const token = await openSession(replica, "h0");
  engine.play({ ids: fixture.ids("done") }, { ids: fixture.ids("ok") });
  const messages = [{ role: "user", content: "fix" }];
  await call(replica.modelAddress, { token, body: { messages } }).done;
  messages.push({ role: "assistant", content: "done" }, { role: "user", content: "x" });
  await call(replica.modelAddress, { token, body: { messages } }).done;
  const turns = await fixture.turns("h0");
  expect(turns.map((turn) => [turn.relation, turn.parent, turn.historyPolicy])).toEqual([
    [TurnRelation.ROOT, "", "branch"],
    [TurnRelation.BRANCH, "", "branch"],
  ]);
  const whole =
    "<|im_start|>user\nfix<|im_end|>\n<|im_start|>assistant\n(earlier)<|im_end|>\n<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n";
  expect([...unpackIds(turns[1]!.suffixIds)]).toEqual([...fixture.tokenizer.encode(whole)]);
  const { seal } = await replica.rpc.sealSession({ run: RUN, trial: "h0" });
  const rows = assembleTrial(turns, seal!);
  expect(rows.sequences).toHaveLength(2);
  expect(rows.trainableTokens).toBe(rows.sampledTokens);
});

test("a request with tools is refused when no call syntax fits the template", async () => {
  const token = await openSession(replica, "h1");
  const tools = [{ type: "function", function: { name: "edit" } }];
  const messages = [{ role: "user", content: "fix" }];
  const answer = await call(replica.modelAddress, { token, body: { messages, tools } }).done;
  expect(answer.status).toBe(400);
  expect(JSON.parse(answer.text).error.param).toBe("tools");
});
