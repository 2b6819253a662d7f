/**
 * Owns cutting a shell script into its simple commands: words with their quotes removed, and the files its output is
 * redirected to. One pass, any text; expansions stay as written. What the words mean is shell-command.ts's.
 */

export interface SimpleCommand {
  readonly words: readonly string[];
  /** Targets of > and >> of standard output, and of &>. */
  readonly redirected: readonly string[];
}

/** Separated by ; | & && || ( ) backquotes and line ends outside quotes; commands without words and targets left out. */
export function simpleCommands(script: string): SimpleCommand[] {
  const cutter = new Cutter();
  for (let at = 0; at < script.length; at++) {
    const char = script[at]!;
    const next = script[at + 1];
    if (char === "'" || char === '"') {
      const end = closingQuote(script, at);
      cutter.say(char === "'" ? script.slice(at + 1, end) : unescaped(script.slice(at + 1, end)));
      at = end;
    } else if (char === "\\") {
      if (next !== undefined && next !== "\n") cutter.say(next);
      at++;
    } else if (char === "&" && next === ">") {
      at += cutter.redirect(script, at + 1) + 1;
    } else if (char === ">") {
      at += cutter.redirect(script, at);
    } else if (char === "<") {
      cutter.read();
    } else if (char === "#" && !cutter.isInWord) {
      const end = script.indexOf("\n", at);
      at = (end < 0 ? script.length : end) - 1;
    } else if (/[\n;|&()`]/.test(char)) cutter.endCommand();
    else if (/\s/.test(char)) cutter.endWord();
    else cutter.say(char);
  }
  return cutter.end();
}

class Cutter {
  private readonly commands: { words: string[]; redirected: string[] }[] = [{ words: [], redirected: [] }];
  private word: string | undefined;
  private awaits: "output" | "ignored" | undefined;

  get isInWord(): boolean {
    return this.word !== undefined;
  }

  say(text: string): void {
    this.word = (this.word ?? "") + text;
  }

  /** A > stands at `at`. @returns how many more characters belong to the operator */
  redirect(script: string, at: number): number {
    const isError = this.word === "2";
    if (/^\d$/.test(this.word ?? "")) this.word = undefined;
    this.endWord();
    const length = /^>[>|]?/.exec(script.slice(at, at + 2))![0].length;
    const isDuplicate = script[at + length] === "&";
    this.awaits = isError || isDuplicate ? "ignored" : "output";
    return length - 1 + Number(isDuplicate);
  }

  read(): void {
    this.endWord();
    this.awaits = "ignored";
  }

  endWord(): void {
    if (this.word === undefined) return;
    const command = this.commands.at(-1)!;
    if (this.awaits === undefined) command.words.push(this.word);
    else if (this.awaits === "output") command.redirected.push(this.word);
    this.awaits = undefined;
    this.word = undefined;
  }

  endCommand(): void {
    this.endWord();
    this.awaits = undefined;
    const { words, redirected } = this.commands.at(-1)!;
    if (words.length + redirected.length > 0) this.commands.push({ words: [], redirected: [] });
  }

  end(): SimpleCommand[] {
    this.endCommand();
    return this.commands.slice(0, -1);
  }
}

/** Of the quote that opens at `at`; the end of the text when it is never closed. */
function closingQuote(script: string, at: number): number {
  const quote = script[at]!;
  for (let end = at + 1; end < script.length; end++) {
    if (script[end] === quote) return end;
    if (quote === '"' && script[end] === "\\") end++;
  }
  return script.length;
}

function unescaped(text: string): string {
  return text.replace(/\\(["\\$`\n])/g, "$1");
}
