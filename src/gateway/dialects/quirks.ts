import type { RequestFeatures } from './inspect/request-features.ts';
import type { Dialect } from './types.ts';

/** Engines the table knows. Anything else is `unknown` and trusted with what its probe found. */
export type Engine = 'vllm' | 'sglang' | 'llama.cpp' | 'ollama' | 'tgi' | 'unknown';

const ENGINES: ReadonlySet<string> = new Set(['vllm', 'sglang', 'llama.cpp', 'ollama', 'tgi']);

/** What one engine at one version, serving one model, does differently from the published dialects. */
export interface Quirks {
  engine: Engine;
  version: string | undefined;
  /** gpt-oss: the one family whose responses route vLLM implements fully. */
  harmony: boolean;
  /** Chat templates that refuse two user turns in a row, or a user turn right after a tool turn. */
  strictAlternation: boolean;
  /** Reports usage in every stream chunk when asked, so that `message_start` can carry real counts. */
  continuousUsage: boolean;
  /** False: `tool_choice` is ignored in every dialect (ollama/ollama#17921). */
  honoursToolChoice: boolean;
  /** False: images must be data URLs. */
  remoteImages: boolean;
  /** How thinking is switched on and off in a chat body. */
  thinking: 'template' | 'effort' | 'none';
  /** Takes `continue_final_message` for a conversation that ends with the start of the answer. */
  continuesAnswer: boolean;
  /** Fields of an assistant chat message in which replayed reasoning is read. */
  reasoningFields: readonly string[];
}

/** True when `version` (`0.11.1`, `v0.14.0-rc1`, `b7610`, …) is known and not below `minimum`. */
function atLeast(version: string | undefined, minimum: string): boolean {
  const have = numbersOf(version ?? '');
  if (have.length === 0) return false;
  for (const [position, wanted] of numbersOf(minimum).entries()) {
    const part = have[position] ?? 0;
    if (part !== wanted) return part > wanted;
  }
  return true;
}

function numbersOf(version: string): number[] {
  return (/\d+(?:\.\d+)*/.exec(version)?.[0] ?? '').split('.').filter(Boolean).map(Number);
}

/** The quirk record of a backend. `engine` and `version` come from the probe, `model` is the served name. */
export function quirksOf(engine: string, version: string | undefined, model: string): Quirks {
  const known = (ENGINES.has(engine) ? engine : 'unknown') as Engine;
  const isMistral = /mistral|mixtral|devstral|magistral|codestral|ministral/i.test(model);
  return {
    engine: known,
    version,
    harmony: /gpt-?oss/i.test(model),
    strictAlternation: isMistral || /gemma/i.test(model),
    continuousUsage: known === 'vllm' || known === 'sglang',
    honoursToolChoice: known !== 'ollama',
    remoteImages: known !== 'ollama',
    // vLLM refuses any chat_template_kwargs for Mistral's own tokenizers (validate_request_params).
    thinking: isMistral && known === 'vllm' ? 'effort' : thinkingSwitch(known),
    continuesAnswer: known === 'vllm' || known === 'sglang',
    // vLLM reads `reasoning` since the field was renamed and `reasoning_content` before; both are accepted.
    reasoningFields: known === 'vllm' ? ['reasoning', 'reasoning_content'] : ['reasoning_content'],
  };
}

function thinkingSwitch(engine: Engine): Quirks['thinking'] {
  if (engine === 'vllm' || engine === 'sglang' || engine === 'llama.cpp') return 'template';
  return engine === 'tgi' ? 'none' : 'effort';
}

/** Whether this backend's own route for `dialect` may be trusted with a request of these features. */
function isTrusted(dialect: Dialect, quirks: Quirks, features: RequestFeatures): boolean {
  if (dialect === 'chat') return true;
  return dialect === 'responses' ? trustsResponses(quirks, features) : trustsMessages(quirks, features);
}

function trustsResponses(quirks: Quirks, features: RequestFeatures): boolean {
  if (features.clientTools) return false;
  switch (quirks.engine) {
    case 'vllm':
      // Tool calls leak as text in streams (vllm #36435, #29725), replayed agent input is refused (#33089),
      // json_schema is not enforced behind a reasoning parser (#44012): all but harmony models go over chat.
      if (!atLeast(quirks.version, '0.10.0')) return false;
      return quirks.harmony || !(features.tools || features.toolHistory || features.structured);
    case 'ollama':
      return atLeast(quirks.version, '0.13.3') && !features.toolHistory;
    case 'unknown':
      return true;
    // SGLang: function calls never streamed, usage wrong (sglang #14189, #10012). llama.cpp: events without
    // output_index (#21174) and schema holes (#19720). TGI: no such route.
    default:
      return false;
  }
}

function trustsMessages(quirks: Quirks, features: RequestFeatures): boolean {
  if (features.documents) return quirks.engine === 'unknown';
  switch (quirks.engine) {
    case 'vllm':
      // Cached tokens are counted twice before PR #40912, still so in 0.22.1 (#45079). The other fields are dropped by
      // its request model.
      return atLeast(quirks.version, '0.24.0') && !dropsFields(features) && !features.thinking;
    case 'sglang':
      // thinking and usage since PR #25876; text beside tool calls is cut in streams (#34214).
      return atLeast(quirks.version, '0.5.13') && !dropsFields(features) && !features.thinking && !features.tools;
    case 'llama.cpp':
      // No thinking blocks up to build 7609 (#18542).
      return atLeast(quirks.version, '7610') && !dropsFields(features);
    case 'ollama':
      return atLeast(quirks.version, '0.14.0') && !dropsFields(features);
    case 'unknown':
      return true;
    default:
      return false;
  }
}

function dropsFields(features: RequestFeatures): boolean {
  return (
    features.disableParallel ||
    features.toolErrors ||
    features.stopSequences ||
    features.midSystem ||
    features.structured ||
    features.redactedThinking
  );
}

/** The client dialects served by the backend itself for a request without special features: what `/models` shows. */
export function nativeDialects(available: readonly Dialect[], quirks: Quirks, features: RequestFeatures): Dialect[] {
  return available.filter((dialect) => isTrusted(dialect, quirks, features));
}

/**
 * Which of the backend's dialects a request should be sent in, or undefined when none is known. Native where the
 * table trusts it, else chat, which is every engine's best-tested route, else whatever there is.
 */
export function chooseUpstream(
  client: Dialect,
  available: readonly Dialect[],
  quirks: Quirks,
  features: RequestFeatures,
): { dialect: Dialect; native: boolean } | undefined {
  if (available.includes(client) && isTrusted(client, quirks, features)) return { dialect: client, native: true };
  const fallback = (['chat', client, 'messages', 'responses'] as const).find((dialect) => available.includes(dialect));
  return fallback === undefined ? undefined : { dialect: fallback, native: fallback === client };
}
