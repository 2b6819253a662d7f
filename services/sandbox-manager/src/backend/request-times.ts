/**
 * Owns the time in which at least one request was open, seen from the bytes that pass connections: a request is open
 * from its first byte to the last byte that came back before the next one. What the bytes say is not read.
 * Times are milliseconds of any one clock.
 *
 * R1  What a sandbox does decides neither memory nor time spent here: of more spans than MANY_SPANS the older half
 *     becomes a sum. A request that was open all that while then counts from there on.
 */
interface Connection {
  /** First byte of the request that is open; undefined while none is. */
  openSince: number | undefined;
  /** Last byte that came back since. */
  answeredAt: number | undefined;
}

type Span = readonly [from: number, to: number];

/** Spans that are kept; a trial has some dozens, and requests at the same time are one (R1). */
const MANY_SPANS = 1024;

export class RequestTimes {
  readonly #connections = new Map<object, Connection>();
  #spans: Span[] = [];
  /** Of spans that were summed up, and until when there are none of them any more. */
  #summedMs = 0;
  #summedUntil = Number.NEGATIVE_INFINITY;

  /** Bytes went out on a connection. */
  sent(connection: object, now: number): void {
    const known = this.#connections.get(connection);
    if (known?.openSince === undefined) {
      this.#connections.set(connection, { openSince: now, answeredAt: undefined });
      return;
    }
    // More of the same request, unless something came back already: then it is the next one.
    if (known.answeredAt === undefined) return;
    this.#end(known.openSince, known.answeredAt);
    this.#connections.set(connection, { openSince: now, answeredAt: undefined });
  }

  /** Bytes came back on a connection. */
  received(connection: object, now: number): void {
    const known = this.#connections.get(connection);
    if (known?.openSince !== undefined) known.answeredAt = now;
  }

  /** A connection ended. A request nobody answered was open until now. */
  closed(connection: object, now: number): void {
    const known = this.#connections.get(connection);
    this.#connections.delete(connection);
    if (known?.openSince !== undefined) this.#end(known.openSince, known.answeredAt ?? now);
  }

  /** Milliseconds until now in which at least one request was open. */
  totalMs(now: number): number {
    const open = [...this.#connections.values()].flatMap(({ openSince, answeredAt }): Span[] =>
      openSince === undefined ? [] : [[openSince, answeredAt ?? now]],
    );
    return this.#summedMs + lengthOf(joined([...this.#spans, ...this.#later(open)]));
  }

  #end(from: number, to: number): void {
    this.#spans.push(...this.#later([[from, to]]));
    if (this.#spans.length <= MANY_SPANS) return;
    const all = joined(this.#spans);
    const older = all.splice(0, Math.max(0, all.length - MANY_SPANS / 2));
    this.#spans = all;
    this.#summedMs += lengthOf(older);
    this.#summedUntil = older.at(-1)?.[1] ?? this.#summedUntil;
  }

  /** What of these spans was not summed up. */
  #later(spans: readonly Span[]): Span[] {
    const until = this.#summedUntil;
    return spans.flatMap(([from, to]): Span[] => (to <= until ? [] : [[Math.max(from, until), to]]));
  }
}

function lengthOf(spans: readonly Span[]): number {
  return spans.reduce((sum, [from, to]) => sum + to - from, 0);
}

/** Spans that touch, as one. */
function joined(spans: readonly Span[]): Span[] {
  const result: [number, number][] = [];
  for (const [from, to] of spans.toSorted((a, b) => a[0] - b[0])) {
    const last = result.at(-1);
    if (last !== undefined && from <= last[1]) last[1] = Math.max(last[1], to);
    else result.push([from, to]);
  }
  return result;
}
