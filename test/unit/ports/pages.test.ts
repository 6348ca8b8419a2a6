import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import pino from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Principal, VouchQuestion } from '../../../src/access/principal.ts';
import type { Pod } from '../../../src/kube/types.ts';
import { InstancePorts } from '../../../src/ports/instance-ports.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { fakeClock, type FakeClock } from '../../support/fake-clock.ts';
import { accessWhile } from '../../support/access.ts';
import { FakeStore } from '../../support/fake-store.ts';

const UID = '0f7b3f3e-3c44-4b6e-9a51-5a1b9f8d2c10';
const USER = { keyId: 'k', namespace: 't' };

let server: Server;
let ports: InstancePorts;
let clock: FakeClock;
let instances: FakeStore<GpuInstance>;
let isWithinLimit: boolean;
let isAuthorized: boolean;
/** What the dashboard was asked, and what it answers. */
let asked: VouchQuestion[];
let answerOfDashboard: () => number | undefined;

function instance(reason: string): GpuInstance {
  const conditions = [{ type: 'Jupyter', status: 'False', reason, message: 'The image has no jupyter.' }];
  const status = { podName: 'lab-1', runtype: 'jupyter', conditions };
  return { metadata: { namespace: 't', name: 'lab', uid: UID }, spec: {}, status } as unknown as GpuInstance;
}

const POD = {
  metadata: { namespace: 't', name: 'lab-1', uid: 'p' },
  spec: { containers: [{ name: 'main', ports: [{ containerPort: 8080, protocol: 'TCP' }, { containerPort: 7000 }] }] },
  status: { containerStatuses: [{ name: 'main', state: { running: {} } }] },
} as unknown as Pod;

beforeEach(async () => {
  [isWithinLimit, isAuthorized] = [true, true];
  clock = fakeClock();
  asked = [];
  answerOfDashboard = () => clock.now() + 20_000;
  instances = new FakeStore<GpuInstance>();
  instances.put(instance('Answers'));
  const pods = new FakeStore<Pod>();
  pods.put(POD);
  const uses = new Map<string, number>();
  const key = randomBytes(32);
  ports = new InstancePorts({
    // Nothing listens there: what comes so far is told that the port does not answer.
    endpoint: { server: 'http://127.0.0.1:1', tls: {}, headers: () => Promise.resolve({}) },
    instances,
    pods,
    base: new URL('http://localhost'),
    sessionKey: () => Promise.resolve(key),
    countUse: (id) => {
      uses.set(id, (uses.get(id) ?? 0) + 1);
      return Promise.resolve(uses.get(id) ?? 0);
    },
    countCall: () => Promise.resolve(isWithinLimit ? undefined : 'Wait.'),
    isAuthorized: ({ vouchedUntil = Infinity }) => isAuthorized && vouchedUntil > clock.now(),
    vouch: async (question) => {
      asked.push(question);
      return answerOfDashboard();
    },
    access: accessWhile().access,
    activity: { began: () => () => undefined },
    countConnection: () => undefined,
    clock,
    log: pino({ level: 'silent' }),
  });
  server = createServer((request, response) => {
    const host = ports.hostOf(request);
    const accepted = (): Promise<void> => Promise.resolve();
    const sender = { address: '192.0.2.1', protocol: 'http' } as const;
    const answer = (send: () => void): void => send();
    if (host !== undefined) void ports.page({ request, response, upgrade: undefined, sender, accepted, answer }, host);
    else response.writeHead(418).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(() => {
  server.close();
});

/** The cookies that an answer sets, as a browser sends them. */
async function get(path: string, headers: Record<string, string>): Promise<{ status: number; cookie: string }> {
  const { port } = server.address() as AddressInfo;
  const request = httpRequest({ host: '127.0.0.1', port, path, headers, setHost: false });
  request.end();
  const [answer] = (await once(request, 'response')) as [IncomingMessage];
  await text(answer);
  const pairs = (answer.headers['set-cookie'] ?? []).map((cookie) => cookie.split(';', 1)[0]);
  return { status: answer.statusCode ?? 0, cookie: pairs.join('; ') };
}

async function link(port = 7000, user: Pick<Principal, 'keyId' | 'namespace' | 'session'> = USER): Promise<URL> {
  const found = instances.get('t/lab');
  if (found === undefined) throw new Error('no instance');
  return new URL((await ports.link({ user, instance: found, port, prefix: '', path: '/' })).url);
}

async function visitor(user = USER): Promise<{ host: string; cookie: string }> {
  const { host, pathname, search } = await link(7000, user);
  const { cookie } = await get(pathname + search, { host });
  return { host, cookie };
}

describe('a visitor', () => {
  it('goes to the pod while key, instance and limit allow it', async () => {
    const known = await visitor();
    expect((await get('/', known)).status).toBe(502);
    isWithinLimit = false;
    expect((await get('/', known)).status).toBe(429);
    isWithinLimit = true;
    isAuthorized = false;
    expect((await get('/', known)).status).toBe(401);
    isAuthorized = true;
    instances.remove('t/lab');
    expect((await get('/', known)).status).toBe(401);
  });

  it('is out after twelve hours', async () => {
    const known = await visitor();
    clock.stall(12 * 3_600_000 - 1);
    expect((await get('/', known)).status).toBe(502);
    clock.stall(1);
    expect((await get('/', known)).status).toBe(401);
  });
});

describe('a person', () => {
  const person = (id = 'ab', session = 'sealed') => ({
    keyId: `person/${id}/${clock.now() + 3_600_000}`,
    namespace: 't',
    session,
  });

  it('is asked for at the dashboard, twice a second at most, and is out at once when it says no', async () => {
    const known = await visitor(person());
    for (let count = 0; count < 5; count += 1) expect((await get('/', known)).status).toBe(502);
    expect(asked).toEqual([{ session: 'sealed', namespace: 't', scope: 'compute:write' }]);
    answerOfDashboard = () => undefined;
    clock.stall(500);
    expect((await get('/', known)).status).toBe(401);
    expect(asked).toHaveLength(2);
  });

  it('has no use of a link once the role is gone', async () => {
    const { host, pathname, search } = await link(7000, person());
    answerOfDashboard = () => undefined;
    expect((await get(pathname + search, { host })).status).toBe(401);
    // It was not used up.
    answerOfDashboard = () => clock.now() + 20_000;
    clock.stall(500);
    expect((await get(pathname + search, { host })).status).toBe(302);
  });

  it('comes in with the sign-in that the link is for, and with no other, which nobody is asked about', async () => {
    const [{ host, cookie }, other] = [await visitor(person()), await visitor(person('cd', 'of-another'))];
    const before = asked.length;
    const [port = '', session = ''] = cookie.split('; ');
    const [, theirs = ''] = other.cookie.split('; ');
    for (const given of [port, `${port}; ${theirs}`, `${port}; berth_port_session=`, session])
      expect((await get('/', { host, cookie: given })).status).toBe(401);
    expect(asked).toHaveLength(before);
    expect((await get('/', { host, cookie })).status).toBe(502);
  });

  it('goes on while the dashboard does not answer for as long as it has vouched, and then hears why not', async () => {
    const known = await visitor(person());
    answerOfDashboard = () => {
      throw new Error('no answer');
    };
    clock.stall(19_999);
    expect((await get('/', known)).status).toBe(502);
    clock.stall(1);
    expect((await get('/', known)).status).toBe(503);
  });
});

describe('a link', () => {
  it('opens once, and not after a minute', async () => {
    const { host, pathname, search } = await link();
    expect((await get(pathname + search, { host })).status).toBe(302);
    expect((await get(pathname + search, { host })).status).toBe(401);
    const late = await link();
    clock.stall(60_000);
    expect((await get(late.pathname + late.search, { host })).status).toBe(401);
  });

  it('is refused with the reason when there is no Jupyter, and for ports that are not declared', async () => {
    instances.put(instance('NotInImage'));
    await expect(link(8080)).rejects.toThrow('The image has no jupyter.');
    await expect(link(22)).rejects.toThrow('declares the TCP ports 8080, 7000, and not 22');
    await expect(link()).resolves.toBeDefined();
  });

  it('is refused on a simulated node, and so is what a link opened before', async () => {
    const known = await visitor();
    const simulated = instance('Answers');
    instances.put({
      ...simulated,
      status: { ...simulated.status, claim: { simulated: true } },
    } as unknown as GpuInstance);
    await expect(link()).rejects.toMatchObject({
      problem: 'instance_simulated',
      message: expect.stringContaining('no container runs there') as string,
    });
    expect((await get('/', known)).status).toBe(409);
  });
});
