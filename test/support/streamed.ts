/** An event of a stream, in any dialect. */
export interface StreamedEvent {
  type?: string;
  id?: string;
  created?: number;
  model?: string;
  choices?: { delta?: { content?: string | null; role?: string } }[];
  delta?: string | { text?: string };
  usage?: StreamedCounts;
  response?: { id: string; usage?: StreamedCounts };
}

interface StreamedCounts {
  prompt_tokens?: number;
  completion_tokens?: number;
  input_tokens?: number;
  output_tokens?: number;
}

/** The events of whole lines of a stream. */
export function eventsIn(lines: readonly string[]): StreamedEvent[] {
  const prefix = 'data: ';
  return lines.flatMap((line) =>
    line.startsWith(`${prefix}{`) ? [JSON.parse(line.slice(prefix.length)) as StreamedEvent] : [],
  );
}

/** The text of an event, in any dialect. */
export function textOf({ type, delta, choices }: StreamedEvent): string {
  if (type === 'response.output_text.delta' && typeof delta === 'string') return delta;
  if (typeof delta === 'object') return delta.text ?? '';
  return choices?.[0]?.delta?.content ?? '';
}
