import { usageFailure } from '../failure.ts';
import type { Input } from '../options.ts';
import { fileOf } from '../rent/body.ts';
import { printJson, type Session } from '../session.ts';

/** `berth api`: one call of the HTTP interface, with the key that berth has. */
export async function callApi(input: Input, session: Session): Promise<void> {
  const [path = ''] = input.operands;
  const file = input.text('input');
  const text = file === '-' ? await session.terminal.input() : await fileOf('input', file);
  const method = input.text('method') ?? (text === undefined ? 'GET' : 'POST');
  let body: unknown;
  try {
    body = text === undefined ? undefined : JSON.parse(text);
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    throw usageFailure(`--input is not valid JSON: ${said}.`, 'Write the body of the request as JSON.');
  }
  const api = await session.api();
  const below = `/${path.replace(/^\/+/, '').replace(/^api\/v1\//, '')}`;
  await printJson(session, await api.call(method, below, { body }));
}
