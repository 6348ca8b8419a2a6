process.on('SIGINT', () => process.exit(0));
import type { AddressInfo } from 'node:net';
import express from 'express';
import { startApi } from '../../../src/http/server/server.ts';
import { benchDeps, TOKEN } from './world.ts';

// The process that is measured: the API on one port, and on another a bare Express that answers the same bytes.

const api = await startApi({ ...benchDeps(), address: { host: '127.0.0.1', port: 0 } });
const url = `http://127.0.0.1:${api.address.port}`;
const bare = express();
const server = bare.listen(0, '127.0.0.1', () => {
  process.send?.({ api: api.address.port, bare: (server.address() as AddressInfo).port });
});

process.on('message', (paths: string[] | 'cpu') => {
  if (paths === 'cpu') {
    const { user, system } = process.cpuUsage();
    process.send?.((user + system) / 1000);
    return;
  }
  void (async () => {
    for (const path of paths) {
      const body = await (await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${TOKEN}` } })).text();
      bare.get(path, (_request, response) => {
        response.type('json').send(body);
      });
    }
    process.send?.('ready');
  })();
});
