import { describe, expect, it } from 'vitest';
import { berth, json, list, refuse } from '../../support/scripted-cli.ts';

// What is said after a mistake names what was typed, and a next step that exists.

const OFFER = {
  id: 7,
  gpu_name: 'NVIDIA-L4',
  gpu_count: 1,
  isolation: 'whole',
  available: 1,
  available_by_preemption: 0,
  price_per_hour: { on_demand: '0.44', interruptible: '0.20', currency: 'USD' },
};
const invalid = (...fields: { path: string; expected: string }[]) =>
  refuse(422, 'validation_failed', `The request is not valid. ${fields[0]?.path}: ${fields[0]?.expected}.`, { fields });

describe('what the server refuses of an option', () => {
  it.each([
    [['offers', '--max-price', '9999999999.5'], 'max_price_per_hour', '--max-price'],
    [['offers', '--gpus', '99'], 'gpu_count', '--gpus'],
    [['usage', '--since', '2026-11-01'], 'from', '--since'],
    [['logs', 'i-1', '--tail', '99999'], 'tail', '--tail'],
    [['set', 'i-1', '--idle-timeout', '1s'], 'idle_timeout', '--idle-timeout'],
    [['set', 'i-1', '--key', '1', '--key', '2'], 'ssh_key_ids[1]', '--key'],
  ])('is said of the option: berth %j', async (words, path, option) => {
    const record = json(200, { id: 'i-1', state: 'running' });
    const refusal = invalid({ path, expected: 'write something else' });
    const answers = ['set', 'logs'].includes(words[0] ?? '') ? [record, refusal] : [refusal];
    const isForm = words.includes('9999999999.5');
    const { code, said, seen } = await berth(words, answers);
    expect(code).toBe(2);
    if (isForm) expect(seen).toEqual([]);
    else
      expect(said).toBe(
        `berth: The command line is not valid. ${option}: write something else.\nberth ${words[0]} --help says what each option takes.`,
      );
  });

  it('is said as the server says it where no option has it', async () => {
    const { code, said } = await berth(['ssh-keys', 'rm', '7'], [invalid({ path: 'name', expected: 'too long' })]);
    expect(code).toBe(1);
    expect(said).toContain('berth: The request is not valid. name: too long.');
    expect(said).not.toContain('COMMAND');
  });
});

it('a time or an amount of another form is refused before anything is asked, and nothing is rented', async () => {
  for (const wrong of [
    ['--max-duration', '12'],
    ['--max-price', 'cheap'],
    ['--disk', 'ten'],
    ['--key', 'laptop'],
  ]) {
    const { code, said, seen } = await berth(['rent', '--yes', ...wrong], [list(OFFER)]);
    expect([code, seen]).toEqual([2, []]);
    expect(said).toMatch(new RegExp(`^berth: ${wrong.join(' ')} is not valid: write `));
  }
});

describe('where nothing fits', () => {
  it('says so, and promises no line to wait in', async () => {
    for (const more of [[], ['--queue']]) {
      const { code, said } = await berth(['rent', '--gpus', '3', '--yes', ...more], [list()]);
      expect(code).toBe(5);
      expect(said).toMatch(/^berth: No offer fits/);
      expect(said).toContain('berth offers --all lists all');
      expect(said).not.toContain('--queue');
    }
  });

  it('says what there is in the place of a GPU that is not there, and asks for nothing', async () => {
    const { code, said, seen } = await berth(['rent', '--gpu', 'zzz', '--yes'], [list(OFFER)]);
    expect([code, said]).toEqual([5, 'berth: No GPU that fits is called zzz.\nThere are: NVIDIA-L4.']);
    expect(seen).toHaveLength(1);
  });

  it('promises the line where there is one', async () => {
    const { code, said } = await berth(['rent', '--yes'], [list({ ...OFFER, available: 0 })]);
    expect(code).toBe(5);
    expect(said).toContain('berth offers --all shows what is taken. Add --queue to wait in line.');
  });
});

it('the next step names the instance that was named', async () => {
  const record = json(200, { id: 'i-1', name: 'train', state: 'failed' });
  const refusal = refuse(409, 'instance_not_running', 'The instance is failed.');
  const { said } = await berth(['logs', 'train'], [record, refusal]);
  expect(said).toBe(
    'berth: The instance is failed.\nberth show train says why, and berth start train starts one that is stopped or failed.',
  );
  const odd = await berth(['logs', 'two words; rm'], [record, refusal]);
  expect(odd.said).toContain('berth show INSTANCE says why');
});

it.each([['-v'], ['--version'], ['version']])('berth %s is the version', async (word) => {
  expect(await berth([word], [json(200, {})])).toMatchObject({ code: 0, out: '1.2.3\n', seen: [] });
});

describe('berth whoami', () => {
  const limits = {
    namespace: 'ml-team',
    caller: { id: 'key/key-1', name: 'laptop', scopes: ['compute:read', 'models'] },
  };

  it('says which server, project and key the next commands use, and shows no key', async () => {
    const { code, out, seen } = await berth(['whoami'], [json(200, limits)]);
    expect(code).toBe(0);
    expect(out).toMatch(
      /^server +http:\/\/127\.0\.0\.1:\d+\nlogin +BERTH_API_KEY\nproject +ml-team\nkey +laptop \(key\/key-1\)\nscopes +compute:read, models\n$/,
    );
    expect(seen.map(({ line }) => line)).toEqual(['GET /api/v1/limits']);
    const record = JSON.parse((await berth(['whoami', '--json'], [json(200, limits)])).out) as object;
    expect(record).toMatchObject({ profile: null, ...limits });
  });

  it('says that there is no access where a key is over', async () => {
    expect((await berth(['whoami'], [refuse(401, 'invalid_api_key', 'Invalid API key.')])).code).toBe(3);
  });
});

describe('berth usage', () => {
  const amount = {
    cost: '0',
    currency: 'USD',
    gpu_seconds: 0,
    calls: 0,
    input_tokens: 0,
    output_tokens: 0,
    open: false,
  };
  const item = (group: string, more: object = {}) => ({ ...amount, group, name: null, product: 'NVIDIA-L4', ...more });
  const counted = Object.fromEntries(
    ['instances', 'ssh_keys', 'templates', 'api_keys', 'registries', 'webhooks'].map((name) => [
      name,
      { used: 0, limit: 1 },
    ]),
  );
  const limits = { ...counted, policies: [], gpus_used: 0, gpus: [], budget: null, key_budget: null };

  async function usage(items: object[], width?: number) {
    const spent = { from: 'a', to: 'b', group: 'instance', items, totals: [amount] };
    const answer = (response: never, seen: { line: string }) =>
      json(200, seen.line.includes('/usage') ? spent : limits)(response, seen as never);
    return (await berth(['usage'], [answer as never], [], width === undefined ? {} : { width })).out;
  }

  it('names instances as people do', async () => {
    const out = await usage([
      item('i-1', { name: 'train', cost: '4.00', gpu_seconds: 7200 }),
      item('i-2', { cost: '1.00' }),
    ]);
    expect(out).toMatch(/^ID +NAME +GPU/m);
    expect(out).toMatch(/^i-1 +train +NVIDIA-L4 +2\.00 +4\.00 USD/m);
    expect(out).toMatch(/^i-2 +- +NVIDIA-L4/m);
  });

  it('has one line on a screen for all that is less than a cent, and each of them in a pipe', async () => {
    const small = [1, 2, 3].map((index) => item(`i-small${index}`, { cost: '0.001', gpu_seconds: 3 }));
    const items = [item('i-large', { cost: '4.00' }), item('i-grows', { open: true }), ...small];
    const screen = await usage(items, 100);
    expect(screen).toContain('i-large');
    expect(screen).toContain('i-grows');
    expect(screen).not.toContain('i-small');
    expect(screen).toContain('\n3 more with 0.0030 USD together: --json has all.\n');
    expect((await usage(items)).match(/i-small/g)).toHaveLength(3);
    expect(await usage(items.slice(0, 3), 100)).toContain('i-small1');
  });
});
