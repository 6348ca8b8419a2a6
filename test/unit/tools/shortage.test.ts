import { expect, test } from 'vitest';
import { FakeHost } from '../../support/fake-host.ts';
import { shortageOf, type ShortageOptions, skipLine } from '../../support/shortage.ts';

async function lineOf(host: FakeHost, options: Partial<ShortageOptions> = {}): Promise<string | undefined> {
  const shortage = await shortageOf({ host, missing: [], way: undefined, script: 'test', ...options });
  return shortage && skipLine(12, shortage);
}

const user = new FakeHost();
user.isRoot = false;

test('a machine that lacks nothing skips nothing', async () => {
  expect(await lineOf(new FakeHost())).toBeUndefined();
});

test('one command installs what is missing and runs all tests', async () => {
  expect(await lineOf(new FakeHost(), { missing: ['chromium', 'rsync'] })).toBe(
    '12 tests were skipped, because this machine lacks chromium, rsync. This runs them all: npm test -- --yes',
  );
  expect(await lineOf(new FakeHost(), { missing: ['ssh'], script: 'test:faults' })).toMatch(
    /: npm run test:faults -- --yes$/,
  );
});

test('without root it is the line of the package manager', async () => {
  expect(await lineOf(user, { missing: ['chromium'], way: 'built' })).toBe(
    '12 tests were skipped, because containers need root, and this machine lacks chromium. ' +
      'This runs them all: sudo apt-get install -y --no-install-recommends chromium && sudo npm test',
  );
  expect(await lineOf(user, { way: 'built' })).toMatch(/need root\. This runs them all: sudo npm test$/);
});

test('a cluster without a real node of ours is a reason too', async () => {
  expect(await lineOf(new FakeHost(), { way: 'given' })).toMatch(/KUBECONFIG .*: env -u KUBECONFIG npm test$/);
  expect(await lineOf(new FakeHost(), { way: 'kind' })).toMatch(/kind cluster\. They run on another machine\.$/);
});

test('where no command helps, the line says so', async () => {
  const mac = new FakeHost();
  mac.platform = 'darwin';
  expect(await lineOf(mac, { missing: ['chromium'], way: 'built' })).toMatch(
    /Linux, .* They run on another machine\.$/,
  );
  const other = new FakeHost();
  other.manager = undefined;
  expect(await lineOf(other, { missing: ['chromium'] })).toMatch(/chromium\. They run on another machine\.$/);
});
