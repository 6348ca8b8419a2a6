import type { OutputItem, Part, Step } from './types.ts';

/** One turn of a conversation, grouped as in the chat and messages dialects. */
export type Turn =
  | { role: 'system' | 'user'; parts: Part[] }
  | { role: 'assistant'; items: OutputItem[] }
  | { role: 'tool'; callId: string; parts: Part[]; isError: boolean };

type Result = Step & { kind: 'result' };

/**
 * Groups items into turns. Adjacent output items become one assistant turn, so parallel calls stay together. The results of
 * its calls come right behind it, one for each as chat engines demand, also where something was said before the client had
 * them. Codex may give more than one output of a call.
 */
export function toTurns(items: readonly Step[]): Turn[] {
  const { answers, order } = answersOf(items);
  const turns: Turn[] = [];
  let due: Result[] = [];
  const given = new Set<Result>();
  const settle = (): void => {
    due.sort((one, other) => (order.get(one) ?? 0) - (order.get(other) ?? 0));
    for (const [callId, results] of Map.groupBy(due, (result) => result.callId)) {
      const parts = results.flatMap((result) => result.parts);
      turns.push({ role: 'tool', callId, parts, isError: results.some((result) => result.isError) });
    }
    for (const result of due) given.add(result);
    due = [];
  };
  for (const item of items) {
    if (item.kind === 'message') {
      settle();
      turns.push({ role: item.role, parts: item.parts });
    } else if (item.kind === 'result') {
      if (given.has(item)) continue;
      if (!due.includes(item)) due.push(item);
      settle();
    } else {
      const last = turns.at(-1);
      if (last?.role === 'assistant') last.items.push(item);
      else turns.push({ role: 'assistant', items: [item] });
      for (const result of answers.get(item) ?? []) due.push(result);
    }
  }
  settle();
  return turns;
}

/** The results of each call, which are those that follow it before another call of its id, and the place of each result. */
function answersOf(items: readonly Step[]): { answers: Map<Step, Result[]>; order: Map<Result, number> } {
  const answers = new Map<Step, Result[]>();
  const order = new Map<Result, number>();
  const calls = new Map<string, Result[]>();
  for (const [position, item] of items.entries()) {
    if (item.kind === 'result') {
      order.set(item, position);
      calls.get(item.callId)?.push(item);
    }
    if (item.kind !== 'call') continue;
    const own: Result[] = [];
    answers.set(item, own);
    calls.set(item.callId, own);
  }
  return { answers, order };
}

/** The joined texts of parts. */
export function textOf(parts: readonly Part[]): string {
  return parts
    .filter((part) => part.type === 'text')
    .map((part) => part.text)
    .join('\n\n');
}

/**
 * Joins leading system turns, and folds later ones into the user or tool text beside them. Many chat templates refuse a
 * later system message; moving it to the front changes the prompt on every turn and loses the prefix cache
 * (anthropics/claude-code#87227). Folding never separates a call from its result.
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
    // Notes that follow go into this copy. A copy per note would take quadratic time.
    rest.push(turn.role === 'assistant' ? turn : { ...turn, parts: [...waiting, ...turn.parts] });
    waiting = [];
  }
  if (waiting.length > 0) rest.push({ role: 'user', parts: waiting });
  return { system: system === '' ? undefined : system, turns: rest };
}

/** The text of a result. Not every engine reads an error flag, so a failed tool says so in its text. */
export function resultText(turn: { parts: readonly Part[]; isError: boolean }): string {
  const text = textOf(turn.parts);
  return turn.isError && !/^error\b/i.test(text) ? `Error: ${text}` : text;
}
