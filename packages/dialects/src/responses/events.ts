/**
 * Owns the events of one response's stream: their form and their rising numbers. Does not know which events a
 * reply consists of.
 */
export class EventStream {
  private number = 0;
  private text = "";

  emit(type: string, fields: object): void {
    const data = JSON.stringify({ type, sequence_number: this.number++, ...fields });
    this.text += `event: ${type}\ndata: ${data}\n\n`;
  }

  /** The events since the last call. */
  take(): string {
    const { text } = this;
    this.text = "";
    return text;
  }
}
