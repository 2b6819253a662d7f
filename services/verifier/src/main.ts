import { runService } from "@mortise/kernel";
import { verifier } from "./service.js";

await runService(verifier);
