#!/usr/bin/env node
/**
 * Prints the system-call filter of runc and Docker sandboxes as the profile a kubelet reads: a file below `seccomp/` of
 * its root directory on every node, named by sandbox.kubernetes.seccomp.
 */
import { seccompProfile } from "../../services/sandbox-manager/dist/backend/runc/seccomp.js";

process.stdout.write(`${JSON.stringify(seccompProfile(process.arch), undefined, 1)}\n`);
