/** Owns the process of an archiver. */
import { runService } from "@mortise/kernel";
import { archiver } from "./service.js";

await runService(archiver);
