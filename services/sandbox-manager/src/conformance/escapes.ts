/**
 * Ways out of a sandbox that go over files, descriptors and neighbours: what the kernel and the other sandboxes of the
 * host leave within reach. System calls are confinement.ts.
 */
import { readFileSync, rmSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { ENVIRONMENT, type Kit, readBelow, tarOf, text } from "./kit.js";
import { SMALL_LAYERS, savedImage } from "./saved-image.js";
import { file } from "./tar-builder.js";

/** Prints every file below the given places that can be opened for writing. Nothing is written. */
const WRITABLE = `const fs = require("node:fs"); const found = [];
  const walk = (place) => { let names; try { names = fs.readdirSync(place, { withFileTypes: true }); } catch { return; }
    for (const entry of names) { const file = place + "/" + entry.name;
      if (entry.isDirectory()) { if (!new RegExp("^/proc/([0-9]+|self|thread-self)$").test(file)) walk(file); continue; }
      // What is masked is the null device.
      try { if (!fs.statSync(file).isFile()) continue; fs.closeSync(fs.openSync(file, "r+")); found.push(file); } catch {}
    } };
  for (const place of ["/proc", "/sys"]) walk(place);
  console.log(JSON.stringify(found));`;

/** Prints kind and number of every device there is, wherever it lies. */
const DEVICES = `const fs = require("node:fs"); const found = [];
  const walk = (place) => { let names; try { names = fs.readdirSync(place || "/", { withFileTypes: true }); } catch { return; }
    for (const entry of names) { const file = place + "/" + entry.name;
      if (entry.isDirectory()) { if (!["/proc", "/sys"].includes(file)) walk(file); continue; }
      if (!entry.isCharacterDevice() && !entry.isBlockDevice()) continue;
      const { rdev } = fs.statSync(file);
      found.push((entry.isBlockDevice() ? "b " : "c ") + (rdev >> 8 & 0xfff) + ":" + (rdev & 0xff));
    } };
  walk(""); console.log(JSON.stringify([...new Set(found)].sort()));`;
/** null, zero, full, random, urandom; tty, console and ptmx of the sandbox's own devpts, and its ends. */
const HARMLESS_DEVICE = /^c (1:[35789]|5:[012]|136:\d+)$/;

/** Prints what each descriptor leads to that a program finds open at its start; 0, 1 and 2 are its own. */
const DESCRIPTORS = `for one in /proc/self/fd/*; do n=$(basename "$one"); [ "$n" -gt 2 ] && readlink "$one"; done; true`;

/** As the kernel keeps them of a file (vfs_cap_data, revision 2): every capability, and effective at once. */
const ALL_CAPABILITIES = Buffer.from("01000002ffffffff00000000ff01000000000000", "hex");

export function describeEscapes(kit: Kit): void {
  describe.skipIf(!kit.can.isolation)("out of a sandbox", () => {
    test.each(["agent", "root"] as const)("%s finds nothing of the kernel to write to", async (user) => {
      const result = await kit.run(await kit.create(), ["node", "-e", WRITABLE], { user });
      const writable = JSON.parse(text(result.stdout.bytes)) as string[];
      expect(writable.filter((one) => !kit.can.leaves?.includes(one))).toEqual([]);
    });

    test("there is no device but the harmless ones", async () => {
      const result = await kit.run(await kit.create(), ["node", "-e", DEVICES], { user: "root" });
      const devices = JSON.parse(text(result.stdout.bytes)) as string[];
      expect(devices.filter((device) => !HARMLESS_DEVICE.test(device))).toEqual([]);
      expect(devices).toContain("c 1:3");
    });

    test.each(["agent", "root"] as const)("no descriptor of the manager is open to %s", async (user) => {
      const network = { kind: "model", host: "127.0.0.1", port: 9 } as const;
      const sandbox = await kit.create({ network });
      // The shell's own look at the directory is the one that is gone by the time it is read.
      expect(await kit.output(sandbox, DESCRIPTORS, { user })).toBe("");
      const first = await kit.output(
        sandbox,
        "ls -l /proc/1/fd 2>&1 | grep -- '->' | grep -v ' [012] ->'; true",
        { user },
      );
      expect(
        first.split("\n").filter((line) => !/ -> (\/dev\/null|\/proc\/\d+\/fd|pipe:\[\d+\])$/.test(line)),
      ).toEqual([""]);
    });

    test("a setuid program makes nobody root", async () => {
      const sandbox = await kit.create();
      await kit.output(sandbox, "cp /usr/bin/id /tmp/id && chmod 6755 /tmp/id && ls -ln /tmp/id", {
        user: "root",
      });
      expect(await kit.output(sandbox, "test -u /tmp/id && /tmp/id -u && /tmp/id -ru && /tmp/id -g")).toBe(
        "1000\n1000\n1000\n",
      );
    });

    test.skipIf(!kit.can.images)("privileges an image gives its programs are nobody's", async () => {
      const program = (name: string) => readFileSync(`/usr/bin/${name}`) as unknown as string;
      const path = await savedImage([
        ...SMALL_LAYERS,
        [
          file("srv/setuid", program("id"), { mode: 0o6755 }),
          file("srv/capable", program("cat"), {
            mode: 0o755,
            pax: [["SCHILY.xattr.security.capability", ALL_CAPABILITIES]],
          }),
        ],
      ]);
      const image = await kit.backend.prepareImage({ kind: "local", path }).finally(() => rmSync(path));
      const workdir = "/srv/testbed";
      const workspace = await kit.backend.readTree(image, workdir);
      const sandbox = await kit.create({ image, workspace, workdir });
      const environment = {};
      const ids = "test -u /srv/setuid && /srv/setuid -u && /srv/setuid -g";
      expect(await kit.output(sandbox, ids, { environment })).toBe("1000\n1000\n");
      for (const user of ["agent", "root"] as const) {
        // The kernel does not start it, or, where the root is mounted so, starts it as any other.
        const started = await kit.output(sandbox, "/srv/capable /proc/self/status 2>&1; true", {
          environment,
          user,
        });
        expect(started).toMatch(/^CapPrm:\s0+\nCapEff:\s0+$|Operation not permitted$/m);
      }
    });

    test("root changes programs for its own sandbox, not for the next one and not for the host", async () => {
      const before = readFileSync(process.execPath).subarray(0, 64);
      const [spoiled, next] = [await kit.create(), await kit.create()];
      await kit.output(spoiled, "for n in node cat; do rm -f /usr/bin/$n; echo spoiled > /usr/bin/$n; done", {
        user: "root",
      });
      expect((await kit.sh(spoiled, "node --version")).outcome).not.toEqual({ kind: "exited", code: 0 });
      expect(await kit.output(next, "node -p '1 + 1' && echo x | cat")).toBe("2\nx\n");
      expect(await kit.output(await kit.create(), "node -p '1 + 1'")).toBe("2\n");
      expect(readFileSync(process.execPath).subarray(0, 64)).toEqual(before);
    });

    test("the files of another sandbox are nowhere, by whatever path the host has them", async () => {
      const [own, other] = [await kit.create(), await kit.create()];
      await other.putTar("/workspace", await tarOf("secret", "of the other\n"));
      const places = hostPlacesOf(other.hostRoot);
      const script = `const fs = require("node:fs"); const reached = [];
        for (const root of ["", "/proc/1/root", "/proc/self/root", "/proc/self/cwd/.."])
          for (const place of ${JSON.stringify(places)})
            for (const file of [place, place + "/workspace/secret"]) {
              try { fs.statSync(root + file); reached.push(root + file); } catch {}
              try { fs.writeFileSync(root + file + "/planted", "x"); reached.push("wrote " + root + file); } catch {}
            }
        console.log(JSON.stringify(reached));`;
      const result = await kit.run(own, ["node", "-e", script], { user: "root" });
      expect(JSON.parse(text(result.stdout.bytes))).toEqual([]);
      expect(await readBelow(other, "/workspace", "secret")).toBe("of the other\n");
      expect(await kit.output(other, "ls /workspace | grep planted; true")).toBe("");
    });

    test("signals to everybody reach nobody else's processes", async () => {
      const [own, other] = [await kit.create(), await kit.create()];
      const survived = kit.sh(other, "sleep 1; echo survived");
      await kit.run(own, ["node", "-e", "try { process.kill(-1, 'SIGKILL') } catch {}"], {
        user: "root",
        environment: ENVIRONMENT,
      });
      expect(text((await survived).stdout.bytes)).toBe("survived\n");
    });
  });
}

/** Where the host has a sandbox's files: its root, and the directories its overlay is made of. */
function hostPlacesOf(hostRoot: string | undefined): string[] {
  if (hostRoot === undefined) return [];
  const line = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .find((one) => one.split(" ")[4] === hostRoot);
  const directories = [...(line ?? "").matchAll(/(?:upperdir|workdir)=([^,\s]+)/g)].map(
    ([, place]) => place!,
  );
  return [hostRoot, ...directories];
}
