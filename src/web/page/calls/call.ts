import type { OfferRecord } from '../../../wire/records.ts';

interface Failure {
  message: string;
  code: string;
  fields?: { path: string; expected: string }[];
  alternatives?: OfferRecord[];
}

/** What the API or the dashboard refused, in its own words. */
export class CallError extends Error {
  override name = 'CallError';
  readonly status: number;
  readonly failure: Failure;

  constructor(status: number, failure: Failure) {
    super(failure.message);
    this.status = status;
    this.failure = failure;
  }

  get code(): string {
    return this.failure.code;
  }
}

/** The error of an answer that is none of the expected; also of a proxy that answers in no JSON. */
export async function errorOf(response: Response): Promise<CallError> {
  const fallback = { message: `The server answered ${response.status}. Try again.`, code: 'unknown' };
  const body: unknown = await response.json().catch(() => undefined);
  return new CallError(response.status, (body as { error?: Failure } | undefined)?.error ?? fallback);
}

export function messageOf(error: unknown): string {
  if (error instanceof CallError) {
    const fields = error.failure.fields?.map(({ path, expected }) => `${path}: ${expected}.`) ?? [];
    return [error.message, ...fields].join(' ');
  }
  if (error instanceof TypeError) return 'The server cannot be reached. Check the connection and try again.';
  return error instanceof Error ? error.message : String(error);
}

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

async function answerOf<T>(response: Response): Promise<T> {
  if (!response.ok) throw await errorOf(response);
  return (await response.json()) as T;
}

/** Calls what only the dashboard has: the session, the keys and the tokens. Rejects with `CallError`. */
export async function callDashboard<T>(method: Method, path: string, body?: unknown): Promise<T> {
  const headers = { 'x-berth-dashboard': '1', ...(body !== undefined && { 'content-type': 'application/json' }) };
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  return answerOf(await fetch(`/dashboard/api${path}`, { method, credentials: 'same-origin', headers, ...sent }));
}

interface Token {
  namespace: string;
  token: string;
  scopes: string[];
  /** Milliseconds of `performance.now()`. */
  until: number;
}

/** Milliseconds. The token is good for longer, so that a call that is under way does not meet its end. */
const KEEP_MS = 10_000;
let current: Promise<Token> | undefined;
let currentNamespace = '';

let hear: (token: Pick<Token, 'namespace' | 'scopes'>) => void = () => undefined;

/** Tells of each new token what it lets the person do: roles are given and taken, and a first try may have failed. */
export function hearTokens(listener: typeof hear): void {
  hear = listener;
}

async function newToken(namespace: string): Promise<Token> {
  const { token, scopes } = await callDashboard<Omit<Token, 'until'>>('POST', '/token', { namespace });
  hear({ namespace, scopes });
  return { namespace, token, scopes, until: performance.now() + KEEP_MS };
}

/** The token for a tenant: the one of the last seconds, or a new one. It is in the memory of the page and nowhere else. */
export async function tokenFor(namespace: string): Promise<Token> {
  const known = currentNamespace === namespace ? await current?.catch(() => undefined) : undefined;
  if (known !== undefined && known.until > performance.now()) return known;
  currentNamespace = namespace;
  current = newToken(namespace);
  return current;
}

export function forgetToken(): void {
  current = undefined;
}

type ApiRequest = Pick<RequestInit, 'method' | 'body' | 'signal'> & { headers?: Record<string, string> };

/**
 * One request to the API with the token of the tenant. When it has ended before its time, as on a machine that slept,
 * the request is sent again with another one.
 */
export async function fetchApi(namespace: string, path: string, options: ApiRequest): Promise<Response> {
  const send = async (): Promise<Response> => {
    const { token } = await tokenFor(namespace);
    const headers = { ...options.headers, authorization: `Bearer ${token}` };
    return fetch(`/api/v1${path}`, { ...options, credentials: 'omit', headers });
  };
  const response = await send();
  if (response.status !== 401) return response;
  forgetToken();
  return send();
}

function asJson(body: unknown, headers: Record<string, string> = {}): Pick<ApiRequest, 'body' | 'headers'> {
  return { body: JSON.stringify(body), headers: { 'content-type': 'application/json', ...headers } };
}

/** Calls the API as any key could. Rejects with `CallError`. */
export async function callApi<T>(namespace: string, method: Method, path: string, body?: unknown): Promise<T> {
  return answerOf(await fetchApi(namespace, path, { method, ...(body !== undefined && asJson(body)) }));
}

/** Makes something once: when the answer is lost, the same call with the same key makes nothing more. Rejects with `CallError`. */
export async function callOnce<T>(namespace: string, path: string, body: unknown, key: string): Promise<T> {
  return answerOf(await fetchApi(namespace, path, { method: 'POST', ...asJson(body, { 'idempotency-key': key }) }));
}
