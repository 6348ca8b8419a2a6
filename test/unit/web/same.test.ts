import { execFileSync } from 'node:child_process';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { gpuInstanceSpecSchema } from '../../../src/resources/instances/gpu-instance.ts';
import { sshKeySpecSchema } from '../../../src/resources/ssh-key.ts';
import { instanceTemplateSpecSchema } from '../../../src/resources/instance-template.ts';
import type * as Lists from '../../../src/web/page/same/same-lists.ts';
import type * as Module from '../../../src/web/page/same/same.ts';

const HOSTILE = `it's "$(touch /tmp/owned)" \`id\` ; rm -rf ~ #`;
const NOW = Date.UTC(2026, 0, 1);

let same: typeof Module;
let lists: typeof Lists;

beforeAll(async () => {
  vi.stubGlobal('location', { origin: 'https://gpu.example.com' });
  same = await import('../../../src/web/page/same/same.ts');
  lists = await import('../../../src/web/page/same/same-lists.ts');
});

/** What a shell makes of a line: the words of each command, and what is piped into the last one. */
function wordsOf(line: string): string[][] {
  const stub = (name: string) => `${name}() { printf '<%s>\\0' ${name} "$@"; printf '\\n\\0'; }`;
  const script = `BERTH_API_KEY=the-key; ${['curl', 'berth', 'kubectl'].map(stub).join('; ')}; folder=$(mktemp -d); trap 'cd /; rm -r "$folder"' EXIT; cd "$folder"; ${line}`;
  const output = execFileSync('sh', ['-c', script], { encoding: 'utf8' });
  return output
    .split('\n\0')
    .filter((part) => part !== '')
    .map((part) =>
      part
        .split('\0')
        .filter((word) => word !== '')
        .map((word) => word.slice(1, -1)),
    );
}

const wordsWith = (line: string | undefined): string[] => wordsOf(line ?? '').at(-1) ?? [];

describe('the same action elsewhere', () => {
  it('keeps what a tenant wrote in one word, and runs none of it', () => {
    const { curl, berth, kubectl } = same.sameChange({ namespace: 'team', id: 'i-1', now: NOW }, { name: HOSTILE });
    expect(JSON.parse(wordsWith(curl).at(-2) ?? '')).toEqual({ name: HOSTILE });
    expect(wordsWith(curl)).toContain('Authorization: Bearer the-key');
    expect(wordsWith(berth)).toEqual(['berth', 'set', 'i-1', `--name=${HOSTILE}`]);
    expect(JSON.parse(wordsWith(kubectl).at(-1) ?? '')).toEqual({ spec: { displayName: HOSTILE } });
  });

  it.each<[string, () => Module.Same, string[]]>([
    [
      'stop',
      () => same.sameChange({ namespace: 'team', id: 'i-1', now: NOW }, { state: 'stopped' }),
      ['berth', 'stop', 'i-1'],
    ],
    [
      'start',
      () => same.sameChange({ namespace: 'team', id: 'i-1', now: NOW }, { state: 'running' }),
      ['berth', 'start', 'i-1'],
    ],
    [
      'no end',
      () => same.sameChange({ namespace: 'team', id: 'i-1', now: NOW }, { max_duration: null }),
      ['berth', 'set', 'i-1', '--max-duration=none'],
    ],
    ['delete', () => same.sameDelete('team', 'i-1'), ['berth', 'rm', '--yes', 'i-1']],
    ['log', () => same.sameLog('team', 'i-1'), ['berth', 'logs', '-f', 'i-1']],
    ['events', () => same.sameEvents('team', 'i-1'), ['berth', 'events', 'i-1']],
    [
      'a webhook',
      () => lists.sameAddWebhook({ url: 'https://a.b/c?d=e&f', events: ['budget.spent'], name: "it's" }),
      ['berth', 'webhooks', 'add', '--event=budget.spent', "--name=it's", 'https://a.b/c?d=e&f'],
    ],
    ['another secret', () => lists.sameRotateWebhook('w-1'), ['berth', 'webhooks', 'rotate', 'w-1']],
    ['a webhook less', () => lists.sameRemoveWebhook('team', 'w-1'), ['berth', 'webhooks', 'rm', 'w-1']],
    ['a key less', () => same.sameRemoveKey('team', 7), ['berth', 'keys', 'rm', '7']],
  ])('%s is a command of berth', (_name, make, words) => {
    expect(wordsWith(make().berth)).toEqual(words);
  });

  it('rents with every field that was filled in', () => {
    const script = `echo 'a'\npip install x`;
    const body = {
      ask_id: 12,
      type: 1,
      runtype: 'jupyter',
      on_no_capacity: 'queue',
      name: '-n',
      template_image: 'vllm/vllm-openai:v0.9.0',
      disk_gb: 20,
      max_duration: '2h',
      max_price_per_hour: '1.20',
      on_start: script,
      run_as_root: true,
      ssh_key_ids: [3, 4],
    } as const;
    const { curl, berth, kubectl } = same.sameRent('team', { ...body, ssh_key_ids: [...body.ssh_key_ids] });
    expect(JSON.parse(wordsWith(curl).at(-2) ?? '')).toEqual(body);
    expect(wordsWith(berth)).toEqual([
      'berth',
      'rent',
      '--yes',
      '--offer=12',
      '--interruptible',
      '--name=-n',
      '--image=vllm/vllm-openai:v0.9.0',
      '--runtype=jupyter',
      '--disk=20',
      '--max-duration=2h',
      '--max-price=1.20',
      '--key=3',
      '--key=4',
      '--on-start=start.sh',
      '--root',
      '--queue',
    ]);
    const manifest = JSON.parse(
      execFileSync('sh', ['-c', (kubectl ?? '').replace('kubectl create -f -', 'cat')], { encoding: 'utf8' }),
    ) as {
      metadata: object;
      spec: object;
    };
    expect(manifest.metadata).toEqual({ generateName: 'i-', namespace: 'team' });
    expect(gpuInstanceSpecSchema.parse(manifest.spec)).toMatchObject({
      offerId: 12,
      type: 'Interruptible',
      displayName: '-n',
      image: body.template_image,
      runtype: 'jupyter',
      diskGb: 20,
      maxDuration: '2h',
      maxPricePerHour: '1.20',
      onStart: script,
      sshKeyIds: [3, 4],
      onNoCapacity: 'Queue',
    });
  });

  it('rents with variables without their values, and with all else that the form has', () => {
    const body = {
      ask_id: 12,
      env: { HF_TOKEN: HOSTILE },
      ports: [{ container_port: 53, protocol: 'udp' as const }],
      args: ['python', HOSTILE],
      runtype: 'args',
      registry: 'ghcr',
      idle_timeout: '30m',
      on_expiry: 'delete' as const,
      on_gpu_failure: 'restart' as const,
      install_monitoring: true,
    };
    const { curl, berth, kubectl } = same.sameRent('team', body);
    expect(JSON.parse(wordsWith(curl).at(-2) ?? '')).toEqual({ ...body, env: { HF_TOKEN: 'VALUE' } });
    expect(wordsWith(berth)).toEqual([
      'berth',
      'rent',
      '--yes',
      '--offer=12',
      '--registry=ghcr',
      '--env=HF_TOKEN',
      '--port=53/udp',
      '--idle-timeout=30m',
      '--on-expiry=delete',
      '--on-gpu-failure=restart',
      '--monitoring',
      '--',
      'python',
      HOSTILE,
    ]);
    const manifest = JSON.parse(
      execFileSync('sh', ['-c', (kubectl ?? '').replace('kubectl create -f -', 'cat')], { encoding: 'utf8' }),
    ) as { spec: object };
    expect(gpuInstanceSpecSchema.parse(manifest.spec)).toMatchObject({
      env: [{ name: 'HF_TOKEN', value: 'VALUE' }],
      ports: [{ containerPort: 53, protocol: 'UDP' }],
      args: body.args,
      runtype: 'args',
      imagePullSecrets: [{ name: 'ghcr' }],
      idleTimeout: '30m',
      onExpiry: 'Delete',
      onGPUFailure: 'Restart',
      installMonitoring: true,
    });
    expect(same.sameRent('team', { command: ['sh'] }).berth).toBeUndefined();
  });

  it('adds an SSH key, and makes and revokes an API key', () => {
    const body = { public_key: "ssh-ed25519 AAAA it's", name: 'laptop' };
    const { berth, kubectl } = same.sameAddKey('team', body);
    expect(wordsWith(berth)).toEqual(['berth', 'keys', 'add', '--name=laptop', 'key.pub']);
    const made = execFileSync('sh', ['-c', (kubectl ?? '').replace('kubectl create -f -', 'cat')], {
      encoding: 'utf8',
    });
    const { spec } = JSON.parse(made) as { spec: { publicKey: string } };
    expect(spec.publicKey).toBe(body.public_key);
    expect(sshKeySpecSchema.shape).toHaveProperty('displayName');
    const key = { namespace: 'team', name: 'CI', scopes: ['models'], expires_at: '2027-01-01T00:00:00.000Z' };
    expect(wordsWith(same.sameMakeApiKey(key).berth)).toEqual([
      'berth',
      'keys',
      'create',
      '--namespace=team',
      '--name=CI',
      '--scopes=models',
      '--expires=2027-01-01T00:00:00.000Z',
    ]);
    const revoke = wordsWith(same.sameRevokeApiKey('team', 'key-1').kubectl);
    expect(revoke.slice(0, 4)).toEqual(['kubectl', 'patch', 'apikey', 'key-1']);
  });

  const TEMPLATE = {
    name: "Ann's",
    image: 'python:3.13',
    disk_gb: 20,
    registry: 'ghcr',
    env: { MODE: HOSTILE },
    ports: [{ container_port: 8000, protocol: 'udp' as const, name: 'api' }],
    on_start: 'echo hi',
  };
  /** The spec that POST /templates makes of it. */
  const SPEC = {
    displayName: "Ann's",
    image: 'python:3.13',
    diskGb: 20,
    onStart: 'echo hi',
    imagePullSecrets: [{ name: 'ghcr' }],
    env: [{ name: 'MODE', value: HOSTILE }],
    ports: [{ containerPort: 8000, protocol: 'UDP', name: 'api' }],
  };

  it('makes and replaces a template with kubectl, as the API would', () => {
    const create = lists.sameWriteTemplate('team', undefined, TEMPLATE).kubectl ?? '';
    const made = execFileSync('sh', ['-c', create.replace('kubectl create -f -', 'cat')], { encoding: 'utf8' });
    const { kind, metadata, spec } = JSON.parse(made) as { kind: string; metadata: object; spec: object };
    expect([kind, metadata]).toEqual(['InstanceTemplate', { generateName: 'tpl-', namespace: 'team' }]);
    expect(spec).toEqual(SPEC);
    expect(instanceTemplateSpecSchema.parse(spec)).toMatchObject(SPEC);
    const replace = wordsWith(lists.sameWriteTemplate('team', 7, TEMPLATE).kubectl);
    expect(JSON.parse(replace.at(-1) ?? '')).toEqual([{ op: 'replace', path: '/spec', value: SPEC }]);
  });

  it.each<[string, () => Module.Same, string[]]>([
    ['an SSH key', () => same.sameRemoveKey('team', 7), ['delete', 'sshkey', '-n', 'team']],
    ['a template', () => lists.sameRemoveTemplate('team', 7), ['delete', 'instancetemplate', '-n', 'team']],
  ])('finds %s by its id with kubectl', (_what, make, words) => {
    const [, kind = ''] = words;
    // What stands in for kubectl says its words, so the inner call is the last word of the outer one.
    const found = `<kubectl><get><${kind}><-n><team><-o><jsonpath={.items[?(@.status.id==7)].metadata.name}>`;
    expect(wordsWith(make().kubectl)).toEqual(['kubectl', ...words, found]);
  });

  it('changes the prices of a pool, whatever a product is called', async () => {
    const { kubectlPool } = await import('../../../src/web/page/same/commands.ts');
    const spec = { currency: 'USD', sizes: [1], prices: [{ product: HOSTILE, onDemand: '1', interruptible: '1' }] };
    const words = wordsWith(kubectlPool('all', spec));
    expect(words.slice(0, 5)).toEqual(['kubectl', 'patch', 'gpupool', 'all', '--type=merge']);
    expect(JSON.parse(words.at(-1) ?? '')).toEqual({ spec });
  });

  it('deletes the login of a registry by its name', () => {
    const { kubectl } = lists.sameRemoveRegistry('team', 'ghcr');
    expect(wordsWith(kubectl)).toEqual(['kubectl', 'delete', 'registrycredential', 'ghcr', '-n', 'team']);
  });
});
