/** Measures starts when many are asked for at once: how long each waits and how many a second there are. */
import { rounded } from "../proxy/statistics.js";
import { summary } from "./lifecycle.js";
import { NOTHING, run, type SandboxStand, timed } from "./stand.js";

export async function measureUnderLoad(stand: SandboxStand, sizes: readonly number[]): Promise<object> {
  const rows = [];
  await run(await stand.create(), NOTHING);
  for (const atOnce of sizes) {
    const all = await timed(() =>
      Promise.all(
        Array.from({ length: atOnce }, () =>
          timed(async () => {
            const sandbox = await stand.create();
            await run(sandbox, NOTHING);
            return sandbox;
          }),
        ),
      ),
    );
    await Promise.all(all.value.map(({ value }) => value.destroy()));
    rows.push({
      atOnce,
      startMs: summary(all.value.map(({ ms }) => ms)),
      startsPerSecond: rounded((1000 * atOnce) / all.ms),
    });
  }
  return { rows };
}
