/** One event of a stream. `data` is text as it was sent. */
export interface ServerEvent {
  type: string;
  /** The id of this event or of the last one that had any; empty before the first. */
  id: string;
  data: string;
}

const LINE_END = /\r\n|\n|\r/;

function fieldOf(line: string): { name: string; value: string } {
  const colon = line.indexOf(':');
  if (colon === -1) return { name: line, value: '' };
  return { name: line.slice(0, colon), value: line.slice(colon + 1).replace(/^ /, '') };
}

/** The lines of a body that have an end. A long line comes in many pieces, of which each is searched once. */
async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const pieces: string[] = [];
  let carry = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        if (carry !== '') yield pieces.join('');
        return;
      }
      const text = carry + decoder.decode(value, { stream: true });
      // A CR at the end may be half of a line end.
      carry = text.endsWith('\r') ? '\r' : '';
      const lines = text.slice(0, text.length - carry.length).split(LINE_END);
      for (const line of lines.slice(0, -1)) {
        yield pieces.splice(0).join('') + line;
      }
      pieces.push(lines.at(-1) ?? '');
    }
  } finally {
    // Whoever has read enough needs no more of it.
    await reader.cancel().catch(() => undefined);
  }
}

/**
 * The events of a text/event-stream (WHATWG HTML, section 9.2), without `retry`. Ends with the body; an event that is cut
 * off is left out.
 */
export async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  let [type, id] = ['', ''];
  let data: string[] = [];
  for await (const line of linesOf(body)) {
    if (line === '') {
      if (data.length > 0) yield { type: type || 'message', id, data: data.join('\n') };
      [type, data] = ['', []];
      continue;
    }
    const { name, value } = fieldOf(line);
    if (name === 'event') type = value;
    else if (name === 'id' && !value.includes('\0')) id = value;
    else if (name === 'data') data.push(value);
  }
}
