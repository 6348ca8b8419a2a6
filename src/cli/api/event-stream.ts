/** One event of a stream (WHATWG HTML, server-sent events). */
export interface ServerEvent {
  type: string;
  /** Id of this event or of the last one that had any. */
  id: string;
  data: string;
}

/** The events of a body. Ends with the body; an event that is cut off is left out. */
export async function* readEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent> {
  const decoder = new TextDecoder();
  let [rest, type, id] = ['', '', ''];
  let data: string[] = [];
  for await (const chunk of body) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines.map((text) => text.replace(/\r$/, ''))) {
      const { name, value } = fieldOf(line);
      if (name === 'event') type = value;
      else if (name === 'id') id = value;
      else if (name === 'data') data.push(value);
      if (line !== '') continue;
      if (data.length > 0) yield { type: type || 'message', id, data: data.join('\n') };
      [type, data] = ['', []];
    }
  }
}

function fieldOf(line: string): { name: string; value: string } {
  const colon = line.indexOf(':');
  if (colon === -1) return { name: line, value: '' };
  return { name: line.slice(0, colon), value: line.slice(colon + 1).replace(/^ /, '') };
}
