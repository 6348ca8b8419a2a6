import { describe, expect, it } from 'vitest';
import { ConfigError, readConfig } from '../../../src/config/config.ts';

describe('readConfig', () => {
  it('has a working default for everything', () => {
    const config = readConfig({});
    expect(config.http).toEqual({ host: '0.0.0.0', port: 8080 });
    expect(config.ssh).toEqual({ host: '0.0.0.0', port: 2222, publicHost: 'localhost', publicPort: 2222 });
    expect(config.trustProxy).toBe(false);
  });

  it('treats empty variables as absent', () => {
    expect(readConfig({ BERTH_HTTP_ADDR: '', KUBECONFIG: '' }).kubeconfig).toBeUndefined();
  });

  it('reads IPv6 addresses and an empty host', () => {
    expect(readConfig({ BERTH_HTTP_ADDR: '[::1]:80' }).http).toEqual({ host: '::1', port: 80 });
    expect(readConfig({ BERTH_HTTP_ADDR: ':80' }).http).toEqual({ host: '0.0.0.0', port: 80 });
  });

  it('names every variable that is wrong and what it takes', () => {
    const read = () => readConfig({ BERTH_HTTP_ADDR: 'here', BERTH_LOG_LEVEL: 'loud', BERTH_VALKEY_URL: 'http://x' });
    expect(read).toThrow(ConfigError);
    expect(read).toThrow(/BERTH_HTTP_ADDR: expected host:port.*BERTH_LOG_LEVEL.*BERTH_VALKEY_URL/);
    expect(() => readConfig({ BERTH_HTTP_ADDR: 'x:99999' })).toThrow(/BERTH_HTTP_ADDR/);
    expect(() => readConfig({ BERTH_TRUST_PROXY: 'yes please' })).toThrow(/BERTH_TRUST_PROXY/);
  });

  it('reads the namespaces whose model servers may scale to zero', () => {
    expect(readConfig({}).scaleNamespaces).toEqual([]);
    expect(readConfig({ BERTH_WEBHOOK_NETWORKS: '10.20.0.0/16, fd12::/32' }).webhookNetworks).toEqual([
      { address: '10.20.0.0', prefix: 16, family: 'ipv4' },
      { address: 'fd12::', prefix: 32, family: 'ipv6' },
    ]);
    for (const wrong of ['10.0.0.0', '10.0.0.0/33', '::/129', 'example.com/8', '10.0.0.0/8/8', '10.0.0.0/'])
      expect(() => readConfig({ BERTH_WEBHOOK_NETWORKS: wrong })).toThrow(/BERTH_WEBHOOK_NETWORKS: expected networks/);
    expect(readConfig({ BERTH_SCALE_NAMESPACES: 'llms, more' }).scaleNamespaces).toEqual(['llms', 'more']);
    expect(() => readConfig({ BERTH_SCALE_NAMESPACES: 'LLMs' })).toThrow(/BERTH_SCALE_NAMESPACES: expected names of/);
  });

  it('reads the spec of the default pool, and names what is wrong in it', () => {
    expect(readConfig({}).defaultPool).toBeUndefined();
    expect(readConfig({ BERTH_DEFAULT_POOL: '{"currency":"EUR"}' }).defaultPool).toMatchObject({
      currency: 'EUR',
      sizes: [1, 2, 4, 8],
    });
    const prices = [{ product: '*', onDemand: '1 USD', interruptible: '1' }];
    for (const [text, words] of [
      ['{', /BERTH_DEFAULT_POOL: .*expected object/],
      [JSON.stringify({ price: '1' }), /BERTH_DEFAULT_POOL: .*"price"/],
      [JSON.stringify({ prices }), /BERTH_DEFAULT_POOL\.prices\.0\.onDemand: write an amount/],
    ] as const)
      expect(() => readConfig({ BERTH_DEFAULT_POOL: text })).toThrow(words);
  });

  it('reads how long API keys live', () => {
    expect(readConfig({}).keyDays).toEqual({ default: 0, max: 0 });
    const days = { BERTH_KEY_DEFAULT_DAYS: '30', BERTH_KEY_MAX_DAYS: '90' };
    expect(readConfig(days).keyDays).toEqual({ default: 30, max: 90 });
    expect(() => readConfig({ ...days, BERTH_KEY_MAX_DAYS: '7' })).toThrow(
      'BERTH_KEY_DEFAULT_DAYS: 30 is more than BERTH_KEY_MAX_DAYS, which is 7',
    );
    expect(() => readConfig({ BERTH_KEY_MAX_DAYS: '-1' })).toThrow(/BERTH_KEY_MAX_DAYS/);
  });

  it('takes proxies as a number or as subnets', () => {
    expect(readConfig({ BERTH_TRUST_PROXY: '2' }).trustProxy).toBe(2);
    expect(readConfig({ BERTH_TRUST_PROXY: '10.0.0.0/8, 127.0.0.1' }).trustProxy).toBe('10.0.0.0/8, 127.0.0.1');
  });
});
