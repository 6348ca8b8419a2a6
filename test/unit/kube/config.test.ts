import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { loadKubeConfig } from '../../../src/kube/config/config.ts';
import { KubeConfigError } from '../../../src/kube/errors.ts';
import { run } from '../../../tools/lib/shell.ts';
import { fakeClock } from '../../support/fake-clock.ts';

let directory = '';
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-config-'));
});
afterEach(() => rm(directory, { recursive: true }));

async function file(name: string, content: string): Promise<string> {
  await writeFile(join(directory, name), content);
  return join(directory, name);
}

function kubeconfig(user: object, cluster: object = {}): string {
  return JSON.stringify({
    'current-context': 'x',
    clusters: [{ name: 'c', cluster: { server: 'https://api.example:6443/', ...cluster } }],
    users: [{ name: 'u', user }],
    contexts: [
      { name: 'x', context: { cluster: 'c', user: 'u' } },
      { name: 'other', context: { cluster: 'c', user: 'u', namespace: 'team' } },
    ],
  });
}

/** Nothing of this machine: neither its environment nor its files. */
function isolated() {
  return { env: { HOME: directory }, serviceAccountDirectory: directory };
}

describe('a kubeconfig', () => {
  test('with a token', async () => {
    const path = await file('config', kubeconfig({ token: 't' }, { 'insecure-skip-tls-verify': true }));
    const connection = await loadKubeConfig({ kubeconfig: path });
    expect(connection).toMatchObject({
      server: 'https://api.example:6443',
      namespace: 'default',
      tls: { rejectUnauthorized: false },
    });
    expect(await connection.headers()).toEqual({ authorization: 'Bearer t' });
  });

  test('of a server without TLS, as `kubectl proxy` is one', async () => {
    const path = await file('config', kubeconfig({ token: 't' }, { server: 'http://127.0.0.1:8001' }));
    const connection = await loadKubeConfig({ kubeconfig: path });
    expect(connection.server).toBe('http://127.0.0.1:8001');
    expect(await connection.headers()).toEqual({ authorization: 'Bearer t' });
  });

  test('with certificates as data and as files beside it', async () => {
    await file('client.crt', 'CERT');
    const user = { 'client-certificate': 'client.crt', 'client-key-data': Buffer.from('KEY').toString('base64') };
    const cluster = {
      'certificate-authority-data': Buffer.from('CA').toString('base64'),
      'tls-server-name': 'kubernetes',
    };
    const path = await file('config', kubeconfig(user, cluster));
    const { tls, headers } = await loadKubeConfig({ kubeconfig: path });
    expect(tls).toEqual({
      rejectUnauthorized: true,
      ca: Buffer.from('CA'),
      cert: Buffer.from('CERT'),
      key: Buffer.from('KEY'),
      servername: 'kubernetes',
    });
    expect(await headers()).toEqual({});
  });

  test('with a password', async () => {
    const path = await file('config', kubeconfig({ username: 'me', password: 'p' }));
    const { headers } = await loadKubeConfig({ kubeconfig: path });
    expect(await headers()).toEqual({ authorization: `Basic ${Buffer.from('me:p').toString('base64')}` });
  });

  test('with a name and no password', async () => {
    const path = await file('config', kubeconfig({ username: 'me' }));
    const { headers } = await loadKubeConfig({ kubeconfig: path });
    expect(await headers()).toEqual({ authorization: `Basic ${Buffer.from('me:').toString('base64')}` });
  });

  test('with a file for the token, which wins over a token', async () => {
    await file('token', 'from-file\n');
    const path = await file('config', kubeconfig({ token: 't', tokenFile: 'token' }));
    const { headers } = await loadKubeConfig({ kubeconfig: path });
    expect(await headers()).toEqual({ authorization: 'Bearer from-file' });
    await file('token', 'later\n');
    expect(await headers({ refresh: true })).toEqual({ authorization: 'Bearer later' });
  });

  test('with data and files for the same: the data counts', async () => {
    const data = Buffer.from('DATA').toString('base64');
    const user = { 'client-key': 'nowhere', 'client-key-data': data };
    const cluster = { 'certificate-authority': 'nowhere', 'certificate-authority-data': data };
    const { tls } = await loadKubeConfig({ kubeconfig: await file('config', kubeconfig(user, cluster)) });
    expect(tls).toMatchObject({ key: Buffer.from('DATA'), ca: Buffer.from('DATA') });
  });

  test('without a user: the CA of the cluster counts', async () => {
    const content = JSON.parse(kubeconfig({}, { 'certificate-authority-data': 'Q0E=' })) as { contexts: object[] };
    content.contexts = [{ name: 'x', context: { cluster: 'c' } }];
    const { tls, headers } = await loadKubeConfig({ kubeconfig: await file('config', JSON.stringify(content)) });
    expect([tls, await headers()]).toEqual([{ ca: Buffer.from('CA'), rejectUnauthorized: true }, {}]);
  });

  test('with an exec plugin', async () => {
    const credential = JSON.stringify({
      apiVersion: 'client.authentication.k8s.io/v1',
      kind: 'ExecCredential',
      status: { token: 'from-plugin' },
    });
    const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: 'echo', args: [credential] };
    const path = await file('config', kubeconfig({ exec: { ...exec, interactiveMode: 'Never' } }));
    const { headers } = await loadKubeConfig({ kubeconfig: path });
    expect(await headers()).toEqual({ authorization: 'Bearer from-plugin' });
    expect(await headers({ refresh: true })).toEqual({ authorization: 'Bearer from-plugin' });
  }, 20_000);

  test('with an exec plugin whose certificate changes: new connections have the new one', async () => {
    const credential = (name: string) =>
      JSON.stringify({
        apiVersion: 'client.authentication.k8s.io/v1',
        kind: 'ExecCredential',
        status: { clientCertificateData: `${name} certificate`, clientKeyData: `${name} key` },
      });
    const given = await file('credential', credential('first'));
    const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: 'cat', args: [given] };
    const path = await file('config', kubeconfig({ exec: { ...exec, interactiveMode: 'Never' } }));
    const connection = await loadKubeConfig({ kubeconfig: path });
    expect(connection.tls).toMatchObject({ cert: 'first certificate', key: 'first key' });
    const pools = [connection.calls, connection.streams];
    await connection.headers({ refresh: true });
    expect([connection.calls, connection.streams]).toEqual(pools);
    await writeFile(given, credential('second'));
    await connection.headers({ refresh: true });
    expect(connection.tls).toMatchObject({ cert: 'second certificate', key: 'second key' });
    const after = [connection.calls, connection.streams];
    expect(after.filter((pool) => pools.includes(pool))).toEqual([]);
    expect(pools.map(({ closed }) => closed)).toEqual([true, true]);
    await connection.close();
    expect(after.map(({ destroyed }) => destroyed)).toEqual([true, true]);
  }, 20_000);

  test('with an exec plugin that gives a certificate, beside what the file says', async () => {
    const status = { clientCertificateData: 'certificate', clientKeyData: 'key' };
    const exec = { command: 'echo', args: [JSON.stringify({ status })] };
    const cluster = { 'certificate-authority-data': Buffer.from('CA').toString('base64') };
    const path = await file('config', kubeconfig({ exec, username: 'me', password: 'p' }, cluster));
    const { tls, headers } = await loadKubeConfig({ kubeconfig: path });
    expect(tls).toEqual({ ca: Buffer.from('CA'), cert: 'certificate', key: 'key', rejectUnauthorized: true });
    expect(await headers()).toEqual({ authorization: `Basic ${Buffer.from('me:p').toString('base64')}` });
  });

  test('with an exec plugin and a token: the token counts', async () => {
    const exec = { command: 'echo', args: ['{"status":{"token":"from-plugin"}}'] };
    const { headers } = await loadKubeConfig({ kubeconfig: await file('config', kubeconfig({ exec, token: 't' })) });
    expect(await headers()).toEqual({ authorization: 'Bearer t' });
  });

  test('with entries that are merged', async () => {
    const text = `
users: [{ name: u, user: &user { token: t } }, { name: v, user: { <<: *user, username: me } }]
clusters: [{ name: c, cluster: { server: 'https://api.example:6443' } }]
contexts: [{ name: x, context: { cluster: c, user: v } }]
current-context: x`;
    const { headers } = await loadKubeConfig({ kubeconfig: await file('config', text) });
    expect(await headers()).toEqual({ authorization: 'Bearer t' });
  });

  test('another context by name', async () => {
    const path = await file('config', kubeconfig({ token: 't' }));
    expect((await loadKubeConfig({ kubeconfig: path, context: 'other' })).namespace).toBe('team');
  });

  test('several files: the first that has a name wins', async () => {
    const first = await file('a', JSON.stringify({ users: [{ name: 'u', user: { token: 'first' } }] }));
    const second = await file('b', kubeconfig({ token: 'second' }));
    const env = { ...isolated().env, KUBECONFIG: `${first}:${second}` };
    const { headers } = await loadKubeConfig({ ...isolated(), env });
    expect(await headers()).toEqual({ authorization: 'Bearer first' });
  });

  test('several files, as commands pass the variable on; one that is not there is passed over', async () => {
    const choice = await file('choice', JSON.stringify({ 'current-context': 'other' }));
    const config = await file('config', kubeconfig({ token: 't' }));
    const { namespace } = await loadKubeConfig({ kubeconfig: `${join(directory, 'none')}:${choice}:${config}` });
    expect(namespace).toBe('team');
  });

  test.each([
    ['is not there', undefined, 'cannot be read'],
    ['is not YAML', '{token: s3cret', 'is not YAML'],
    ['is YAML of another kind', 's3cret', 'no current-context'],
    ['is empty', '', 'no current-context'],
    ['has one name twice', 'users: []\nusers: [s3cret]', 'is not YAML'],
    [
      'has a plugin that fails',
      kubeconfig({ exec: { command: 'ls', args: ['--no-such'], token: 's3cret' } }),
      'user "u"',
    ],
    ['has no server', '{"clusters":[{"name":"c","cluster":{}}]}', 'not valid'],
    ['has no context', '{}', 'no current-context'],
    ['names a file that is not there', kubeconfig({ 'client-key': 'nowhere' }), 'nowhere'],
    ['impersonates', kubeconfig({ token: 't', as: 'root' }), 'impersonation'],
    ['needs a proxy', kubeconfig({}, { 'proxy-url': 'http://p' }), 'proxy-url'],
  ])('that %s is refused in words, without its secrets', async (_case, content, words) => {
    const path = content === undefined ? join(directory, 'none') : await file('config', content);
    const error = await loadKubeConfig({ kubeconfig: path }).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(KubeConfigError);
    expect(String(error)).toContain(words);
    expect(String(error)).not.toContain('s3cret');
  });
});

describe('in a pod', () => {
  const pod = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' };

  test('the service account is used, and its token read anew after a minute or a 401', async () => {
    await file('ca.crt', 'CA');
    await file('namespace', 'berth-system\n');
    await file('token', 'one\n');
    const clock = fakeClock();
    const connection = await loadKubeConfig({ env: pod, serviceAccountDirectory: directory, clock });
    expect(connection).toMatchObject({ server: 'https://[fd00::1]:443', namespace: 'berth-system' });
    expect(connection.tls).toEqual({ ca: Buffer.from('CA'), rejectUnauthorized: true });
    expect(await connection.headers()).toEqual({ authorization: 'Bearer one' });

    await file('token', 'two');
    await clock.advance(59_000);
    expect(await connection.headers()).toEqual({ authorization: 'Bearer one' });
    await clock.advance(2_000);
    expect(await connection.headers()).toEqual({ authorization: 'Bearer two' });

    await file('token', 'three');
    expect(await connection.headers({ refresh: true })).toEqual({ authorization: 'Bearer three' });

    await rm(join(directory, 'token'));
    expect(await connection.headers({ refresh: true })).toEqual({ authorization: 'Bearer three' });
  });
});

test('a process loads the classes of client-node for a plugin, and for nothing else', async () => {
  for (const name of ['token', 'ca.crt']) await file(name, name);
  const plain = await file('plain', kubeconfig({ token: 't' }));
  const plugin = await file('plugin', kubeconfig({ exec: { command: 'echo', args: ['{"status":{}}'] } }));
  const source = new URL('../../../src/kube/config/config.ts', import.meta.url).href;
  const program = `
    const { registerHooks } = await import('node:module');
    let loaded = false;
    registerHooks({ resolve: (name, context, next) => {
      loaded ||= name === '@kubernetes/client-node';
      return next(name, context);
    } });
    const { loadKubeConfig } = await import(${JSON.stringify(source)});
    const [options] = process.argv.slice(1);
    await loadKubeConfig(JSON.parse(options));
    console.log(loaded);`;
  const loads = async (options: object) => {
    const words = ['--input-type=module', '-e', program, JSON.stringify(options)];
    const { stdout, stderr } = await run(process.execPath, words);
    return stderr || stdout.trim();
  };
  const env = { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' };
  expect(await loads({ env, serviceAccountDirectory: directory })).toBe('false');
  expect(await loads({ kubeconfig: plain })).toBe('false');
  expect(await loads({ kubeconfig: plugin })).toBe('true');
});

test('with nothing configured the error says what was looked for', async () => {
  await expect(loadKubeConfig(isolated())).rejects.toThrow(/not in a pod, no \$KUBECONFIG and no .*\.kube\/config/);
});
