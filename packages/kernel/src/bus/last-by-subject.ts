/**
 * Owns one request for the last message of every subject under a filter. The client library's version keeps a
 * subscription for each request it made.
 */

import { MortiseError } from "@mortise/contracts";
import { createInbox, type MsgHdrs, type NatsConnection } from "@nats-io/nats-core";

export interface LastMessage {
  readonly subject: string;
  readonly sequence: number;
  readonly bytes: Uint8Array;
  readonly headers: MsgHdrs | undefined;
}

const TIMEOUT_MS = 5_000;
const END_OF_BATCH = 204;
const NO_RESULTS = 404;

/** Rejects with MORTISE_TRANSPORT_UNAVAILABLE when the server does not answer or has more than 1024 subjects. */
export function lastBySubject(
  connection: NatsConnection,
  stream: string,
  filter: string,
  prefix: string,
): Promise<LastMessage[]> {
  const found: LastMessage[] = [];
  const inbox = createInbox(prefix);
  return new Promise<LastMessage[]>((resolve, reject) => {
    const fail = (reason: string) => {
      done();
      reject(
        new MortiseError({
          code: "MORTISE_TRANSPORT_UNAVAILABLE",
          message: `${stream} ${filter}: ${reason}`,
        }),
      );
    };
    const timer = setTimeout(() => fail("no answer"), TIMEOUT_MS);
    const subscription = connection.subscribe(inbox, {
      callback: (error, message) => {
        if (error !== null) return fail(error.message);
        const code = message.headers?.code ?? 0;
        if (code === 0) {
          const headers = message.headers;
          const subject = headers?.get("Nats-Subject") ?? "";
          found.push({
            subject,
            sequence: Number(headers?.get("Nats-Sequence")),
            bytes: message.data,
            headers,
          });
        } else if (code === END_OF_BATCH || code === NO_RESULTS) {
          done();
          resolve(found);
        } else {
          fail(`${code} ${message.headers?.description}`);
        }
      },
    });
    const done = () => {
      clearTimeout(timer);
      subscription.unsubscribe();
    };
    connection.publish(`$JS.API.DIRECT.GET.${stream}`, JSON.stringify({ multi_last: [filter] }), {
      reply: inbox,
    });
  });
}
