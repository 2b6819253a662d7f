/** Ways out of a sandbox that must not be there, for the agent and for its root. */
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Kit, text } from "./kit.js";

/** Since 424 numbers are the same everywhere. */
const NEWER = {
  io_uring_setup: 425,
  io_uring_enter: 426,
  io_uring_register: 427,
  open_tree: 428,
  move_mount: 429,
  fsopen: 430,
  fsconfig: 431,
  fsmount: 432,
  fspick: 433,
  clone3: 435,
  pidfd_getfd: 438,
  mount_setattr: 442,
  open_tree_attr: 467,
};

const NUMBERS = {
  x64: {
    ...NEWER,
    clone: 56,
    add_key: 248,
    request_key: 249,
    process_vm_readv: 310,
    process_vm_writev: 311,
    kcmp: 312,
    name_to_handle_at: 303,
    personality: 135,
    quotactl: 179,
    acct: 163,
    mount: 165,
    umount2: 166,
    unshare: 272,
    setns: 308,
    chroot: 161,
    pivot_root: 155,
    ptrace: 101,
    keyctl: 250,
    bpf: 321,
    socket: 41,
    setuid: 105,
    setgid: 106,
    init_module: 175,
    kexec_load: 246,
    open_by_handle_at: 304,
    perf_event_open: 298,
    userfaultfd: 323,
    settimeofday: 164,
    reboot: 169,
    swapon: 167,
    sethostname: 170,
    syslog: 103,
  },
  arm64: {
    ...NEWER,
    clone: 220,
    add_key: 217,
    request_key: 218,
    process_vm_readv: 270,
    process_vm_writev: 271,
    kcmp: 272,
    name_to_handle_at: 264,
    personality: 92,
    quotactl: 60,
    acct: 89,
    mount: 40,
    umount2: 39,
    unshare: 97,
    setns: 268,
    chroot: 51,
    pivot_root: 41,
    ptrace: 117,
    keyctl: 219,
    bpf: 280,
    socket: 198,
    setuid: 146,
    setgid: 144,
    init_module: 105,
    kexec_load: 104,
    open_by_handle_at: 265,
    perf_event_open: 241,
    userfaultfd: 282,
    settimeofday: 170,
    reboot: 142,
    swapon: 224,
    sethostname: 161,
    syslog: 116,
  },
};

/** Prints the names of what succeeded. A call that fails for another reason than permission was let through. */
const MATRIX = `
const koffi = require("/opt/calls/node_modules/koffi"); const fs = require("node:fs");
const numbers = ${JSON.stringify(NUMBERS)}[process.arch];
const call = koffi.load(null).func("long syscall(long, long, long, long, long, long)");
const codes = Object.fromEntries(Object.entries(require("os").constants.errno).map(([name, n]) => [n, name]));
const REFUSED = ["EPERM", "EACCES", "ENOSYS", "EROFS", "ENOENT", "ENXIO", "EAFNOSUPPORT"];
const open = [];
const attempt = (name, label, ...a) => {
  const result = call(numbers[name], ...a, ...Array(5 - a.length).fill(0));
  if (name === "clone" && result === 0) process.exit(3);
  const code = result >= 0 ? "succeeded" : codes[koffi.errno()];
  if (!REFUSED.includes(code)) open.push(label + ": " + code);
};
for (const name of ["umount2", "pivot_root", "chroot", "mount"]) attempt(name, name);
for (const [flag, label] of [[0x10000000, "user"], [0x20000, "mount"], [0x40000000, "net"], [0x2000000, "cgroup"],
  [0x20000000, "pid"], [0x8000000, "ipc"], [0x4000000, "uts"], [0x80, "time"]]) {
  attempt("unshare", "unshare " + label, flag);
  // With SIGCHLD, as fork has it; should a child come of it, it ends here. The flag of "time" is a signal to clone.
  if (label !== "time") attempt("clone", "clone " + label, flag | 17);
}
for (const name of ["clone3", "io_uring_enter", "io_uring_register", "open_tree", "move_mount", "fsconfig", "fsmount",
  "fspick", "mount_setattr", "pidfd_getfd", "add_key", "request_key", "process_vm_readv", "process_vm_writev", "kcmp",
  "name_to_handle_at", "personality", "quotactl", "acct"]) attempt(name, name);
// Too new for filters to know by name: what it needs is not there.
const cloned = koffi.load(null).func("long syscall(long, long, const char*, long, void*, long)")
  (numbers.open_tree_attr, -100, "/", 1, Buffer.alloc(32), 32);
if (cloned >= 0 || !REFUSED.includes(codes[koffi.errno()])) open.push("open_tree_attr: " + codes[koffi.errno()]);
attempt("setns", "setns", 0, 0x40000000);
const mknod = koffi.load(null).func("int mknod(const char*, uint32_t, uint64_t)");
for (const [kind, label] of [[0o020666, "character"], [0o060666, "block"]])
  if (mknod("/tmp/" + label, kind, 0x103) === 0 || codes[koffi.errno()] !== "EPERM") open.push("mknod " + label);
attempt("ptrace", "ptrace attach", 16, 1);
attempt("keyctl", "keyctl", 0, -3, 1);
attempt("bpf", "bpf");
attempt("socket", "socket packet", 17, 3, 0x300);
attempt("socket", "socket vsock", 40, 1, 0);
attempt("socket", "socket raw", 2, 3, 1);
attempt("socket", "socket of netlink for audit", 16, 3, 9);
attempt("socket", "socket of netlink for device events", 16, 3, 15);
attempt("socket", "socket of netlink for generic families", 16, 3, 16);
for (const [family, label] of [[4, "ipx"], [5, "appletalk"], [9, "x25"]]) attempt("socket", "socket " + label, family, 2, 0);
if (require("os").networkInterfaces().lo === undefined) open.push("addresses cannot be listed");
if (process.getuid() !== 0) { attempt("setuid", "setuid 0", 0); attempt("setgid", "setgid 0", 0); }
else attempt("setuid", "setuid of another", 1234);
for (const name of ["init_module", "kexec_load", "open_by_handle_at", "perf_event_open", "io_uring_setup", "userfaultfd",
  "settimeofday", "swapon", "sethostname", "syslog", "reboot", "fsopen"]) attempt(name, name, name === "syslog" ? 3 : 0);
const touch = (label, fn) => { try { fn(); open.push(label + ": succeeded"); } catch (error) {
  if (!REFUSED.includes(error.code)) open.push(label + ": " + error.code); } };
const write = (file, content) => touch("write " + file, () => fs.writeFileSync(file, content));
write("/proc/sys/kernel/core_pattern", "|/tmp/x");
write("/proc/sys/kernel/hostname", "x");
write("/proc/sys/vm/drop_caches", "3");
write("/proc/sysrq-trigger", "h");
write("/proc/1/oom_score_adj", "-1000");
write("/sys/fs/cgroup/cgroup.procs", "1");
write("/sys/kernel/uevent_helper", "/tmp/x");
for (const file of ["/proc/kcore", "/proc/keys", "/proc/kpagecount", "/proc/timer_list"])
  touch("read " + file, () => { if (fs.readFileSync(file).length === 0) throw Object.assign(new Error(), { code: "ENOENT" }); });
for (const device of ["mem", "kmsg", "sda", "vda", "loop-control", "fuse", "kvm"])
  touch("open /dev/" + device, () => fs.openSync("/dev/" + device, "r"));
touch("another process", () => { const others = fs.readdirSync("/proc").filter((n) => /^[0-9]+$/.test(n)).filter((n) =>
  !fs.readFileSync("/proc/" + n + "/cmdline").toString().match(/node|sleep|pod-helper/)); if (others.length === 0)
  throw Object.assign(new Error(), { code: "ENOENT" }); });
console.log(JSON.stringify(open));`;

export function describeConfinement(kit: Kit): void {
  describe.skipIf(!kit.can.isolation)("confinement", () => {
    let calls: string;
    beforeAll(() => {
      calls = mkdtempSync(path.join(tmpdir(), "mortise-calls-"));
      foreignCalls(calls);
    });
    afterAll(() => rmSync(calls, { recursive: true, force: true }));

    test.each(["agent", "root"] as const)("%s finds no way around it", async (user) => {
      const sandbox = await kit.create({ mounts: [{ source: calls, target: "/opt/calls" }] });
      const result = await kit.run(sandbox, ["node", "-e", MATRIX], { user });
      expect(text(result.stderr.bytes)).toBe("");
      const open = JSON.parse(text(result.stdout.bytes)) as string[];
      expect(open.filter((one) => !kit.can.leaves?.includes(one))).toEqual([]);
    });

    test.each([
      ["agent", 1000],
      ["root", 0],
    ] as const)("%s has no capability, no new privilege and filtered system calls", async (user, uid) => {
      const status = await kit.output(await kit.create(), "cat /proc/self/status; id -u", { user });
      for (const set of ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"])
        expect(status).toMatch(new RegExp(`${set}:\\s0+\\n`));
      expect(status).toMatch(/NoNewPrivs:\s1\n[\s\S]*Seccomp:\s2\n/);
      expect(status.endsWith(`\n${uid}\n`)).toBe(true);
    });

    test("the agent changes no program and no account", async () => {
      const denied = await kit.sh(await kit.create(), "echo x > /usr/bin/node; echo x > /etc/passwd");
      expect(text(denied.stderr.bytes).trim().split("\n")).toHaveLength(2);
    });
  });
}

/** The foreign-function library the manager itself uses, in a directory a sandbox can mount. */
function foreignCalls(into: string): void {
  // Read by the sandbox's user.
  chmodSync(into, 0o755);
  const target = path.join(into, "node_modules");
  const koffi = path.dirname(createRequire(import.meta.url).resolve("koffi"));
  mkdirSync(path.join(target, "@koromix"), { recursive: true });
  cpSync(koffi, path.join(target, "koffi"), { recursive: true });
  const native = path.join(koffi, "..", "@koromix");
  for (const name of readdirSync(native))
    cpSync(realpathSync(path.join(native, name)), path.join(target, "@koromix", name), { recursive: true });
}
