/**
 * The endpoints of the model gateway, each method and path in a row. What serves them, the OpenAPI document, the answers
 * to OPTIONS and to wrong methods, the shapes of errors and the headers of keys all follow from the row.
 */
export interface ModelEndpoint {
  method: 'get' | 'post' | 'delete';
  /**
   * Relative to the API base, with parameters as OpenAPI writes them; `{id...}` takes the rest of the path. A path
   * without parameters stands before one that would take it too.
   */
  path: string;
  /** The operationId, also of an endpoint that is in no document. */
  id: string;
  /** Whose clients call it, and so the shape of its errors. The same for all paths with the same first part. */
  errors: 'openai' | 'anthropic';
  /** What serves a POST to exactly this path. Absent: the gateway gives the answer of this id itself. */
  call?: ModelCall;
  /** Absent: the OpenAPI document leaves it out. */
  openApi?: {
    summary: string;
    /** By their names among the schemas of the document. */
    request?: 'ModelRequest' | 'WholeModelRequest' | 'ModelForm';
    success: { schema: 'ModelList' | 'ModelResponse'; description: string };
  };
}

type ModelCall =
  /** A call in a dialect; one of responses may have its conversation summed up. */
  | { dialect: 'chat' | 'responses' | 'messages'; compacts?: true }
  /** Passed on as it is, to the servers that have the route. */
  | {
      plain: string;
      /** Paths behind the path prefix of a server, in the order in which they are tried. */
      upstream: readonly string[];
      /** What the semantic conventions for generative AI call it, if they have a name for it. */
      operation: string;
      /** The body is a form, not JSON. */
      form?: true;
    }
  /** Counts the tokens of a body in a dialect. */
  | { counts: 'responses' | 'messages' };

const ANSWER = { schema: 'ModelResponse', description: "The model's answer." } as const;
const STREAMED = { request: 'ModelRequest', success: ANSWER } as const;
const WHOLE = { request: 'WholeModelRequest', success: ANSWER } as const;
const FORM = { request: 'ModelForm', success: ANSWER } as const;

/**
 * The name of a field of a form. A list has `[]` behind it, a field of an object its own name. Some servers ignore case, so
 * there are no capitals. `_charset_` would change how the rest is read.
 */
export const FORM_FIELD = /^[a-z][a-z0-9_.-]{0,63}(?:\[[a-z0-9_-]{0,63}\]){0,8}$/;

export const MODEL_ENDPOINTS = [
  {
    method: 'get',
    path: '/models',
    id: 'listModels',
    errors: 'openai',
    openApi: {
      summary: 'List the models that the cluster serves',
      success: { schema: 'ModelList', description: 'All models.' },
    },
  },
  {
    method: 'post',
    path: '/chat/completions',
    id: 'createChatCompletion',
    errors: 'openai',
    call: { dialect: 'chat' },
    openApi: { summary: "OpenAI's Chat Completions API", ...STREAMED },
  },
  {
    method: 'post',
    path: '/responses',
    id: 'createResponse',
    errors: 'openai',
    call: { dialect: 'responses' },
    openApi: { summary: "OpenAI's Responses API", ...STREAMED },
  },
  {
    method: 'post',
    path: '/responses/compact',
    id: 'compactResponse',
    errors: 'openai',
    call: { dialect: 'responses', compacts: true },
    openApi: { summary: "OpenAI's Responses API: sum up a conversation", ...WHOLE },
  },
  {
    method: 'post',
    path: '/messages',
    id: 'createMessage',
    errors: 'anthropic',
    call: { dialect: 'messages' },
    openApi: { summary: "Anthropic's Messages API", ...STREAMED },
  },
  {
    method: 'post',
    path: '/embeddings',
    id: 'createEmbedding',
    errors: 'openai',
    call: { plain: 'embeddings', upstream: ['/v1/embeddings'], operation: 'embeddings' },
    openApi: { summary: "OpenAI's Embeddings API", ...WHOLE },
  },
  {
    method: 'post',
    path: '/rerank',
    id: 'createRerank',
    errors: 'openai',
    // Text Embeddings Inference and Infinity have it without /v1.
    call: { plain: 'rerank', upstream: ['/v1/rerank', '/rerank'], operation: 'rerank' },
    openApi: { summary: 'Rerank API of Jina and Cohere', ...WHOLE },
  },
  {
    method: 'post',
    path: '/score',
    id: 'createScore',
    errors: 'openai',
    call: { plain: 'score', upstream: ['/score', '/v1/score'], operation: 'score' },
    openApi: { summary: 'Score API of vLLM', ...WHOLE },
  },
  {
    method: 'post',
    path: '/completions',
    id: 'createCompletion',
    errors: 'openai',
    call: { plain: 'completions', upstream: ['/v1/completions'], operation: 'text_completion' },
    openApi: { summary: "OpenAI's Completions API", ...STREAMED },
  },
  {
    method: 'post',
    path: '/audio/transcriptions',
    id: 'createTranscription',
    errors: 'openai',
    call: { plain: 'transcriptions', upstream: ['/v1/audio/transcriptions'], operation: 'transcription', form: true },
    openApi: { summary: "OpenAI's Transcriptions API", ...FORM },
  },
  {
    method: 'post',
    path: '/audio/translations',
    id: 'createTranslation',
    errors: 'openai',
    call: { plain: 'translations', upstream: ['/v1/audio/translations'], operation: 'translation', form: true },
    openApi: { summary: "OpenAI's Translations API", ...FORM },
  },
  {
    method: 'post',
    path: '/audio/speech',
    id: 'createSpeech',
    errors: 'openai',
    call: { plain: 'speech', upstream: ['/v1/audio/speech'], operation: 'speech' },
    openApi: { summary: "OpenAI's Speech API", ...WHOLE },
  },
  {
    method: 'post',
    path: '/images/generations',
    id: 'createImage',
    errors: 'openai',
    call: { plain: 'images', upstream: ['/v1/images/generations'], operation: 'image_generation' },
    openApi: { summary: "OpenAI's Images API", ...WHOLE },
  },
  {
    method: 'post',
    path: '/images/edits',
    id: 'editImage',
    errors: 'openai',
    call: { plain: 'image-edits', upstream: ['/v1/images/edits'], operation: 'image_edit', form: true },
    openApi: { summary: "OpenAI's Images API: change images", ...FORM },
  },
  {
    method: 'post',
    path: '/messages/count_tokens',
    id: 'countMessageTokens',
    errors: 'anthropic',
    call: { counts: 'messages' },
  },
  {
    method: 'post',
    path: '/responses/input_tokens',
    id: 'countInputTokens',
    errors: 'openai',
    call: { counts: 'responses' },
  },
  // Names of models have slashes.
  { method: 'get', path: '/models/{id...}', id: 'readModel', errors: 'openai' },
  { method: 'get', path: '/responses/{id}', id: 'readResponse', errors: 'openai' },
  { method: 'delete', path: '/responses/{id}', id: 'deleteResponse', errors: 'openai' },
  { method: 'get', path: '/responses/{id}/input_items', id: 'listInputItems', errors: 'openai' },
  { method: 'post', path: '/responses/{id}/cancel', id: 'cancelResponse', errors: 'openai' },
] as const satisfies readonly ModelEndpoint[];

/** What clients of OpenAI and Anthropic call and nobody serves here, with what there is instead. */
export const ABSENT_ENDPOINTS = [
  {
    path: '/realtime',
    errors: 'openai',
    help: 'The Realtime API is not served. Stream /responses or /chat/completions.',
  },
  {
    path: '/messages/batches',
    errors: 'anthropic',
    help: 'Message batches are not served. Send the messages one by one.',
  },
  { path: '/batches', errors: 'openai', help: 'The Batch API is not served. Send the requests one by one.' },
  { path: '/files', errors: 'openai', help: 'Uploaded files are not kept. Send text and images in the call itself.' },
  {
    path: '/conversations',
    errors: 'openai',
    help: "Conversations are not kept. Continue with 'previous_response_id'.",
  },
] as const satisfies readonly { path: string; errors: ModelEndpoint['errors']; help: string }[];

type Row = (typeof MODEL_ENDPOINTS)[number];

/** A call that is passed on as it is, by name. */
export type PlainRoute = Extract<Row, { call: { plain: string } }>['call']['plain'];

/** An answer that the gateway gives itself, by the id of its endpoint. */
export type OwnAnswer = Exclude<Row, { call: object }>['id'];
