/**
 * Owns the time in which at least one request was open, seen from the bytes that pass connections: a request is open
 * from its first byte to the last byte that came back before the next one. What the bytes say is not read.
 * Times are milliseconds of any one clock.
 */
interface Connection {
  /** First byte of the request that is open; undefined while none is. */
  openSince: number | undefined;
  /** Last byte that came back since. */
  answeredAt: number | undefined;
}

type Span = readonly [from: number, to: number];

/** More spans than this are joined now and then: a harness that polls must not fill the memory. */
const MANY_SPANS = 1024;

export class RequestTimes {
  readonly #connections = new Map<object, Connection>();
  #spans: Span[] = [];

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
    return joined([...this.#spans, ...open]).reduce((sum, [from, to]) => sum + to - from, 0);
  }

  #end(from: number, to: number): void {
    this.#spans.push([from, to]);
    if (this.#spans.length > MANY_SPANS) this.#spans = joined(this.#spans);
  }
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
