import { useState } from 'preact/hooks';
import type { InstanceRecord, UpdateInstance } from '../../../wire/records.ts';
import { callApi, messageOf } from '../calls/call.ts';
import { ConfirmDialog } from '../parts/delete-dialog.tsx';
import { titleOf } from '../parts/words.ts';
import { type Same, sameChange, sameDelete } from '../same/same.ts';
import { note, now, tenant } from '../state.ts';
import { COSTS_FROM, disksAtStop } from './action-words.ts';
import { leftOf } from './left-of.ts';

type Verb = 'Start' | 'Stop' | 'Delete';

const BODIES: Readonly<Record<Verb, UpdateInstance | undefined>> = {
  Start: { state: 'running' },
  Stop: { state: 'stopped' },
  Delete: undefined,
};
const DONE: Readonly<Record<Verb, string>> = { Start: 'Starting', Stop: 'Stopping', Delete: 'Deleting' };
/** Names that a dialog lists. */
const MOST_NAMES = 8;

function says(verb: Verb, chosen: readonly InstanceRecord[]): string {
  if (verb === 'Start') return `Each needs a free place, and ${COSTS_FROM}.`;
  if (verb === 'Delete') return 'Programs end. Disks go, unless they are to be kept. This cannot be undone.';
  return `Programs end and the GPUs are free for others. ${disksAtStop(chosen)}`;
}

/** One line a tool, with a command for each. */
function sameOf(chosen: readonly InstanceRecord[], make: (id: string) => Same): Same {
  const all = chosen.map(({ id }) => make(id));
  const joined = (tool: keyof Same): string => all.flatMap((same) => same[tool] ?? []).join('; ');
  return { curl: joined('curl'), berth: joined('berth'), kubectl: joined('kubectl') };
}

function BulkDialog(props: { verb: Verb; chosen: readonly InstanceRecord[]; close: () => void; done: () => void }) {
  const { verb, close, done } = props;
  // What was asked about is done, also when the list changes meanwhile. What was refused stays, to be tried again.
  const [chosen, setChosen] = useState(props.chosen);
  const [openedAt] = useState(now.value);
  const body = BODIES[verb];
  const namespace = tenant.value;
  async function act(): Promise<void> {
    const method = body === undefined ? 'DELETE' : 'PATCH';
    const left = await leftOf(chosen, method, ({ id }) =>
      callApi(namespace, method, `/instances/${encodeURIComponent(id)}`, body),
    );
    const count = chosen.length - left.length;
    if (count > 0) note.value = `${DONE[verb]} ${count} instances`;
    const [first] = left;
    if (first === undefined) return done();
    setChosen(left.map(({ instance }) => instance));
    throw new Error(
      `${left.length} of ${chosen.length} are left. ${titleOf(first.instance)}: ${messageOf(first.error)}`,
    );
  }
  const make = (id: string): Same =>
    body === undefined ? sameDelete(namespace, id) : sameChange({ namespace, id, now: openedAt }, body);
  return (
    <ConfirmDialog
      id="bulk"
      title={`${verb} ${chosen.length} instances?`}
      button={verb}
      isDangerous={verb !== 'Start'}
      same={sameOf(chosen, make)}
      act={act}
      close={close}
    >
      <p>{says(verb, chosen)}</p>
      <ul>
        {chosen.slice(0, MOST_NAMES).map((instance) => (
          <li key={instance.id}>{titleOf(instance)}</li>
        ))}
      </ul>
      {chosen.length > MOST_NAMES && <p>and {chosen.length - MOST_NAMES} more</p>}
    </ConfirmDialog>
  );
}

/** What can be done with the instances that are chosen. */
export function Bulk({ chosen, clear }: { chosen: readonly InstanceRecord[]; clear: () => void }) {
  const [verb, setVerb] = useState<Verb>();
  if (chosen.length === 0) return null;
  return (
    <div class="bulk" role="group" aria-label="Chosen instances">
      <span role="status">{chosen.length} chosen</span>
      {(['Start', 'Stop', 'Delete'] as const).map((one) => (
        <button type="button" class="small" key={one} onClick={() => setVerb(one)}>
          {one} chosen
        </button>
      ))}
      <button type="button" class="quiet" onClick={clear}>
        Choose none
      </button>
      {verb !== undefined && (
        <BulkDialog
          verb={verb}
          chosen={chosen}
          close={() => setVerb(undefined)}
          done={() => {
            setVerb(undefined);
            clear();
          }}
        />
      )}
    </div>
  );
}
