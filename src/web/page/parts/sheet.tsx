import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { State } from '../instances/list.tsx';
import { note, now } from '../state.ts';
import {
  Alert,
  Choice,
  CopyField,
  CopyLine,
  Dialog,
  Empty,
  Link,
  OnceDialog,
  RowButton,
  Table,
  Time,
} from './controls.tsx';
import { ConfirmDialog } from './delete-dialog.tsx';
import { Field, Help, Refused } from './form.tsx';
import { age, cpus, duration, gpuWords, memory, money, shortGpu, shortUser, STATES } from './words.ts';

function Part({ name, children }: { name: string; children: ComponentChildren }) {
  const id = `part-${name.replaceAll(/\W+/g, '-')}`;
  return (
    <section class="card" aria-labelledby={id}>
      <h2 id={id}>{name}</h2>
      {children}
    </section>
  );
}

const LONG = 'a-name-that-is-much-longer-than-anyone-would-choose-and-still-has-to-fit-on-a-phone';
const SAME = { curl: 'curl -X DELETE "$BERTH/instances/i-1"', berth: 'berth rm i-1' };

const REFUSAL = {
  message: 'Correct the fields that are marked.',
  fields: [],
  alternatives: [],
};

function Buttons() {
  return (
    <div class="buttons">
      <button type="button" class="primary">
        Primary
      </button>
      <button type="button">Plain</button>
      <button type="button" class="small">
        Small
      </button>
      <button type="button" class="small" aria-pressed="true">
        Pressed
      </button>
      <button type="button" class="quiet">
        Quiet
      </button>
      <button type="button" class="danger">
        Danger
      </button>
      <button type="button" class="danger outline">
        Danger, not first
      </button>
      <button type="button" disabled>
        Disabled
      </button>
      <RowButton verb="Delete" name="a row" onClick={() => undefined} />
      <Link class="button primary" to="/dashboard/parts">
        Link
      </Link>
    </div>
  );
}

function Fields() {
  const [value, setValue] = useState('12h');
  const [choice, setChoice] = useState<'one' | 'two' | 'three'>('one');
  const options = [
    { value: 'one', title: 'One' },
    { value: 'two', title: 'Two' },
    { value: 'three', title: 'Three' },
  ] as const;
  return (
    <>
      <div class="fields">
        <Field
          id="sheet-good"
          label="Stop after"
          value={value}
          why=""
          help="For example 90m or 12h."
          onInput={setValue}
        />
        <Field
          id="sheet-wrong"
          label="Stop after, refused"
          value="tomorrow"
          why="Write a time such as 90m, 12h or 1h30m."
          onInput={() => undefined}
        />
      </div>
      <Field id="sheet-lines" label="Several lines" rows={3} value={'one\ntwo'} why="" onInput={() => undefined} />
      <Help id="sheet-help" why="" help="Help that stands alone." />
      <Choice legend="Choice" name="sheet-choice" value={choice} options={options} onChange={setChoice} />
      <label class="check">
        <input type="checkbox" defaultChecked />
        <span>Checked</span>
      </label>
    </>
  );
}

function Dialogs() {
  const [open, setOpen] = useState('');
  const close = (): void => setOpen('');
  return (
    <div class="buttons">
      {['Plain dialog', 'Question', 'Shown once'].map((name) => (
        <button type="button" key={name} onClick={() => setOpen(name)}>
          {name}
        </button>
      ))}
      <button type="button" onClick={() => (note.value = 'Rented first steps')}>
        Toast
      </button>
      {open === 'Plain dialog' && (
        <Dialog id="sheet-plain" title="Plain dialog" onClose={close}>
          <p>Escape closes it.</p>
        </Dialog>
      )}
      {open === 'Question' && (
        <ConfirmDialog
          id="sheet-question"
          title="Delete this instance?"
          button="Delete"
          same={SAME}
          act={() => Promise.reject(new Error('The API server is away. Try again in some seconds.'))}
          close={close}
        >
          <p>Programs end, and the instance and its disk are gone. This cannot be undone.</p>
        </ConfirmDialog>
      )}
      {open === 'Shown once' && (
        <OnceDialog id="sheet-once" title="Key created" close={close}>
          <CopyField id="sheet-key" label="Key" text="berth_example" what="the key" />
        </OnceDialog>
      )}
    </div>
  );
}

function Rows() {
  return (
    <div class="card flush">
      <Table title="Rows" columns={['Name', 'State', 'Cost', 'Added']} minor="Cost" actions>
        {['first steps', LONG].map((name) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td data-label="State">
              <State instance={{ state: 'running', place_in_line: null }} /> <span class="chip">simulated</span>{' '}
              <span class="chip">1 warning</span>
            </td>
            <td data-label="Cost" class="number minor">
              {money('0.8931', 'USD', 4)}
            </td>
            <td data-label="Added">
              <Time at="2026-11-01T12:00:00Z" absent="never" />
            </td>
            <td class="action">
              <RowButton verb="Revoke" name={name} onClick={() => undefined} />
            </td>
          </tr>
        ))}
      </Table>
    </div>
  );
}

/** How the page writes numbers, by the function that does it. */
const WORDS: readonly [string, readonly string[]][] = [
  ['Money', [money(1234.5, 'USD'), money('0.0206', 'EUR', 4), money(3, 'CREDITS')]],
  ['Durations', [42_000, 3_725_000, 400_000_000].map(duration)],
  ['Ages', [20_000, 3_725_000, 400_000_000].map(age)],
  ['Memory', [512, 23_034, 81_559].map(memory)],
  ['CPUs', [cpus(1), cpus(16)]],
  ['GPUs', [gpuWords(1, 'NVIDIA-L4', null), gpuWords(2, 'NVIDIA-A100', '1g.10gb'), shortGpu('NVIDIA-H100-80GB-HBM3')]],
  ['People', [shortUser('system:serviceaccount:team:ann'), shortUser('ann@example.com')]],
];

/** Each component of `parts/` with its states, for the eyes of those who change them. */
export function Sheet() {
  return (
    <section class="sheet" aria-labelledby="sheet-title">
      <div class="title">
        <div>
          <h1 id="sheet-title">Parts</h1>
          <p>Each part of the page with its states. Only the local cluster has this page.</p>
        </div>
      </div>
      <Part name="Buttons">
        <Buttons />
      </Part>
      <Part name="Fields">
        <Fields />
      </Part>
      <Part name="Dialogs and toast">
        <Dialogs />
      </Part>
      <Part name="States of an instance">
        <div class="facts-in-line">
          {(Object.keys(STATES) as (keyof typeof STATES)[]).map((state) => (
            <State key={state} instance={{ state, place_in_line: state === 'pending' ? 3 : null }} />
          ))}
        </div>
      </Part>
      <Part name="Table">
        <Rows />
      </Part>
      <Part name="Empty list">
        <Empty title="No SSH keys yet">
          <p>Nobody can log in before there is one.</p>
        </Empty>
      </Part>
      <Part name="Errors">
        <Alert text="The identity provider does not answer. Try again in some seconds." />
        <p class="warning">The node has no room for its image. It starts when there is some.</p>
        <Refused refusal={REFUSAL} others={[{ path: 'ports[0].name', expected: 'Expected at most 15 characters.' }]} />
      </Part>
      <Part name="Text to copy">
        <CopyLine label="SSH command" text={`ssh -p 2222 ${LONG}@localhost`} />
        <CopyField id="sheet-copy" label="Field of several lines" text={'one\ntwo'} what="the lines" rows={2} />
      </Part>
      <Part name="Words">
        <dl class="facts">
          {WORDS.map(([name, texts]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{texts.join(' · ')}</dd>
            </div>
          ))}
          <div>
            <dt>Now</dt>
            <dd>{new Date(now.value).toLocaleString()}</dd>
          </div>
        </dl>
      </Part>
    </section>
  );
}
