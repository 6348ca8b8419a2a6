import { isObject, type Json } from '../../lib/json.ts';
import { unsupported } from './errors/dialect-error.ts';
import { excerpt, objectsOf, pick, textValue } from './fields.ts';
import { isFreeData } from './inspect/free-data.ts';
import { isShellOfServer } from './responses/own-tools.ts';

/** Read by the gateway and by servers of every dialect: what these leave out would not be counted as it was held. */
const LIMITS = 'model stream max_tokens max_completion_tokens max_output_tokens min_tokens n_predict n n_cmpl best_of';
const SAMPLING = 'temperature top_p top_k min_p seed frequency_penalty presence_penalty repetition_penalty logit_bias';
const OF_ENGINES =
  'chat_template_kwargs structured_outputs guided_json guided_regex guided_choice guided_grammar ignore_eos stop_token_ids skip_special_tokens spaces_between_special_tokens include_stop_str_in_output bad_words length_penalty truncate_prompt_tokens cache_salt';
const OF_CALLERS = 'metadata user safety_identifier prompt_cache_key';
const OF_INPUTS = 'input messages dimensions encoding_format input_type task truncate truncation normalized modality';
const OF_IMAGES =
  'prompt size quality style background output_format output_compression response_format seed negative_prompt guidance_scale num_inference_steps aspect_ratio';

/**
 * What a server outside is sent, by dialect or route: members by which it charges no other price than the operator wrote, and
 * serves the call itself. All others are left out, also those that come tomorrow: a class of service, a lifetime of caches, what
 * an account keeps.
 */
const SENT = {
  chat: `${LIMITS} ${SAMPLING} ${OF_ENGINES} ${OF_CALLERS} messages stream_options stop logprobs top_logprobs response_format tools
    tool_choice parallel_tool_calls functions function_call reasoning_effort reasoning thinking enable_thinking thinking_budget
    include_reasoning reasoning_format verbosity prediction continue_final_message add_generation_prompt documents`,
  responses: `${LIMITS} ${SAMPLING} ${OF_ENGINES} ${OF_CALLERS} input instructions include stream_options text reasoning tools tool_choice
    parallel_tool_calls max_tool_calls top_logprobs truncation`,
  messages: `${LIMITS} ${SAMPLING} ${OF_ENGINES} ${OF_CALLERS} messages system stop_sequences thinking output_config output_format tools
    tool_choice cache_control`,
  completions: `${LIMITS} ${SAMPLING} ${OF_ENGINES} ${OF_CALLERS} prompt suffix echo stream_options stop logprobs prompt_logprobs
    response_format`,
  embeddings: `${LIMITS} ${OF_CALLERS} ${OF_INPUTS} output_dimension output_dtype embedding_type embedding_types late_chunking
    truncate_prompt_tokens`,
  rerank: `${LIMITS} ${OF_CALLERS} query documents top_n top_k return_documents rank_fields max_chunks_per_doc max_tokens_per_doc truncation
    truncate_prompt_tokens instruction raw_scores`,
  score: `${LIMITS} ${OF_CALLERS} text_1 text_2 data_1 data_2 queries items query documents truncate_prompt_tokens instruction`,
  speech: `${LIMITS} ${OF_CALLERS} input voice instructions response_format speed stream_format language`,
  images: `${LIMITS} ${OF_CALLERS} ${OF_IMAGES} moderation`,
  'image-edits': `${LIMITS} ${OF_CALLERS} ${OF_IMAGES} image mask input_fidelity moderation`,
  transcriptions: `${LIMITS} ${OF_CALLERS} file language languages prompt keywords response_format temperature timestamp_granularities
    stream_options include chunking_strategy known_speaker_names known_speaker_references`,
  translations: `${LIMITS} ${OF_CALLERS} file language prompt response_format temperature`,
} as const;

type Route = keyof typeof SENT;

const SENT_NAMES = new Map<string, ReadonlySet<string>>(
  Object.entries(SENT).map(([route, names]) => [route, new Set(names.split(/\s+/))]),
);

/** By which a server runs something that costs more than tokens, or calls where the caller says. */
const OF_HOSTS = ['mcp_servers', 'web_search_options', 'search_parameters', 'enable_search', 'container', 'background'];
/**
 * By which it charges another price or account, another server answers, or an account says what is sent. A caller that asks
 * for one would not get what it asked for.
 */
const OF_PRICES =
  `speed inference_geo billing_policy fallback_credit_token audio modalities fallbacks models route provider plugins preset transforms
  providerOptions custom_llm_provider model_list context_window_fallbacks api_base base_url api_key extra_body extra_headers thread`.split(
    /\s+/,
  );
/** What stands for the usual price and the server itself. It is left out. */
const USUAL = new Map([
  ['speed', 'standard'],
  ['inference_geo', 'global'],
  ['modalities', '["text"]'],
]);
/** Trials by which an answer costs what it costs without them (Anthropic's header `anthropic-beta`). */
const USUAL_TRIAL =
  /^(?:advanced-tool-use|claude-code|computer-use|dev-full-thinking|effort|fine-grained-tool-streaming|interleaved-thinking|mid-conversation-[a-z-]+|model-context-window-exceeded|output-128k|pdfs|prompt-caching|structured-outputs|task-budgets|thinking-[a-z-]+|token-efficient-tools|tool-search-tool)-\d{4}-?\d\d-?\d\d$/;
/** Marks in a prompt for a server's cache, which may say how long and for whom it keeps that, at another price. */
const CACHE_MARK = /^(?:cache_control|prompt_cache_breakpoint)$/;
/** What is kept in the account that the credential is of: the caller has put nothing there. */
const KEPT: ReadonlySet<string> = new Set(['file_id', 'file_ids', 'vector_store_ids']);

/** Tools that clients run, in any dialect. */
const CLIENT_TOOL =
  /^(?:function|custom|namespace|tool_search|shell|local_shell|apply_patch|(?:bash|text_editor|computer|memory)_\d+)$/;
/** Agents declare it and do without it. */
const WEB_SEARCH = /^web_search(?:_|$)/;

/**
 * A body for a server outside, without what would act for the operator's account there or change what it charges. Throws
 * DialectError for what cannot be left out.
 */
export function forOutside(body: Json, route: Route): Json {
  const found = OF_HOSTS.find((name) => isGiven(body[name]) && !isSentBy(route, name)) ?? keptIn(body, true);
  if (found !== undefined)
    throw unsupported(
      found,
      `'${found}' is not available: the server of this model is outside the cluster, and its account is not yours. Remove it.`,
    );
  refusePrices(body, route);
  const sent: Json = {};
  for (const [name, value] of Object.entries(body))
    if (isSentBy(route, name)) sent[name] = CACHE_MARK.test(name) ? withoutLifetime(value) : withoutLifetimes(value);
  // Without a word, the responses route of OpenAI stores.
  if (body.store === false && !SENT_AS_FORM.has(route)) sent.store = false;
  if (Array.isArray(sent.input)) {
    const given: unknown[] = sent.input;
    const items = withoutHostedTools(given, false);
    if (items.some((item, at) => item !== given[at])) sent.input = items;
  }
  if (!Array.isArray(sent.tools)) return sent;
  const [declared] = withoutHostedTools([{ tools: sent.tools }], isForced(body.tool_choice));
  const tools = isObject(declared) ? declared.tools : [];
  if (objectsOf(tools).length > 0) return { ...sent, tools };
  const { tools: _tools, tool_choice: _choice, ...rest } = sent;
  return rest;
}

const SENT_AS_FORM: ReadonlySet<string> = new Set(['image-edits', 'transcriptions', 'translations']);

function isSentBy(route: Route, name: string): boolean {
  return SENT_NAMES.get(route)?.has(name) === true;
}

function refusePrices(body: Json, route: Route): void {
  const { mode } = isObject(body.reasoning) ? body.reasoning : {};
  const isUsual = (name: string, value: unknown): boolean =>
    (typeof value === 'string' ? value : JSON.stringify(value)) === USUAL.get(name);
  const found =
    OF_PRICES.find((name) => isGiven(body[name]) && !isUsual(name, body[name]) && !isSentBy(route, name)) ??
    (isGiven(mode) && mode !== 'standard' ? 'reasoning.mode' : undefined);
  if (found === undefined) return;
  throw unsupported(
    found,
    `'${found}' is not available: it would change what the server of this model, which is outside the cluster, charges, or who answers. Remove it.`,
  );
}

/** The fields of a form that a server outside is sent, by their names as far as a bracket. Throws DialectError. */
export function fieldsForOutside<T extends { name: string }>(form: readonly T[], route: Route): T[] {
  const stems = form.map(({ name }) => name.split('[', 1)[0] ?? name);
  const sent = forOutside(Object.fromEntries(stems.map((name) => [name, true])), route);
  return form.filter((_, at) => sent[stems[at] ?? ''] !== undefined);
}

/** The trials of Anthropic's interface that a server outside is told of; undefined for none. */
export function trialsForOutside(trials: string): string | undefined {
  const usual = trials
    .split(',')
    .map((one) => one.trim())
    .filter((one) => USUAL_TRIAL.test(one));
  return usual.length === 0 ? undefined : usual.join(',');
}

/** The same objects with the tools of each that clients run. Throws DialectError for another that is more than declared. */
function withoutHostedTools(items: readonly unknown[], isForced: boolean): unknown[] {
  return items.map((item) => {
    if (!isObject(item) || !Array.isArray(item.tools)) return item;
    const given: unknown[] = item.tools;
    const hosted = objectsOf(given).filter(isHosted);
    const refused = isForced ? hosted[0] : hosted.find(({ type }) => !WEB_SEARCH.test(textValue(type)));
    if (refused !== undefined)
      throw unsupported(
        'tools',
        `The tool '${excerpt(refused.type)}' runs at the server, which is outside the cluster, and is not available. Remove it or declare a function.`,
      );
    const tools = withoutHostedTools(given, isForced);
    const isSame = hosted.length === 0 && tools.every((tool, at) => tool === given[at]);
    return isSame ? item : { ...item, tools: objectsOf(tools).filter((tool) => !isHosted(tool)) };
  });
}

function isHosted(tool: Json): boolean {
  return tool.type !== undefined && (!CLIENT_TOOL.test(textValue(tool.type)) || isShellOfServer(tool));
}

/** The same value where no mark in it says how long, or for whom, a cache is to keep it. */
function withoutLifetimes(value: unknown): unknown {
  if (Array.isArray(value)) {
    const parts = value.map(withoutLifetimes);
    return parts.every((part, at) => part === value[at]) ? value : parts;
  }
  if (!isObject(value)) return value;
  let changed: Json | undefined;
  for (const [name, inner] of Object.entries(value)) {
    if (isFreeData(name, value, false)) continue;
    const other = CACHE_MARK.test(name) ? withoutLifetime(inner) : withoutLifetimes(inner);
    if (other !== inner) (changed ??= { ...value })[name] = other;
  }
  return changed ?? value;
}

function withoutLifetime(mark: unknown): unknown {
  if (!isObject(mark)) return mark;
  const bare = pick(mark, ['type', 'mode']);
  return Object.keys(bare).length === Object.keys(mark).length ? mark : bare;
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && value !== false && !(Array.isArray(value) && value.length === 0);
}

function isForced(choice: unknown): boolean {
  const mode = isObject(choice) ? choice.type : choice;
  return mode !== undefined && mode !== null && mode !== 'auto' && mode !== 'none';
}

/** The name of the first field that names something kept, or of a tool of the server's, at any depth. */
function keptIn(value: unknown, isBody: boolean): string | undefined {
  if (Array.isArray(value)) {
    for (const inner of value) {
      const found = keptIn(inner, false);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  if (!isObject(value)) return undefined;
  // Anthropic's way to declare a tool in the middle of a conversation.
  if (value.type === 'tool_definition' && isObject(value.definition) && isHosted(value.definition)) return value.type;
  for (const [name, inner] of Object.entries(value)) {
    if (KEPT.has(name) && isGiven(inner)) return name;
    const found = isFreeData(name, value, isBody) ? undefined : keptIn(inner, false);
    if (found !== undefined) return found;
  }
  return undefined;
}
