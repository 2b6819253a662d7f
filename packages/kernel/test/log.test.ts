import { MortiseError } from "@mortise/contracts";
import { expect, test } from "vitest";
import { createLog } from "../src/log.js";

function lines(): { written: string[]; log: ReturnType<typeof createLog> } {
  const written: string[] = [];
  const destination = { write: (line: string) => void written.push(line) };
  return { written, log: createLog({ service: "probe", level: "debug", destination }) };
}

test("a line is JSON with the service and the event", () => {
  const { written, log } = lines();
  log.info({ event: "thing.done", count: 3 });
  expect(JSON.parse(written[0]!)).toMatchObject({
    level: "info",
    service: "probe",
    event: "thing.done",
    count: 3,
  });
});

test("secrets do not reach the log, wherever they hide", () => {
  const { written, log } = lines();
  const secret = "s3cr3t-value";
  log.info({
    token: secret,
    session: { sessionToken: secret },
    identity: { password: secret, bearer: secret },
  });
  log.error({ err: new Error(`dial nats://user:${secret}@host:4222 failed`) });
  const cause = new Error(`nats://user:${secret}@host`);
  log.error({ err: new MortiseError({ code: "MORTISE_TRANSPORT_UNAVAILABLE", message: "gone", cause }) });
  log.child({ apiKey: secret }).warn("with a bound field");
  expect(written).toHaveLength(4);
  for (const line of written) expect(line).not.toContain(secret);
});

test("an error keeps its code and cause", () => {
  const { written, log } = lines();
  const cause = new Error("refused");
  log.error({ err: new MortiseError({ code: "MORTISE_TRANSPORT_UNAVAILABLE", message: "gone", cause }) });
  expect(JSON.parse(written[0]!).err).toMatchObject({
    code: "MORTISE_TRANSPORT_UNAVAILABLE",
    disposition: "retry",
    cause: { message: "refused" },
  });
});
