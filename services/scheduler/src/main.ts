/** Owns the process of a scheduler: one per run. */
import { runService } from "@mortise/kernel";
import { scheduler } from "./service.js";

await runService(scheduler);
