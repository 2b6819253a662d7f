/** Owns what passes between the proxy's own thread and those that render and look through bodies for it. */
import type { TokenizerFiles } from "@mortise/policy";
import type { RenderingPolicy } from "@mortise/rendering";
import type { RenderOutcome, RenderTask } from "./render-task.js";

/** What a renderer is made of; the same parts make the same renderer in every thread. */
export interface RendererSource {
  readonly files: TokenizerFiles;
  readonly eosIds: ReadonlySet<number>;
  readonly policy: RenderingPolicy;
}

/** What is wrong with a body, before anybody reads it. */
export type BodyFault = "no-json" | "too-deep" | "too-many-values";

export interface BodyLimits {
  readonly levels: number;
  readonly values: number;
}

export type ToRenderThread =
  /** Renders for the run from now on. */
  | { readonly kind: "run"; readonly run: string; readonly source: RendererSource }
  | { readonly kind: "forget"; readonly run: string }
  | { readonly kind: "render"; readonly run: string; readonly task: RenderTask }
  | { readonly kind: "body"; readonly bytes: Uint8Array; readonly limits: BodyLimits };

/** One answer to each `render` and `body`, in order. */
export type FromRenderThread =
  | { readonly kind: "rendered"; readonly outcome: RenderOutcome }
  | { readonly kind: "body"; readonly fault: BodyFault | undefined }
  | {
      readonly kind: "refused";
      readonly code: string;
      readonly message: string;
      readonly fix: string;
      readonly detail: Readonly<Record<string, unknown>>;
    };
