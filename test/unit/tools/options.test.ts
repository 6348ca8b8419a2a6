import { describe, expect, it } from 'vitest';
import { readOptions } from '../../../tools/cluster/options.ts';

const OWN = '/checkout/.berth/kubeconfig';

describe('readOptions', () => {
  it('takes no cluster for given when nothing names one', () => {
    expect(readOptions([], {}, OWN)).toMatchObject({ given: false, yes: false, detach: false, server: true });
  });

  it('takes a kubeconfig from the option before the environment', () => {
    const options = readOptions(['--kubeconfig', '/a'], { KUBECONFIG: '/b' }, OWN);
    expect(options).toMatchObject({ given: true, kubeconfig: '/a' });
  });

  it('does not take the kubeconfig of its own cluster, which the tour exports, for a given one', () => {
    expect(readOptions([], { KUBECONFIG: OWN }, OWN)).toMatchObject({ given: false, kubeconfig: undefined });
    const KUBECONFIG = `${OWN}:/a:/b`;
    expect(readOptions([], { KUBECONFIG }, OWN)).toMatchObject({ given: false });
    expect(readOptions(['--context', 'prod'], { KUBECONFIG }, OWN)).toMatchObject({ given: true, kubeconfig: '/a:/b' });
  });

  it('takes a context alone for a given cluster', () => {
    expect(readOptions(['--context', 'prod'], {}, OWN)).toMatchObject({ given: true, context: 'prod' });
  });

  it('starts programs of its own, whatever the environment names, and refuses two clusters', () => {
    expect(readOptions(['--built'], { KUBECONFIG: '/a' }, OWN)).toMatchObject({ given: false, built: true });
    expect(() => readOptions(['--built', '--context', 'prod'], {}, OWN)).toThrow('--built starts a cluster');
  });

  it('starts a DRA driver only when asked', () => {
    expect([readOptions([], {}, OWN).dra, readOptions(['--dra'], {}, OWN).dra]).toEqual([false, true]);
  });

  it('consents to installations in CI', () => {
    expect(readOptions([], { CI: 'true' }, OWN).yes).toBe(true);
  });

  it('refuses one port for both servers', () => {
    const same = ['--port', '2222', '--ssh-port', '2222'];
    expect(() => readOptions(same, {}, OWN)).toThrow('--port and --ssh-port are both 2222.');
  });

  it.each([
    ['--port', '0'],
    ['--port', '65536'],
    ['--ssh-port', 'x'],
    ['--colour', 'red'],
  ])('refuses %s %s', (...args) => {
    expect(() => readOptions(args, {}, OWN)).toThrow(expect.objectContaining({ name: 'LocalFailure' }));
  });
});
