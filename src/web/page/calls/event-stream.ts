/** One event; `data` is text as it was sent. */
export interface StreamEvent {
  type?: string;
  id?: string;
  data: string;
}

const LINE_END = /\r\n|\n|\r/;

function eventOf(block: readonly string[]): StreamEvent | undefined {
  const event: { type?: string; id?: string } = {};
  const data: string[] = [];
  for (const line of block) {
    const colon = line.indexOf(':');
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'event') event.type = value;
    else if (name === 'id') event.id = value;
    else if (name === 'data') data.push(value);
  }
  return data.length === 0 ? undefined : { ...event, data: data.join('\n') };
}

/** The events of a text/event-stream (WHATWG HTML, section 9.2), without `retry`. An event that is cut off is dropped. */
export async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamEvent> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  // What has no line end yet. A long line comes in many pieces, of which each is searched once.
  let rest = '';
  let carry = '';
  let block: string[] = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const text = carry + value;
    // A CR at the end may be half of a line end.
    carry = text.endsWith('\r') ? '\r' : '';
    const [first = '', ...others] = text.slice(0, text.length - carry.length).split(LINE_END);
    const lines = [rest + first, ...others];
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (line !== '') {
        block.push(line);
        continue;
      }
      const event = eventOf(block);
      block = [];
      if (event !== undefined) yield event;
    }
  }
}
