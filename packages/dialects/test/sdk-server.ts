/** Owns an HTTP server that answers every request by a dialect, for the vendors' own clients. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { ReplyEnd, ReplyPart } from "@mortise/capture";
import { type ErrorCode, MortiseError } from "@mortise/contracts";
import type { Dialect } from "../src/index.js";
import { END, HEAD } from "./reply-kit.js";

export type Answer =
  | { readonly parts: readonly ReplyPart[]; readonly end?: ReplyEnd }
  /** Refused before the reply. */
  | { readonly refusal: ErrorCode }
  /** Failed within the stream, behind these parts. */
  | { readonly fault: readonly ReplyPart[] };

export class SdkServer {
  /** What the next requests get; the last for all that follow. */
  answers: Answer[] = [];
  requests = 0;
  private readonly server: Server;

  private constructor(dialect: Dialect) {
    this.server = createServer(async (incoming, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of incoming) chunks.push(chunk as Buffer);
      const answer = this.answers[Math.min(this.requests++, this.answers.length - 1)]!;
      const request = dialect.read(JSON.parse(Buffer.concat(chunks).toString()));
      const writer = dialect.writer(HEAD, request);
      if ("refusal" in answer) {
        const { status, headers, body } = dialect.refuse(failure(answer.refusal), "req_1");
        response.writeHead(status, { ...headers, "content-type": "application/json" }).end(body);
      } else if ("parts" in answer && !request.isStream) {
        response.writeHead(200, { "content-type": "application/json" });
        response.end(writer.whole(answer.parts, answer.end ?? END));
      } else {
        response.writeHead(200, { "content-type": "text/event-stream" }).write(writer.opening(0));
        const parts = "parts" in answer ? answer.parts : answer.fault;
        for (const part of parts) response.write(writer.parts([part]) + writer.keepAlive());
        const isFault = "fault" in answer;
        response.end(isFault ? writer.failing(failure()) : writer.ending(answer.end ?? END));
      }
    });
  }

  static async start(dialect: Dialect): Promise<SdkServer> {
    const started = new SdkServer(dialect);
    await new Promise<void>((resolve) => started.server.listen(0, "127.0.0.1", resolve));
    return started;
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/v1`;
  }

  play(...answers: Answer[]): void {
    this.answers = answers;
    this.requests = 0;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

function failure(code: ErrorCode = "MORTISE_PROVIDER_ENGINE"): MortiseError {
  return new MortiseError({ code, message: "m.", detail: { tokens: 9, limit: 8 } });
}
