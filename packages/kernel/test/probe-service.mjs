/** A service for service.test.ts, run as its own process on the built package. */
import { MortiseError, SandboxService } from "@mortise/contracts";
import { implement, runService, stageCpu } from "../dist/index.js";

const answerNothing = async () => ({});

await runService({
  name: "verifier",
  needsRun: process.env.PROBE_NEEDS_RUN === "1",
  async start(context) {
    stageCpu.add("probe", 12);
    if (process.env.PROBE_REFUSES !== undefined)
      throw new MortiseError({ code: process.env.PROBE_REFUSES, message: "as told" });
    if (process.env.PROBE_WAITS === "1") {
      context.log.info({ event: "probe.waiting" });
      await new Promise((_, reject) =>
        context.signal.addEventListener("abort", () => reject(context.signal.reason)),
      );
    }
    const { site, run, log, signal } = context;
    return {
      presence: { colour: "blue" },
      computeCpuMs: () => 5,
      bindings: [
        implement(SandboxService, {
          async getSandboxStatus() {
            return { backend: `${site.verifier.concurrency} ${run?.run.id}`, insecure: false };
          },
          async cancelTrial() {
            context.fail(new Error("told to fail"));
            return {};
          },
          startAgent: answerNothing,
          runOnce: answerNothing,
        }),
      ],
      async drain() {
        await new Promise((resolve) => setTimeout(resolve, 200));
        log.info({ event: "probe.drained", isAborted: signal.aborted });
      },
    };
  },
});
