import type { HistoryItem, OutputItem, Part } from '../types.ts';

/** A conversation grouped as the chat and messages dialects group it. */
export type Turn =
  | { role: 'system' | 'user'; parts: Part[] }
  | { role: 'assistant'; items: OutputItem[] }
  | { role: 'tool'; callId: string; parts: Part[]; isError: boolean };

/** Adjacent output items become one assistant turn: parallel calls must not be spread over several. */
export function toTurns(items: readonly HistoryItem[]): Turn[] {
  const turns: Turn[] = [];
  for (const item of items) {
    if (item.kind === 'message') turns.push({ role: item.role, parts: item.parts });
    else if (item.kind === 'result') {
      turns.push({ role: 'tool', callId: item.callId, parts: item.parts, isError: item.isError ?? false });
    } else {
      const last = turns.at(-1);
      if (last?.role === 'assistant') last.items.push(item);
      else turns.push({ role: 'assistant', items: [item] });
    }
  }
  return turns;
}

/** The texts of parts, joined. */
export function textOf(parts: readonly Part[]): string {
  return parts
    .filter((part) => part.type === 'text')
    .map((part) => part.text)
    .join('\n\n');
}

/**
 * Leading system turns joined into one, later ones folded into the user or tool text beside them. Many chat templates
 * refuse a system message that is not first; hoisting it instead changes the prompt's start on every turn and loses
 * the prefix cache (anthropics/claude-code#87227). Folding keeps both, and never comes between a call and its result.
 */
export function foldSystem(turns: readonly Turn[]): { system: string | undefined; turns: Turn[] } {
  const first = turns.findIndex((turn) => turn.role !== 'system');
  const leading = first === -1 ? turns : turns.slice(0, first);
  const system = leading.flatMap((turn) => (turn.role === 'system' ? [textOf(turn.parts)] : [])).join('\n\n');
  const rest: Turn[] = [];
  let waiting: Part[] = [];
  for (const turn of first === -1 ? [] : turns.slice(first)) {
    if (turn.role === 'system') {
      const note: Part = { type: 'text', text: `<system>\n${textOf(turn.parts)}\n</system>` };
      const last = rest.at(-1);
      if (last === undefined || last.role === 'assistant' || last.role === 'system') waiting.push(note);
      else last.parts.push(note);
      continue;
    }
    if (waiting.length > 0 && turn.role === 'assistant') rest.push({ role: 'user', parts: waiting });
    // The copied parts take the notes that follow; a copy per note would take time by the square of their number.
    rest.push(turn.role === 'assistant' ? turn : { ...turn, parts: [...waiting, ...turn.parts] });
    waiting = [];
  }
  if (waiting.length > 0) rest.push({ role: 'user', parts: waiting });
  return { system: system === '' ? undefined : system, turns: rest };
}

/** Chat and messages have no error flag every engine reads, so a failed tool says so in its text. */
export function resultText(turn: { parts: readonly Part[]; isError: boolean }): string {
  const text = textOf(turn.parts);
  return turn.isError && !/^error\b/i.test(text) ? `Error: ${text}` : text;
}
