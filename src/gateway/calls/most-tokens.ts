import { isObject, type Json } from '../../lib/json.ts';
import type { Model } from '../balance/model.ts';
import { mostOfItem, mostOfPrompt, SOUND_BYTES_PER_TOKEN } from '../dialects/index.ts';
import type { Call } from './call.ts';

/** Of an answer without a limit, where no server of the model says how long its context is. Few are longer. */
const OUTPUT_TOKENS = 131_072;
/** More than any call takes. */
const MOST_TOKENS = 1_000_000_000;
/** What clients and engines call the limit of an answer. An engine may read any of them. */
const OUTPUT_LIMITS = ['max_tokens', 'max_completion_tokens', 'max_output_tokens', 'n_predict'] as const;
/** What an answer is expected to have, where the call says nothing, and at most: agents ask for the longest always. */
const LIKELY_TOKENS = 1024;
const MOST_LIKELY_TOKENS = 4096;
/** Other routes answer with vectors and scores. */
const WITHOUT_TEXT: ReadonlySet<string | undefined> = new Set(['embeddings', 'rerank', 'score']);
const COMPARES: ReadonlySet<string | undefined> = new Set(['rerank', 'score']);
/** A text, and those with each of which it is read anew, as engines call them. */
const COMPARED = [
  ['query', 'queries', 'text_1', 'data_1'],
  ['documents', 'texts', 'items', 'text_2', 'data_2'],
] as const;
/** What a template writes around each pair. */
const TOKENS_PER_PAIR = 128;

/** The tokens that a call may take at most, as far as anybody knows before it is sent. */
export function mostTokens(call: Call, model: Model, prompt = mostInput(call)): { input: number; output: number } {
  const { body, plain } = call;
  const context = contextOf(model);
  // Other calls than those in a dialect may have many inputs, each as long as a context.
  const input = Math.min(prompt, plain === undefined ? context : MOST_TOKENS);
  if (WITHOUT_TEXT.has(plain?.route)) return { input, output: 0 };
  return { input, output: Math.min(outputLimit(body, context) * answersOf(body), MOST_TOKENS) };
}

/** The tokens of a prompt at most, whatever the context of its model is. It takes a look at the whole body. */
export function mostInput({ body, bytes, plain, promptTokens, history, references }: Call): number {
  if (plain?.form !== undefined) return Math.max(promptTokens, Math.ceil(bytes.length / SOUND_BYTES_PER_TOKEN));
  const repeated = COMPARES.has(plain?.route) ? repeatedTokens(body) : 0;
  const stored = [...history, ...[...references.values()].flat()];
  return Math.max(
    promptTokens,
    stored.reduce((sum, item) => sum + mostOfItem(item), mostOfPrompt(body, bytes.length) + repeated),
  );
}

/** The tokens at most of a text that is read once more for each further one that it is compared with. */
function repeatedTokens(body: Json): number {
  const sides = COMPARED.map((names) => names.flatMap((name) => entriesOf(body[name])));
  const pairs = Math.max(...sides.map(({ length }) => length));
  return sides.reduce((sum, [first, ...more]) => {
    const isRepeated = first !== undefined && more.length === 0;
    return isRepeated ? sum + Buffer.byteLength(JSON.stringify(first)) * (pairs - 1) : sum;
  }, pairs * TOKENS_PER_PAIR);
}

/** One or a list of them, or an object with such a list (vLLM's `content`). */
function entriesOf(value: unknown): unknown[] {
  const given = isObject(value) && Array.isArray(value.content) ? value.content : value;
  return [given ?? []].flat();
}

/** The tokens that a call is likely to take, for its turn among others. The real number counts when it is known. */
export function likelyTokens({ body, plain, promptTokens }: Call): number {
  if (WITHOUT_TEXT.has(plain?.route)) return promptTokens;
  const given = limitsIn(body).filter((limit) => limit > 0);
  const output = given.length === 0 ? LIKELY_TOKENS : Math.min(Math.max(...given), MOST_LIKELY_TOKENS);
  return Math.min(promptTokens + output * answersOf(body), MOST_TOKENS);
}

/** The longest of its servers; without an end where none says. */
function contextOf({ members, facts }: Model): number {
  const known = [facts, ...members].flatMap((one) => one?.contextLength ?? []);
  return known.length === 0 ? Infinity : Math.max(...known);
}

/** An engine takes zero and less for none, and goes on to the end of the context then. */
function outputLimit(body: Json, context: number): number {
  const given = limitsIn(body);
  if (given.length > 0 && given.every((limit) => limit > 0)) return Math.min(Math.ceil(Math.max(...given)), context);
  return context === Infinity ? Math.max(OUTPUT_TOKENS, ...given) : context;
}

function limitsIn(body: Json): number[] {
  return OUTPUT_LIMITS.flatMap((name) => (typeof body[name] === 'number' ? [body[name]] : []));
}

/** How many answers it asks for: each has the whole length. */
export function answersOf({ n, n_cmpl: ofLlama, best_of: bestOf, prompt }: Json): number {
  const each = Math.max(1, ...[n, ofLlama, bestOf].filter((count) => typeof count === 'number'));
  // One list of numbers is one prompt in tokens.
  const isBatch = Array.isArray(prompt) && prompt.some((one) => typeof one !== 'number');
  return Math.ceil(each) * (isBatch ? prompt.length : 1);
}
