import { findInstance, instancePath } from '../api/find-instance.ts';
import { openUrl } from '../browser.ts';
import type { LinkRecord } from '../../wire/records.ts';
import { usageFailure } from '../failure.ts';
import type { Input } from '../options.ts';
import { printJson, type Session } from '../session.ts';
import { dashboardOf } from '../settings.ts';
import { plain } from '../text.ts';

/** Opens an address where a person sits before a screen, and prints it otherwise. */
async function show(input: Input, { terminal }: Session, url: string): Promise<void> {
  const isOpened = terminal.interactive && terminal.screen && !input.flag('url') && (await openUrl(url));
  if (isOpened) return terminal.say('Opened in your browser.');
  await terminal.out(`${plain(url)}\n`);
}

function portOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw usageFailure(`${text} is no port: write a number from 1 to 65535.`);
}

/** `berth open`: a port of an instance, Jupyter, or the dashboard, in a browser. */
export async function open(input: Input, session: Session): Promise<void> {
  const api = await session.api();
  const [wanted, text] = input.operands;
  const port = portOf(text);
  if (wanted === undefined) {
    const url = dashboardOf(api.url);
    return input.flag('json') ? printJson(session, { url }) : show(input, session, url);
  }
  const { id } = await findInstance(api, wanted);
  const path = input.text('path');
  const body = { ...(port !== undefined && { port }), ...(path !== undefined && { path }) };
  const link = await api.call<LinkRecord>('POST', instancePath(id, '/links'), { body });
  if (input.flag('json')) return printJson(session, link);
  await show(input, session, link.url);
  session.terminal.say(`Port ${link.port} of ${plain(id)}. The link works once, within a minute.`);
}
