import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { requestLog } from '../../../src/http/server/request-log.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { mintToken } from '../../../src/resources/api-key.ts';
import { waitFor } from '../../support/wait-for.ts';

it('leaves no part of a key in a path, whatever characters it has', async () => {
  const lines: string[] = [];
  const app = express();
  const log = pino({}, { write: (line: string) => lines.push(line) });
  app.use(requestLog({ log, clock: systemClock() }), (_, response) => void response.end());
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const tokens = ['berth_-secret', 'berth_ab-secret', 'berth_a_b--secret', mintToken().token];
  await fetch(`http://127.0.0.1:${port}/x/${tokens.join('/')}/end`).then((answer) => answer.text());
  const [line = ''] = await waitFor('the line', () => lines.length === 1 && lines);
  expect(line).toContain('"path":"/x/berth_…/berth_…/berth_…/berth_…/end"');
  await new Promise((resolve) => server.close(resolve));
});
