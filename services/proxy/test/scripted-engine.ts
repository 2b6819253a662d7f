/** The scripted engine, keeping every request it was given: for tests that look at what reached the engine. */
import { ScriptedEngine as PlayingEngine } from "../src/engine/scripted/scripted-engine.js";
import type { Generated, GenerateRequest } from "../src/engine/types.js";

export type { ScriptedReply } from "../src/engine/scripted/scripted-engine.js";

export class ScriptedEngine extends PlayingEngine {
  readonly requests: GenerateRequest[] = [];

  override generate(request: GenerateRequest): Promise<Generated> {
    this.requests.push(request);
    return super.generate(request);
  }
}
