/**
 * Owns a thread that does for the proxy what takes long: rendering and tokenising much that is new, and looking
 * through large bodies. One thing after the other; it keeps nothing but renderers.
 */
import { parentPort } from "node:worker_threads";
import { fromUnknown } from "@mortise/kernel";
import { ChatTemplate, Tokenizer } from "@mortise/policy";
import { Renderer } from "@mortise/rendering";
import { bodyFault } from "./body-faults.js";
import { renderTask } from "./render-task.js";
import type { BodyFault, FromRenderThread, RendererSource, ToRenderThread } from "./worker-messages.js";

const port = parentPort!;
const sources = new Map<string, RendererSource>();
const renderers = new Map<string, Renderer>();

port.on("message", (message: ToRenderThread) => {
  switch (message.kind) {
    case "run":
      sources.set(message.run, message.source);
      return;
    case "forget":
      sources.delete(message.run);
      renderers.delete(message.run);
      return;
    case "body":
      port.postMessage({
        kind: "body",
        fault: faultOf(message.bytes, message.limits),
      } satisfies FromRenderThread);
      return;
    case "render":
      answer(() => renderTask(rendererOf(message.run), message.task));
  }
});

function answer(render: () => ReturnType<typeof renderTask>): void {
  try {
    port.postMessage({ kind: "rendered", outcome: render() } satisfies FromRenderThread);
  } catch (error) {
    const { code, message, fix, detail } = fromUnknown(error, "MORTISE_TRANSPORT_INTERNAL");
    port.postMessage({ kind: "refused", code, message, fix, detail } satisfies FromRenderThread);
  }
}

function rendererOf(run: string): Renderer {
  const known = renderers.get(run);
  if (known) return known;
  const { files, eosIds, policy } = sources.get(run)!;
  const renderer = new Renderer({
    chatTemplate: new ChatTemplate(files),
    tokenizer: new Tokenizer(files),
    eosIds,
    policy,
  });
  renderers.set(run, renderer);
  return renderer;
}

function faultOf(bytes: Uint8Array, limits: Parameters<typeof bodyFault>[1]): BodyFault | undefined {
  try {
    return bodyFault(
      JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString()),
      limits,
    );
  } catch {
    return "no-json";
  }
}
