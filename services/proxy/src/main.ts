/** Owns the process of the proxy. */
import { runService } from "@mortise/kernel";
import { proxyService } from "./service.js";

await runService(proxyService);
