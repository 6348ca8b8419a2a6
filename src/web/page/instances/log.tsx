import type { InstanceRecord } from '../../../wire/records.ts';
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { type ServerEvent, useFollow } from '../calls/follow.ts';
import { download } from '../calls/download.ts';
import { Alert } from '../parts/controls.tsx';
import { logParts, type Part, textOf } from './log-text.ts';
import { SameElsewhere } from '../same/same-elsewhere.tsx';
import { sameLog } from '../same/same.ts';
import { attempt, tenant } from '../state.ts';

/** Lines that the page keeps: more than one reads, and few enough to paint. */
const MOST_LINES = 2000;
const TAIL = 500;
/** Lines of a file: the most that the API gives. */
const FILE_LINES = 10_000;

const NOTES: Readonly<Record<string, string>> = {
  restart: 'The container was started again.',
  gap: 'Lines before this one are lost.',
};

interface Line {
  key: number;
  parts: readonly Part[];
  isNote: boolean;
}

/** The log of the start that is, or was last. */
export function Log({ instance }: { instance: InstanceRecord }) {
  const isOver = instance.state === 'stopped' || instance.state === 'failed';
  const before = useRef({ isOver, life: 0 });
  // The stream ended with the start. Another start has another.
  const life = before.current.life + (before.current.isOver && !isOver ? 1 : 0);
  before.current = { isOver, life };
  return <FollowedLog key={life} instance={instance} />;
}

function hasWords(parts: readonly Part[], words: string): boolean {
  return textOf(parts).toLowerCase().includes(words.toLowerCase());
}

function Check({ title, isOn, set }: { title: string; isOn: boolean; set: (isOn: boolean) => void }) {
  return (
    <label class="check">
      <input type="checkbox" checked={isOn} onChange={(event) => set(event.currentTarget.checked)} />
      <span>{title}</span>
    </label>
  );
}

/** What the program writes, as it writes it; of a start that is over, what was kept. */
function FollowedLog({ instance: { id, simulated } }: { instance: InstanceRecord }) {
  const [lines, setLines] = useState<readonly Line[]>([]);
  const waiting = useRef<Line[]>([]);
  const box = useRef<HTMLPreElement>(null);
  const [isFollowing, setFollowing] = useState(true);
  const [isWrapped, setWrapped] = useState(true);
  const [query, setQuery] = useState('');
  const [refusal, setRefusal] = useState('');
  const count = useRef(0);
  const add = useCallback(({ type, data }: ServerEvent) => {
    const text = type === 'line' ? (data as { text: string }).text : NOTES[type];
    if (text === undefined) return;
    count.current += 1;
    waiting.current.push({ key: count.current, parts: logParts(text), isNote: type !== 'line' });
    if (waiting.current.length > 1) return;
    // A program may write thousands of lines in a second: they are painted together.
    setTimeout(() => {
      const more = waiting.current;
      waiting.current = [];
      setLines((before) => [...before, ...more].slice(-MOST_LINES));
    }, 50);
  }, []);
  const path = `/instances/${encodeURIComponent(id)}/logs`;
  const trouble = useFollow(simulated ? '' : `${path}?follow=true&tail=${TAIL}`, add);
  useEffect(() => {
    if (isFollowing && box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  }, [lines, isFollowing]);
  const shown = query === '' ? lines : lines.filter(({ parts }) => hasWords(parts, query));
  return (
    <section class="card" aria-labelledby="log-title">
      <div class="title">
        <h2 id="log-title">Log</h2>
        {lines.length > 0 && (
          <div class="buttons">
            <input
              type="search"
              aria-label="Search the log"
              placeholder="Search"
              value={query}
              onInput={(event) => setQuery(event.currentTarget.value)}
            />
            {query !== '' && (
              <span class="soft" role="status">
                {shown.length} of {lines.length} lines
              </span>
            )}
            <Check title="Wrap" isOn={isWrapped} set={setWrapped} />
            <Check title="Follow" isOn={isFollowing} set={setFollowing} />
            <button
              type="button"
              class="small"
              onClick={() =>
                void attempt(() => download(`${path}?tail=${FILE_LINES}`, 'text/plain', `${id}.log`), setRefusal)
              }
            >
              Download log
            </button>
          </div>
        )}
      </div>
      <Alert text={refusal} />
      {lines.length > 0 ? (
        <pre class={isWrapped ? 'log' : 'log unwrapped'} ref={box} tabIndex={0} aria-label="Log">
          {shown.map(({ key, parts, isNote }) => (
            <span key={key} class={isNote ? 'line noted' : 'line'}>
              {parts.map(({ text, look }, at) => (look === '' ? text : <span key={at} class={look} children={text} />))}
              {'\n'}
            </span>
          ))}
        </pre>
      ) : (
        <p class="soft">{simulated ? 'A simulated node runs no program.' : trouble || 'Nothing was written yet.'}</p>
      )}
      <SameElsewhere same={sameLog(tenant.value, id)} />
    </section>
  );
}
