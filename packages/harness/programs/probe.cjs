/**
 * Says what the place it runs in offers to native programs: its C library, and which of the paths, libraries and
 * programs named on the command line it has. Reads files and starts nothing.
 *
 * usage  node probe.cjs NAME…     a name with a slash is a path, one with .so a library, others are looked for on PATH
 * output {"musl": boolean, "glibc": "2.36" | null, "missing": [NAME…]}
 */
"use strict";
const fs = require("node:fs");
const path = require("node:path");

const directories = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"];
for (const triple of ["x86_64-linux-gnu", "aarch64-linux-gnu"])
  directories.push(`/lib/${triple}`, `/usr/lib/${triple}`);

/** What the loader looks a name up in when it is in none of its standard directories. */
const cache = fs.existsSync("/etc/ld.so.cache") ? fs.readFileSync("/etc/ld.so.cache", "latin1") : "";

function isThere(name) {
  if (name.includes("/")) return fs.existsSync(name);
  if (name.includes(".so"))
    return cache.includes(`/${name}\0`) || directories.some((at) => fs.existsSync(`${at}/${name}`));
  return (process.env.PATH ?? "").split(":").some((directory) => isProgram(path.join(directory, name)));
}

function isProgram(file) {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}

/** The version stands in the library, in the text it prints when it is run as a program. */
function glibcVersion() {
  for (const directory of directories) {
    const file = path.join(directory, "libc.so.6");
    if (!fs.existsSync(file)) continue;
    const [, version] = /GNU C Library [^\n]*version (\d+\.\d+)/.exec(fs.readFileSync(file, "latin1")) ?? [];
    if (version !== undefined) return version;
  }
  return null;
}

function hasMusl() {
  const names = fs.existsSync("/lib") ? fs.readdirSync("/lib") : [];
  return names.some((name) => /^ld-musl-.*\.so\.1$/.test(name));
}

process.stdout.write(
  `${JSON.stringify({
    musl: hasMusl(),
    glibc: glibcVersion(),
    missing: process.argv.slice(2).filter((name) => !isThere(name)),
  })}\n`,
);
