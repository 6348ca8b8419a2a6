import { z } from 'zod';
import { createContract } from './contract.ts';

const anything = z.record(z.string(), z.json());
export type Json = z.infer<typeof anything>;

/** An answer with its JSON, as tests look at it. */
export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  /** The body as an object; empty when it is none. */
  json: Json;
  /** `id` of a record, as text. */
  id: string;
  /** `data` of a list. */
  data: Json[];
  /** `error` of an error. */
  error: Json;
}

function asObject(value: unknown): Json {
  const parsed = anything.safeParse(value);
  return parsed.success ? parsed.data : {};
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export type Call = (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Answer>;

const conforms = createContract();

/** A client of the API with one key. Every answer is compared with the OpenAPI description. A string body is sent unchanged. */
export function clientOf(url: string, token: string): Call {
  return async (method, path, body, headers = {}) => {
    const response = await fetch(`${url}/api/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    conforms(method, path, { status: response.status, type: response.headers.get('content-type'), text });
    const json = asObject(parse(text));
    const data = z.array(anything).safeParse(json['data']);
    return {
      status: response.status,
      headers: response.headers,
      text,
      json,
      id: z.coerce.string().catch('').parse(json['id']),
      data: data.success ? data.data : [],
      error: asObject(json['error']),
    };
  };
}
