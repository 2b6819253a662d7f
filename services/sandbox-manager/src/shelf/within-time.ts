/** Owns waiting for something no longer than a stage may take. What is waited for goes on; who began it sees to its end. */
import { MortiseError } from "@mortise/contracts";
import type { Clock } from "@mortise/kernel";

/** Rejects with MORTISE_SANDBOX_STAGE_TIMEOUT that names `limit` when the work takes longer than `ms`. */
export async function withinTime<T>(clock: Clock, ms: number, limit: string, work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const cancel = clock.after(Math.max(0, ms), () =>
    late.reject(
      new MortiseError({
        code: "MORTISE_SANDBOX_STAGE_TIMEOUT",
        message: `${limit}: not done after ${Math.round(ms)} ms.`,
      }),
    ),
  );
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    cancel();
  }
}
