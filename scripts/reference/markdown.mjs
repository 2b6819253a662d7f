/** Owns the few pieces of Markdown the reference pages share. */

/** A table; `|` and line breaks in cells are escaped. */
export function table(headings, rows) {
  const cell = (value) => String(value).replaceAll("|", "\\|").replaceAll("\n", " ");
  const line = (cells) => `| ${cells.map(cell).join(" | ")} |`;
  return [line(headings), line(headings.map(() => "---")), ...rows.map(line)].join("\n");
}

export const code = (text) => `\`${text}\``;

/** A whole page: every one says what it was generated from, so that nobody edits it by hand. */
export function page(title, source, sections) {
  const notice = `<!-- Generated from ${source} by scripts/generate-docs.mjs. Do not edit. -->`;
  return `${[`# ${title}`, notice, ...sections].join("\n\n")}\n`;
}

/** 8589934592 → "8 GiB". */
export function bytes(count) {
  for (const [unit, size] of [
    ["GiB", 1024 ** 3],
    ["MiB", 1024 ** 2],
    ["KiB", 1024],
  ]) {
    if (count >= size) return `${count / size} ${unit}`;
  }
  return `${count} B`;
}

export const seconds = (ms) => `${ms / 1000} s`;
