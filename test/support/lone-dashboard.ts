import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { pino } from 'pino';
import { errorHandler } from '../../src/http/interface/errors/handler.ts';
import type { KubeClient } from '../../src/kube/client/client.ts';
import type { Clock } from '../../src/lib/clock.ts';
import type { ApiKey } from '../../src/resources/api-key.ts';
import { EndedSessions } from '../../src/web/ended-sessions.ts';
import type { KeyDays } from '../../src/web/key-life.ts';
import { dashboardRouter } from '../../src/web/router.ts';
import { SignInCodes } from '../../src/web/sign-in-codes.ts';
import { FakeStore } from './fake-store.ts';
import { memorySecrets } from './memory-secrets.ts';

/** What the page sends with every call that changes something. */
export const PAGE_HEADERS = { 'content-type': 'application/json', 'x-berth-dashboard': '1' };

export interface LoneDashboard extends AsyncDisposable {
  /** Of its endpoints. */
  url: string;
  /** Signs in and returns the cookie of the session. */
  signIn(): Promise<string>;
}

/** The dashboard in this process, without a cluster. */
export async function startLoneDashboard(options: {
  /** Calls of the API server; TokenReview takes a `raw`. */
  client: Partial<KubeClient>;
  clock: Clock;
  webhooks?: boolean;
  keyDays?: KeyDays;
  /** What the replicas of a dashboard share. */
  secrets?: Pick<KubeClient, 'get' | 'create' | 'patch'>;
}): Promise<LoneDashboard> {
  const { client, clock, webhooks = false, keyDays = { default: 0, max: 0 }, secrets = memorySecrets() } = options;
  const log = pino({ level: 'silent' });
  const sessionKey = () => Promise.resolve(Buffer.alloc(32, 1));
  const stores = { apiKeys: new FakeStore<ApiKey>() };
  const app = express();
  const deps = {
    client: client as KubeClient,
    stores,
    clock,
    log,
    sessionKey,
    ended: new EndedSessions({ client: secrets, clock, namespace: 'berth-system' }),
    webhooks,
    keyDays,
    codes: new SignInCodes(clock),
  };
  app.use('/dashboard', dashboardRouter(deps));
  app.use(errorHandler(log));
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/dashboard/api`;
  return {
    url,
    async signIn() {
      const body = JSON.stringify({ token: 'opaque' });
      const answer = await fetch(`${url}/session`, { method: 'POST', headers: PAGE_HEADERS, body });
      return answer.headers.get('set-cookie')?.split(';', 1)[0] ?? '';
    },
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
