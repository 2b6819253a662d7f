/** Owns the process of a sandbox-manager: one or more per deployment, each with a state directory of its own. */
import { runService } from "@mortise/kernel";
import { sandboxManager } from "./service.js";

await runService(sandboxManager);
