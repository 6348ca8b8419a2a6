import { afterEach, expect, it } from 'vitest';
import { eventually, startGateway, type TestGateway } from '../../support/model-gateway.ts';
import { type ScriptedEngine, startEngine } from '../../support/scripted-engine.ts';

let gateway: TestGateway | undefined;
let engines: ScriptedEngine[] = [];

afterEach(async () => {
  await gateway?.close();
  for (const engine of engines) await engine.close();
  engines = [];
});

it('the list of models says what the servers of each have to do, together', async () => {
  engines = [
    await startEngine({ metrics: 'vllm:num_requests_running 7\nvllm:num_requests_waiting 3\n' }),
    await startEngine({
      metrics: 'vllm:num_requests_running 2\nvllm:num_requests_waiting 0\nvllm:generation_tokens_total 5\n',
    }),
    await startEngine({ models: ['silent'] }),
  ];
  gateway = await startGateway();
  const [one, two, silent] = engines.map(({ port }) => port);
  gateway.cluster.serve({ name: 'busy', ports: [one ?? 0, two ?? 0] });
  gateway.cluster.serve({ name: 'silent', ports: [silent ?? 0] });
  await eventually(async () => {
    const { data } = (await (await fetch(`${gateway?.base}/v1/models`)).json()) as { data: Record<string, unknown>[] };
    expect(data.map(({ id, load }) => [id, load])).toEqual([
      ['silent', undefined],
      // The counter stands still.
      ['tiny', { running: 9, waiting: 3, tokens_per_second: 0 }],
    ]);
  });
});
