import { useState } from 'preact/hooks';
import { Alert, Choice, CopyButton, Empty, Link, Table } from '../parts/controls.tsx';
import { useRead } from '../parts/use-read.ts';
import { duration, priceText } from '../parts/words.ts';
import { tenant } from '../state.ts';
import { APIS, type Dialect, type Model, takes, talks } from './dialects.ts';
import { snippetsFor } from './snippets.ts';
import { TryIt } from './try-it.tsx';

/** How often servers come and go is for people to see, not to the second. */
const EVERY_MS = 10_000;

function Servers({ model }: { model: Model }) {
  const { ready_endpoints: ready, load, queue, scales_from_zero: sleeps, expected_start_seconds: seconds } = model;
  if (ready > 0) {
    return (
      <>
        <span class="state running">{ready === 1 ? '1 ready' : `${ready} ready`}</span>
        {load !== undefined && (
          <span class="soft block">
            {load.running === 1 ? '1 call' : `${load.running} calls`} under way, {load.waiting} waiting
            {load.tokens_per_second !== undefined && ` · ${load.tokens_per_second.toLocaleString()} tokens per second`}
          </span>
        )}
        {queue !== undefined && <span class="soft block">{inLine(queue)}</span>}
      </>
    );
  }
  if (!sleeps) return <span class="state failed">None ready</span>;
  return (
    <>
      <span class="state stopped">Asleep</span>
      <span class="soft block">
        {seconds == null ? 'The first call wakes it' : `The first call wakes it in about ${duration(seconds * 1000)}`}
      </span>
    </>
  );
}

function inLine({ waiting, expected_wait_seconds: seconds }: NonNullable<Model['queue']>): string {
  const calls = waiting === 1 ? '1 call waits' : `${waiting} calls wait`;
  return seconds === null ? `Busy: ${calls}` : `Busy: ${calls}, yours for about ${duration(seconds * 1000)}`;
}

/** What a million tokens cost. */
function Price({ model: { price_per_million_tokens: price } }: { model: Model }) {
  if (price === undefined) return <span class="soft">none</span>;
  const { input, output, currency } = price;
  return (
    <>
      {priceText(input, currency)} in · {priceText(output, currency)} out
      <span class="soft block">per million tokens</span>
    </>
  );
}

function Row({ model }: { model: Model }) {
  const dialects = (Object.keys(APIS) as Dialect[]).filter((one) => takes(model, one));
  return (
    <tr>
      <th scope="row">
        <code>{model.id}</code>
      </th>
      <td data-label="Servers">
        <Servers model={model} />
      </td>
      <td data-label="Engine">{model.outside ? 'outside the cluster' : model.engine}</td>
      <td data-label="APIs">
        {dialects.map((one) => (
          <span class={`chip ${model.dialects[one]}`} key={one}>
            {APIS[one].name}
            {model.dialects[one] === 'translated' && <span class="soft"> translated</span>}
          </span>
        ))}
        {model.endpoints.map((path) => (
          <span class="chip" key={path}>
            <code>{path}</code>
          </span>
        ))}
      </td>
      <td data-label="Price" class="number">
        <Price model={model} />
      </td>
      <td data-label="Context" class="number">
        {model.context_length === null ? (
          <span class="soft">–</span>
        ) : (
          `${model.context_length.toLocaleString()} tokens`
        )}
      </td>
    </tr>
  );
}

/** Programs that call the model, to copy. */
function Snippets({ model }: { model: Model }) {
  const all = snippetsFor({ origin: location.origin, model: model.id, context: model.context_length });
  const fitting = all.filter(({ dialect }) => takes(model, dialect));
  const [name, setName] = useState('Claude Code');
  const shown = fitting.find((one) => one.name === name) ?? fitting[0];
  if (shown === undefined) return null;
  return (
    <section class="card" aria-labelledby="snippets-title">
      <h2 id="snippets-title">Call it from your programs</h2>
      <p class="soft">
        Put a key with the scope <code>models</code> in the place of <code>berth_...</code>:{' '}
        <Link to="/dashboard/api-access">make one</Link>.
      </p>
      <Choice
        legend="Program"
        name="snippet"
        value={shown.name}
        options={fitting.map((one) => ({ value: one.name, title: one.name }))}
        onChange={setName}
      />
      <div class="snippet">
        <pre class="log" tabIndex={0} aria-label={shown.name}>
          {shown.text}
        </pre>
        <CopyButton text={shown.text} what={shown.name} />
      </div>
    </section>
  );
}

function List({ models }: { models: readonly Model[] }) {
  return (
    <Table title="Models" columns={['Model', 'Servers', 'Engine', 'APIs', 'Price', 'Context']}>
      {models.map((model) => (
        <Row key={model.id} model={model} />
      ))}
    </Table>
  );
}

function NotAllowed() {
  return (
    <div class="card">
      <Empty title="Your roles call no models here">
        <p>
          The role <code>berth-admin</code> in <code>{tenant.value}</code> lets you make API keys, and so try its models
          here. A key with the scope <code>models</code> calls them from your programs.
        </p>
      </Empty>
    </div>
  );
}

/** The models that the tenant may call. */
export function ModelsView() {
  const { value: list, trouble, code } = useRead<{ data: Model[] }>('/models', EVERY_MS);
  const [chosen, setChosen] = useState('');
  const models = list?.data;
  const talking = models?.filter(talks) ?? [];
  const model =
    talking.find(({ id }) => id === chosen) ?? talking.find(({ ready_endpoints: n }) => n > 0) ?? talking[0];
  return (
    <section aria-labelledby="models-title">
      <div class="title">
        <div>
          <h1 id="models-title">Models</h1>
          <p>Served in this cluster, for the SDKs of OpenAI and Anthropic and the agents that use them.</p>
        </div>
      </div>
      {code === 'insufficient_scope' ? <NotAllowed /> : <Alert text={trouble} />}
      {models !== undefined && (
        <div class="card flush">
          {models.length === 0 ? (
            <Empty title="No models yet">
              <p>
                Any server that speaks OpenAI's chat completions joins by a label on its Service: vLLM, SGLang,
                llama.cpp, Ollama.
              </p>
              <p>
                <code>kubectl label service NAME berth.dev/model-server=true</code>
              </p>
            </Empty>
          ) : (
            <List models={models} />
          )}
        </div>
      )}
      {model !== undefined && (
        <>
          <TryIt model={model} models={talking} onModel={setChosen} />
          <Snippets model={model} />
        </>
      )}
    </section>
  );
}
