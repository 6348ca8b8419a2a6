import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { z } from 'zod';
import type { Layout } from '../../../tools/cluster/built/components.ts';
import { waitFor } from '../../support/wait-for.ts';

const answer = z.object({ header: z.object({ revision: z.coerce.number() }) });

/**
 * Makes the data of an etcd newer than `seen` and forgets every version before: what
 * `etcdutl snapshot restore --bump-revision --mark-compacted` does to a snapshot, so that a watch from before cannot go
 * on in a history that never was.
 */
export async function bumpRevision({ credentials, etcdPort }: Layout, seen: number): Promise<void> {
  const file = (name: string): Buffer => readFileSync(join(credentials, name));
  const tls = { ca: file('ca.crt'), cert: file('etcd.crt'), key: file('etcd.key') };
  await using stack = new AsyncDisposableStack();
  const agent = stack.adopt(new Agent({ connect: tls }), (open) => open.close());

  /** The revision after a call of etcd's JSON gateway. */
  async function call(path: string, body: object): Promise<number> {
    const url = `https://127.0.0.1:${etcdPort}/v3/kv/${path}`;
    const { statusCode, body: text } = await request(url, {
      method: 'POST',
      body: JSON.stringify(body),
      dispatcher: agent,
    });
    if (statusCode !== 200) throw new Error(`etcd answers ${path} with ${statusCode}: ${await text.text()}`);
    return answer.parse(await text.json()).header.revision;
  }

  const put = (): Promise<number> => call('put', { key: Buffer.from('bump').toString('base64'), value: '' });
  let revision = await waitFor('etcd to answer', () => put().catch(() => undefined));
  while (revision <= seen) revision = await put();
  await call('compaction', { revision });
}
