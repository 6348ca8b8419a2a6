import type { Quirks } from '../quirks.ts';

/**
 * The output limit to send. Engines refuse prompt + limit beyond the context (vLLM: 400), and agents ask for the most
 * their usual model can give. `undefined` leaves it to the engine, whose default is what remains of the context.
 */
export function outputLimit(
  wanted: number | undefined,
  room: { contextLength: number | undefined; promptTokens: () => number; quirks: Quirks },
): number | undefined {
  if (wanted === undefined || room.contextLength === undefined) return wanted;
  // The estimate may be a fifth too low; only a limit that clearly fits is passed on unchanged.
  const prompt = room.promptTokens();
  if (prompt * 1.2 + wanted <= room.contextLength) return wanted;
  const remaining = Math.max(1, Math.floor(room.contextLength - prompt * 1.2));
  const { engine } = room.quirks;
  return engine === 'unknown' || engine === 'tgi' || wanted < remaining ? Math.min(wanted, remaining) : undefined;
}
