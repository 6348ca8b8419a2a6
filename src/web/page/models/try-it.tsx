import { useEffect, useRef, useState } from 'preact/hooks';
import { errorOf, fetchApi } from '../calls/call.ts';
import { eventsOf } from '../../../wire/event-stream.ts';
import { Alert, Choice } from '../parts/controls.tsx';
import { curl } from '../same/commands.ts';
import { SameElsewhere } from '../same/same-elsewhere.tsx';
import { attempt, tenant } from '../state.ts';
import { APIS, type Dialect, type Model, type Piece, readEvent, takes } from './dialects.ts';

interface Question {
  dialect: Dialect;
  model: string;
  prompt: string;
}

interface Whole {
  error?: { message?: string };
}

/**
 * Asks a model, and calls `onPiece` with each piece of its answer as it comes. Ends with the answer; rejects with
 * `CallError`, and when the signal aborts.
 */
async function ask(
  { dialect, model, prompt }: Question,
  onPiece: (piece: Piece) => void,
  signal: AbortSignal,
): Promise<void> {
  const { path, body } = APIS[dialect];
  const headers = { 'content-type': 'application/json', accept: 'text/event-stream' };
  const sent = JSON.stringify(body(model, prompt));
  const response = await fetchApi(tenant.value, path, { method: 'POST', headers, body: sent, signal });
  if (!response.ok || response.body === null) throw await errorOf(response);
  if (response.headers.get('content-type')?.includes('application/json')) {
    const whole = (await response.json()) as Whole;
    throw new Error(whole.error?.message ?? 'The model did not stream its answer.');
  }
  for await (const { data } of eventsOf(response.body)) {
    const piece = readEvent(dialect, data);
    if (piece.error !== undefined) throw new Error(piece.error);
    onPiece(piece);
  }
}

const DIALECTS = ['chat', 'responses', 'messages'] as const;

interface Answer {
  text: string;
  thought: string;
  read?: number;
  written?: number;
  /** Milliseconds from the click to the first piece, and to the end. */
  first?: number;
  took?: number;
}

const EMPTY: Answer = { text: '', thought: '' };

function joined(before: Answer, { text = '', thought = '', ...counts }: Piece, at: number): Answer {
  const { error: _none, ...known } = counts;
  const isFirst = before.first === undefined && text + thought !== '';
  return {
    ...before,
    ...known,
    ...(isFirst && { first: at }),
    text: before.text + text,
    thought: before.thought + thought,
  };
}

/** Milliseconds. What came sooner came at once, and says nothing of the speed of the model. */
const MEASURABLE_MS = 50;

/** Tokens that it wrote in a second, from its first piece on; undefined where that is not known. */
function speedOf({ written, first, took }: Pick<Answer, 'written' | 'first' | 'took'>): number | undefined {
  if (written === undefined || first === undefined || took === undefined) return undefined;
  if (took - first < MEASURABLE_MS) return undefined;
  return (written * 1000) / (took - first);
}

function Numbers({ answer }: { answer: Answer }) {
  const { read, written, first, took } = answer;
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(2)} s`;
  const speed = speedOf(answer);
  const parts = [
    ...(first === undefined ? [] : [`first words after ${seconds(first)}`]),
    ...(took === undefined ? [] : [`whole after ${seconds(took)}`]),
    ...(read === undefined ? [] : [`${read} tokens read`]),
    ...(written === undefined ? [] : [`${written} written`]),
    ...(speed === undefined ? [] : [`${speed.toFixed(speed < 10 ? 1 : 0)} tokens per second`]),
  ];
  return parts.length === 0 ? null : <p class="soft numbers">{parts.join(' · ')}</p>;
}

/** The answer to what was asked last, as it comes; `running` ends it. */
function useAnswer() {
  const [answer, setAnswer] = useState(EMPTY);
  const [refusal, setRefusal] = useState('');
  const [running, setRunning] = useState<AbortController>();
  const latest = useRef<AbortController>(undefined);
  useEffect(() => () => running?.abort(), [running]);
  function clear(): void {
    setAnswer(EMPTY);
    setRefusal('');
  }
  async function send(question: Question): Promise<void> {
    const stop = new AbortController();
    const begun = performance.now();
    latest.current = stop;
    setRunning(stop);
    setAnswer(EMPTY);
    let waiting: { piece: Piece; at: number }[] = [];
    const add = (piece: Piece): void => {
      // Now, and not when it is painted: a browser paints nothing of a page that nobody sees.
      waiting.push({ piece, at: performance.now() - begun });
      if (waiting.length > 1) return;
      // A model may write hundreds of pieces in a second: those of one frame are painted together.
      requestAnimationFrame(() => {
        const pieces = waiting;
        waiting = [];
        // The answer to the next question may have begun.
        if (latest.current !== stop) return;
        setAnswer((before) => pieces.reduce((sum, { piece: one, at }) => joined(sum, one, at), before));
      });
    };
    await attempt(async () => {
      try {
        await ask(question, add, stop.signal);
        const took = performance.now() - begun;
        setAnswer((before) => ({ ...before, took }));
      } catch (error) {
        if (!stop.signal.aborted) throw error;
      }
    }, setRefusal);
    setRunning(undefined);
  }
  return { answer, refusal, running, send, clear };
}

/** What one model answered. `title`: stands above it, where there are two. */
function Answered(props: { of: ReturnType<typeof useAnswer>; model: Model; title: string }) {
  const { of, model, title } = props;
  const { answer, refusal, running } = of;
  const isWaiting = running !== undefined && answer.text + answer.thought === '';
  return (
    <div>
      {title !== '' && <h3>{title}</h3>}
      <Alert text={refusal} />
      {isWaiting && (
        <p class="soft" role="status">
          {model.ready_endpoints === 0
            ? 'No server runs: one is started, which takes a while.'
            : 'The model reads the prompt.'}
        </p>
      )}
      {answer.thought !== '' && (
        <details class="thought">
          <summary>Reasoning</summary>
          <p>{answer.thought}</p>
        </details>
      )}
      {answer.text !== '' && (
        <div
          class="answer"
          role="region"
          aria-label={title === '' ? 'Answer' : `Answer of ${title}`}
          aria-busy={running !== undefined}
          tabIndex={0}
        >
          {answer.text}
        </div>
      )}
      <Numbers answer={answer} />
    </div>
  );
}

function ModelField(props: {
  id: string;
  label: string;
  value: string;
  /** What stands for no model; without it, one is always chosen. */
  none?: string;
  models: readonly Model[];
  onModel: (id: string) => void;
}) {
  const { id: field, label, value, none, models, onModel } = props;
  return (
    <div>
      <label for={field}>{label}</label>
      <select id={field} value={value} onChange={(event) => onModel(event.currentTarget.value)}>
        {none !== undefined && <option value="">{none}</option>}
        {models.map(({ id }) => (
          <option key={id} value={id}>
            {id}
          </option>
        ))}
      </select>
    </div>
  );
}

/** A prompt, and the answer of a model as it is written, or of two side by side. */
export function TryIt({
  model,
  onModel,
  models,
}: {
  model: Model;
  models: readonly Model[];
  onModel: (id: string) => void;
}) {
  const [wanted, setDialect] = useState<Dialect>('chat');
  const [against, setAgainst] = useState('');
  const [prompt, setPrompt] = useState('Why do ships have a berth? Answer in two sentences.');
  const [left, right] = [useAnswer(), useAnswer()];
  const others = models.filter(
    (one) => one.id !== model.id && DIALECTS.some((way) => takes(one, way) && takes(model, way)),
  );
  const other = others.find(({ id }) => id === against);
  const spoken = DIALECTS.filter((one) => takes(model, one) && (other === undefined || takes(other, one)));
  const dialect = spoken.includes(wanted) ? wanted : (spoken[0] ?? wanted);
  const isRunning = left.running !== undefined || right.running !== undefined;
  function send(): void {
    void left.send({ dialect, model: model.id, prompt });
    if (other === undefined) right.clear();
    else void right.send({ dialect, model: other.id, prompt });
  }
  return (
    <section class="card" aria-labelledby="try-title">
      <h2 id="try-title">Try it</h2>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
      >
        <div class="fields">
          <ModelField id="try-model" label="Model" value={model.id} models={models} onModel={onModel} />
          {others.length > 0 && (
            <ModelField
              id="try-against"
              label="Compare with"
              value={other?.id ?? ''}
              none="No other model"
              models={others}
              onModel={setAgainst}
            />
          )}
        </div>
        <Choice
          legend="API"
          name="dialect"
          value={dialect}
          options={spoken.map((one) => ({ value: one, title: APIS[one].name }))}
          onChange={setDialect}
        />
        <label for="try-prompt">Prompt</label>
        <textarea
          id="try-prompt"
          rows={3}
          value={prompt}
          onInput={(event) => setPrompt(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
            event.preventDefault();
            if (!isRunning && prompt !== '') send();
          }}
        />
        <div class="actions">
          {/* Two buttons and not one that changes: a click on the one that stops must not send again. */}
          {isRunning ? (
            <button
              key="stop"
              type="button"
              onClick={() => {
                left.running?.abort();
                right.running?.abort();
              }}
            >
              Stop
            </button>
          ) : (
            <button key="send" class="primary" type="submit" disabled={prompt === ''}>
              Send
            </button>
          )}
        </div>
      </form>
      <div class={other === undefined ? undefined : 'side-by-side'}>
        <Answered of={left} model={model} title={other === undefined ? '' : model.id} />
        {other !== undefined && <Answered of={right} model={other} title={other.id} />}
      </div>
      <SameElsewhere same={{ curl: curl('POST', APIS[dialect].path, APIS[dialect].body(model.id, prompt)) }} />
    </section>
  );
}
