import type { RequestFeatures } from './inspect/request-features.ts';
import type { Dialect } from './types.ts';

/** Engines that the table knows. Any other is `unknown`, and trusted with the dialects that its probe found. */
export const ENGINES = ['vllm', 'sglang', 'llama.cpp', 'ollama', 'tgi', 'unknown'] as const;
export type Engine = (typeof ENGINES)[number];

/** Where one version of an engine with one model differs from the published dialects. */
export interface Quirks {
  engine: Engine;
  version: string | undefined;
  /** gpt-oss, the one family of models for which vLLM implements the whole responses route. */
  harmony: boolean;
  /** The chat template refuses two user turns in a row, or a user turn right after a tool turn. */
  strictAlternation: boolean;
  /** Reports usage in every stream chunk when asked, so `message_start` can have real counts. */
  continuousUsage: boolean;
  /** False: `tool_choice` is ignored in every dialect (ollama/ollama#17921). */
  honoursToolChoice: boolean;
  /** False: images must be data URLs. */
  remoteImages: boolean;
  /** Takes a `cache_salt`, but in messages: calls with another salt find nothing of each other's prompts in its cache. */
  saltsCache: boolean;
  /** What a chat body calls the limit of an answer: OpenAI refuses the older name for models that think. */
  limitName: 'max_tokens' | 'max_completion_tokens';
  /** How a chat body switches thinking on and off. */
  thinking: 'template' | 'effort' | 'none';
  /** Thinks unless the request says no, as Qwen3 and GLM. Clients of the messages dialect that want no thinking say nothing. */
  thinksUnasked: boolean;
  /** Takes `continue_final_message` for a conversation that ends with the start of the answer. */
  continuesAnswer: boolean;
  /** Goes on with the start of an answer, token by token as if it had written it itself. */
  goesOn: boolean;
  /**
   * It may be a vendor, or stand before one: these take no thoughts but what they sealed themselves, and refuse the whole call
   * for others.
   */
  checksThoughts: boolean;
  /** Ids of calls have letters, digits, _ and - alone (Anthropic). Kimi knows its calls by ids such as `functions.f:0`. */
  plainCallIds: boolean;
  /** What its own route of messages puts between two texts of the system; undefined where that is not known. */
  joinsSystem: string | undefined;
  /** The fields of an assistant chat message in which the engine reads replayed reasoning. */
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

/**
 * Models with a switch for thinking that is on by default: Qwen3, GLM from 4.5 on, SmolLM3, Kimi from K2.5 on, Nemotron 3
 * (their model cards). Releases of them that always think, or never, say so in their names.
 */
const THINKS_UNASKED = /qwen-?3|glm-?(?:4\.[5-9]|5)|smollm-?3|kimi-?k2\.[5-9]|nemotron-?3/i;

/** OpenAI's models that think: o1 and GPT-5 and later ones. */
const OPENAI_THINKS = /(?:^|\/)(?:o\d|gpt-(?:[5-9]|\d\d))/i;

/** The quirks of a server. `engine` and `version` come from its probe, `model` is its own name of the model. */
export function quirksOf(engine: string, version: string | undefined, model: string): Quirks {
  const known = ENGINES.find((name) => name === engine) ?? 'unknown';
  const isMistral = /mistral|mixtral|devstral|magistral|codestral|ministral/i.test(model);
  return {
    engine: known,
    version,
    harmony: /gpt-?oss/i.test(model),
    strictAlternation: isMistral || /gemma/i.test(model),
    continuousUsage: known === 'vllm' || known === 'sglang',
    honoursToolChoice: known !== 'ollama',
    remoteImages: known !== 'ollama',
    // vLLM has it since 0.9, and refuses it with its engine V0, which is gone in 0.11 (vllm PR #17045).
    saltsCache: known === 'sglang' || (known === 'vllm' && (version === undefined || atLeast(version, '0.11.0'))),
    limitName: known === 'unknown' && OPENAI_THINKS.test(model) ? 'max_completion_tokens' : 'max_tokens',
    // vLLM refuses any chat_template_kwargs for Mistral's own tokenizers (validate_request_params).
    thinking: isMistral && known === 'vllm' ? 'effort' : thinkingSwitch(known),
    thinksUnasked: THINKS_UNASKED.test(model) && !/thinking|instruct|coder/i.test(model),
    continuesAnswer: known === 'vllm' || known === 'sglang',
    // llama.cpp puts a last assistant message behind the prompt as it is. Harmony has no form for half an answer.
    goesOn: (known === 'vllm' || known === 'sglang' || known === 'llama.cpp') && !/gpt-?oss/i.test(model),
    checksThoughts: known === 'unknown',
    plainCallIds: known === 'unknown' && !/kimi/i.test(model),
    joinsSystem: JOINS_SYSTEM[known],
    // vLLM renamed `reasoning_content` to `reasoning`. Each version ignores the field of the other.
    reasoningFields: known === 'vllm' ? ['reasoning', 'reasoning_content'] : ['reasoning_content'],
  };
}

/** vLLM `_convert_system_message`, SGLang `AnthropicServing`, llama.cpp `convert_anthropic_to_oai`. */
const JOINS_SYSTEM: Partial<Record<Engine, string>> = { vllm: '', sglang: '\n', 'llama.cpp': '' };

function thinkingSwitch(engine: Engine): Quirks['thinking'] {
  if (engine === 'vllm' || engine === 'sglang' || engine === 'llama.cpp') return 'template';
  return engine === 'tgi' ? 'none' : 'effort';
}

/** Whether the engine's own route for `dialect` serves a request of these features well. */
function isTrusted(dialect: Dialect, quirks: Quirks, features: RequestFeatures): boolean {
  if (dialect === 'chat') return true;
  return dialect === 'responses' ? trustsResponses(quirks, features) : trustsMessages(quirks, features);
}

function trustsResponses(quirks: Quirks, features: RequestFeatures): boolean {
  if (features.clientTools || features.compacts) return false;
  // Engines refuse these items (vllm #55974), ignore `truncation` and read no files.
  if (features.vendorHistory || features.truncates || features.files) return quirks.engine === 'unknown';
  switch (quirks.engine) {
    case 'vllm':
      // Tool calls leak as text in streams (vllm #36435, #29725), replayed agent input is refused (#33089),
      // json_schema is not enforced behind a reasoning parser (#44012). All but harmony models go over chat.
      if (!atLeast(quirks.version, '0.10.0')) return false;
      return quirks.harmony || !(features.tools || features.toolHistory || features.structured);
    case 'ollama':
      // It knows functions alone.
      return atLeast(quirks.version, '0.13.3') && !features.toolHistory && !features.hostedTools;
    case 'unknown':
      return true;
    // SGLang: function calls never streamed, usage wrong (sglang #14189, #10012). llama.cpp: events without
    // output_index (#21174) and schema holes (#19720). TGI: no such route.
    default:
      return false;
  }
}

function trustsMessages(quirks: Quirks, features: RequestFeatures): boolean {
  // Their own routes refuse such blocks and tools, and do not switch thinking off when the field is absent.
  const isForeign = features.documents || features.vendorHistory || features.clientTools;
  if (isForeign || (quirks.thinksUnasked && !features.thinking)) return quirks.engine === 'unknown';
  switch (quirks.engine) {
    case 'vllm':
      // It counts cached tokens twice before PR #40912, and still in 0.22.1 (#45079). Its request model drops the other
      // fields.
      return atLeast(quirks.version, '0.24.0') && !dropsFields(features) && !features.thinking;
    case 'sglang':
      // It has thinking and usage since PR #25876, and cuts text beside tool calls in streams (#34214).
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

/** The dialects that the engine itself serves for a request of these features. `GET /models` shows them. */
export function nativeDialects(available: readonly Dialect[], quirks: Quirks, features: RequestFeatures): Dialect[] {
  return available.filter((dialect) => isTrusted(dialect, quirks, features));
}

/** The dialects in which a server keeps the caches of its callers apart: all, where none does. */
export function dialectsWithSalt(available: readonly Dialect[], { saltsCache }: Quirks): readonly Dialect[] {
  const salted = available.filter((dialect) => dialect !== 'messages');
  return saltsCache && salted.length > 0 ? salted : available;
}

/**
 * The dialect in which to send a request to the server, or undefined when the server has none. The client's own where
 * the table trusts it, else chat, which every engine has tested best, else any.
 */
export function chooseUpstream(
  client: Dialect,
  available: readonly Dialect[],
  quirks: Quirks,
  features: RequestFeatures,
): { dialect: Dialect; native: boolean } | undefined {
  if (available.includes(client) && isTrusted(client, quirks, features)) return { dialect: client, native: true };
  const fallback = (['chat', client, 'messages', 'responses'] as const).find((dialect) => available.includes(dialect));
  // The gateway writes summaries itself, in whatever dialect the model is asked for one.
  return fallback === undefined ? undefined : { dialect: fallback, native: fallback === client && !features.compacts };
}
