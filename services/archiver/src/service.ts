/**
 * Owns the wiring of the archiver: follows the streams from its own position, keeps rows and contents, commits.
 * Sits in nobody's path: training does not wait for it; retention does (the acknowledged position).
 */
import { join } from "node:path";
import { MortiseError } from "@mortise/contracts";
import {
  type Following,
  type Running,
  retry,
  type ServiceContext,
  type ServiceDefinition,
} from "@mortise/kernel";
import { BlobStore } from "./archive/blobs.js";
import type { Position } from "./archive/position.js";
import { ArchiveWriter } from "./archive/writer.js";
import { ArchiverMetrics } from "./archiver-metrics.js";
import { SOURCES, type Source, TABLES } from "./tables/sources.js";

export const archiver: ServiceDefinition = { name: "archiver", needsRun: false, start };

/** Longest a stored message waits for its commit. */
const COMMIT_INTERVAL_MS = 30_000;
const RETRY = { baseMs: 500, maxMs: 10_000 };

async function start(ctx: ServiceContext): Promise<Running> {
  const { archiver: settings, state } = ctx.site;
  const directory = settings.directory ?? join(state.directory, "archive");
  const writer = await ArchiveWriter.open(directory, TABLES);
  const metrics = new ArchiverMetrics(ctx.metrics, () => writer.position);
  const objects = await ctx.bus.objects("blobs");
  const { log, signal } = ctx;
  const blobs = new BlobStore({ directory, objects, log, signal, onMissing: () => metrics.blobMissing() });
  const commit = async (): Promise<void> => {
    await writer.commit();
    await ctx.amendPresence(factsOf(directory, writer.position));
  };
  const archive = { ctx, writer, blobs, metrics, commit, rowsPerCommit: settings.rowsPerFile };
  const followings: Following[] = [];
  for (const source of SOURCES) followings.push(await follow(archive, source));
  let isCaughtUp = false;
  void Promise.all(followings.map(({ caughtUp }) => caughtUp)).then(() => {
    isCaughtUp = true;
  });
  const stopTimer = commitRegularly(ctx, commit);
  return {
    // Ready when what was stored at the start has been taken.
    isReady: () => isCaughtUp,
    presence: factsOf(directory, writer.position),
    drain: async () => {
      stopTimer();
      await Promise.all(followings.map((following) => following.stop()));
      await commit();
    },
  };
}

interface Archive {
  readonly ctx: ServiceContext;
  readonly writer: ArchiveWriter;
  readonly blobs: BlobStore;
  readonly metrics: ArchiverMetrics;
  readonly commit: () => Promise<void>;
  readonly rowsPerCommit: number;
}

async function follow({ ctx, writer, blobs, metrics, commit, rowsPerCommit }: Archive, source: Source) {
  const { stream, filter, schema } = source;
  const sequence = await beginAt(ctx, writer, stream);
  return ctx.bus.follow({
    stream,
    filters: [filter],
    from: { sequence: sequence + 1 },
    schema,
    onMessage: async (message, meta) => {
      const placed = source.place(message, BigInt(meta.sequence));
      if (placed === undefined) {
        writer.add(stream, meta.sequence);
        return;
      }
      for (const content of placed.contents) await blobs.keep(placed.run, content);
      for (const object of placed.objects) await blobs.keepObject(placed.run, object);
      writer.add(stream, meta.sequence, placed.run, placed.row);
      metrics.row(placed.row.table.name);
      // Waiting here holds this stream back while the disk is slow or full, instead of filling the memory.
      if (writer.nRows >= rowsPerCommit) await untilCommitted(commit, ctx);
    },
  });
}

/** Where a stream goes on. Throws MORTISE_OPERATOR_ARCHIVE when the directory belongs to another server's stream. */
async function beginAt({ bus, log }: ServiceContext, writer: ArchiveWriter, stream: string): Promise<number> {
  const info = await bus.manager.streams.info(stream);
  const created = String(info.created);
  const known = writer.position.streams[stream];
  if (known !== undefined && known.created !== created) {
    throw new MortiseError({
      code: "MORTISE_OPERATOR_ARCHIVE",
      message: `its position in ${stream} is of a stream created at ${known.created}, this one was created at ${created}.`,
      detail: { field: "archiver.directory", stream },
    });
  }
  const sequence = known?.sequence ?? 0;
  const lost = info.state.first_seq - 1 - sequence;
  if (known !== undefined && lost > 0) log.error({ event: "archive.gap", stream, from: sequence + 1, lost });
  writer.begin(stream, { sequence, created });
  return sequence;
}

/** Tries until a commit succeeds or the process stops; every failure is logged. */
async function untilCommitted(
  commit: () => Promise<void>,
  { clock, log, signal }: ServiceContext,
): Promise<void> {
  const attempt = () =>
    commit().catch((error: unknown) => {
      log.error({ event: "archive.not-committed", err: error });
      throw error;
    });
  await retry(attempt, { attempts: Infinity, ...RETRY, clock, signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}

function commitRegularly(ctx: ServiceContext, commit: () => Promise<void>): () => void {
  let isStopped = false;
  const next = (): (() => void) =>
    ctx.clock.after(COMMIT_INTERVAL_MS, async () => {
      await untilCommitted(commit, ctx);
      if (!isStopped) cancel = next();
    });
  let cancel = next();
  return () => {
    isStopped = true;
    cancel();
  };
}

/** What the retention gate reads: nothing above these sequences is archived yet. */
function factsOf(directory: string, { streams }: Position): Record<string, string> {
  const positions = Object.entries(streams).map(([stream, { sequence }]) => [
    `position.${stream}`,
    `${sequence}`,
  ]);
  return { directory, ...Object.fromEntries(positions) };
}
