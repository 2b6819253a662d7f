/**
 * The trainer as a process, which may be told to die the moment a phase of a commit has ended:
 * MORTISE_TEST_DIE_AFTER=<phase>:<version>.
 */
import { runService } from "@mortise/kernel";
import { trainerService } from "@mortise/trainer";

const [phase, version] = (process.env.MORTISE_TEST_DIE_AFTER ?? "").split(":");

await runService(
  trainerService({
    onPhase: (ended, of) => {
      if (ended === phase && String(of) === version) process.kill(process.pid, "SIGKILL");
    },
  }),
);
