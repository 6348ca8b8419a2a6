import type { RequestOptions } from 'node:https';
import { KubeConfig } from '@kubernetes/client-node';
import type { User } from '@kubernetes/client-node/dist/config_types.js';
import type { TlsOptions } from './connection.ts';

/** What a plugin gives: headers, a client certificate, or both. */
export interface PluginAnswer {
  tls: Pick<TlsOptions, 'cert' | 'key'>;
  headers: Record<string, string>;
}

/** The exec or auth-provider plugin of a user. KubeConfig caches what it says; a new one asks the plugin again. */
export class Plugin {
  readonly #user: User;
  #config: KubeConfig;

  constructor({ name, exec, authProvider }: User) {
    this.#user = { name, exec, authProvider };
    this.#config = this.#load();
  }

  async ask(refresh: boolean): Promise<PluginAnswer> {
    if (refresh) this.#config = this.#load();
    const options: RequestOptions = {};
    await this.#config.applyToHTTPSOptions(options);
    const { cert, key } = options as Partial<TlsOptions>;
    const headers = Object.entries((options.headers ?? {}) as Record<string, string>);
    return {
      tls: { ...(cert && { cert }), ...(key && { key }) },
      headers: Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value])),
    };
  }

  #load(): KubeConfig {
    const config = new KubeConfig();
    // No plugin asks for the cluster.
    config.loadFromClusterAndUser({ name: '', server: '', skipTLSVerify: true }, this.#user);
    return config;
  }
}
