/** Which addresses of an engine a site file may give; no engine is needed to tell. */
import { DockerEngine } from "@mortise/contracts";
import { expect, test } from "vitest";
import { engineAddress } from "../../dist/backend/docker/engine.js";

test.each(["tcp://engine:2376", "tcp://[::1]:65535", "tcp://10.0.0.1:1"])("%s is one", (host) => {
  const settings = DockerEngine.parse({ host, allowPlainTcp: true });
  expect(engineAddress(settings, {})).toMatchObject({ ok: true, kind: "remote" });
});

test.each([
  ["a port that is none", "tcp://engine:99999", "must name a port of at most 65535"],
  [
    "credentials, which an engine does not take",
    "tcp://user:word@engine:2376",
    "must be unix:///path or tcp",
  ],
  ["another protocol", "http://engine:2376", "must be unix:///path or tcp"],
  ["no port", "tcp://engine", "must be unix:///path or tcp"],
])("one with %s is refused by its field", (_, host, why) => {
  const [issue] = DockerEngine.safeParse({ host }).error!.issues;
  expect(issue).toMatchObject({ path: ["host"], message: expect.stringContaining(why) });
});
