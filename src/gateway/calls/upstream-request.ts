import {
  chooseUpstream,
  DialectError,
  quirksOf,
  translateRequest,
  type Dialect,
  type Quirks,
} from '../dialects/index.ts';
import type { Member } from '../balance/pool.ts';
import type { Call } from './call.ts';

/** How a call is sent to one endpoint. */
export interface Plan {
  /** The dialect that the endpoint is spoken to. */
  dialect: Dialect;
  native: boolean;
  quirks: Quirks;
  path: string;
  body: Buffer;
}

const PATHS = {
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
  messages: '/v1/messages',
} as const satisfies Record<Dialect, string>;

/** @throws DialectError when the endpoint cannot serve the call */
export function planFor(call: Call, { endpoint, upstreamModel, contextLength }: Member): Plan {
  const { dialect, features, inspection } = call;
  const { probe } = endpoint;
  const quirks = quirksOf(probe?.engine ?? 'unknown', probe?.version, upstreamModel);
  const choice = chooseUpstream(dialect, probe?.dialects ?? ['chat'], quirks, features);
  if (choice === undefined) {
    throw new DialectError({ status: 503, message: `No server of '${inspection.model}' speaks a known dialect.` });
  }
  const path = `${probe?.prefix ?? ''}${PATHS[choice.dialect]}`;
  const plan = { dialect: choice.dialect, native: choice.native, quirks, path };
  if (goesUnchanged(call, plan, upstreamModel)) return { ...plan, body: call.bytes };
  const { history, references } = call;
  const options = {
    model: upstreamModel,
    quirks,
    history,
    references,
    ...(contextLength !== undefined && { contextLength }),
  };
  const body = translateRequest(dialect, choice.dialect, call.body, options);
  return { ...plan, body: Buffer.from(JSON.stringify(body)) };
}

/** A plain chat request to an engine without quirks: the gateway has nothing to add, so the client's bytes go out. */
function goesUnchanged(
  { dialect, inspection }: Call,
  { native, quirks }: Omit<Plan, 'body'>,
  upstream: string,
): boolean {
  if (dialect !== 'chat' || !native || inspection.stream || inspection.model !== upstream) return false;
  return quirks.honoursToolChoice && quirks.remoteImages;
}
