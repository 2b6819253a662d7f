/** The trainer process: `main.js --site FILE --run FILE`. */
import { runService } from "@mortise/kernel";
import { trainerService } from "./service.js";

await runService(trainerService());
