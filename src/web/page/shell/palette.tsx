import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { InstanceRecord, List } from '../../../wire/records.ts';
import { ActionDialog, type ActionName, actionsOf } from '../instances/actions.tsx';
import { Dialog } from '../parts/controls.tsx';
import { useRead } from '../parts/use-read.ts';
import { STATES, titleOf } from '../parts/words.ts';
import { attempt, choose, go, note, signOut, suggestions, tenant } from '../state.ts';
import { shownGroups } from './places.ts';

interface Entry {
  key: string;
  title: string;
  /** What it is, beside the title. */
  hint: string;
  run: () => void;
}

/** Entries that are shown at once: more than one reads. */
const MOST = 12;

async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    note.value = 'Copied the SSH command';
  } catch {
    note.value = `Your browser lets this page copy nothing here. The command: ${text}`;
  }
}

/** An action that was chosen, which asks in a dialog of its own. */
interface Chosen {
  name: ActionName;
  instance: InstanceRecord;
}

function entriesOf(instances: readonly InstanceRecord[], act: (chosen: Chosen) => void): Entry[] {
  const pages = shownGroups().flatMap(({ title: group, places }) =>
    places.map(({ to, title }) => ({ key: to, title, hint: group, run: () => go(to) })),
  );
  const machines = instances.toReversed().flatMap((instance) => {
    const { id, state, ssh } = instance;
    const to = `/dashboard/instances/${id}`;
    const title = titleOf(instance);
    const open = { key: to, title, hint: title === id ? STATES[state] : `${id} · ${STATES[state]}`, run: () => go(to) };
    const login = { key: `ssh ${id}`, title: `Copy the SSH command of ${title}`, hint: id };
    const copies = ssh === null || state !== 'running' ? [] : [{ ...login, run: () => void copy(ssh.command) }];
    const acts = actionsOf(instance).map(([name, verb]) => ({
      key: `${name} ${id}`,
      title: `${verb}: ${title}`,
      hint: id,
      run: () => act({ name, instance }),
    }));
    return [open, ...copies, ...acts];
  });
  const projects = suggestions.value
    .filter((name) => name !== tenant.value)
    .map((name) => ({
      key: `project ${name}`,
      title: `Show project ${name}`,
      hint: 'Project',
      run: () => void choose(name),
    }));
  const end = { key: 'sign out', title: 'Sign out', hint: 'Account', run: () => void attempt(signOut) };
  return [...pages, ...machines, ...projects, end];
}

/** Finds pages, instances and actions by words of theirs. */
function Palette({ close, act }: { close: () => void; act: (chosen: Chosen) => void }) {
  const { value: list } = useRead<List<InstanceRecord>>('/instances');
  const [query, setQuery] = useState('');
  const [at, setAt] = useState(0);
  const chosen = useRef<HTMLLIElement>(null);
  const words = query.toLowerCase().split(/\s+/);
  const found = entriesOf(list?.data ?? [], act)
    .filter(({ title, hint }) => words.every((word) => `${title} ${hint}`.toLowerCase().includes(word)))
    .slice(0, MOST);
  const here = Math.min(at, found.length - 1);
  useEffect(() => chosen.current?.scrollIntoView({ block: 'nearest' }), [here]);
  function run(entry: Entry | undefined): void {
    if (entry === undefined) return;
    close();
    entry.run();
  }
  return (
    <Dialog id="palette" title="Go to" onClose={close}>
      <input
        role="combobox"
        aria-label="Page, instance or action"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-autocomplete="list"
        aria-activedescendant={here < 0 ? undefined : `palette-${here}`}
        autocomplete="off"
        spellcheck={false}
        autofocus
        value={query}
        onInput={(event) => {
          setQuery(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={(event) => {
          if (event.key === 'Enter') run(found[here]);
          else if (event.key === 'ArrowDown') setAt(Math.min(here + 1, found.length - 1));
          else if (event.key === 'ArrowUp') setAt(Math.max(here - 1, 0));
          else return;
          event.preventDefault();
        }}
      />
      <ul id="palette-list" role="listbox" aria-label="Found">
        {found.map((entry, index) => (
          <li
            key={entry.key}
            id={`palette-${index}`}
            role="option"
            aria-selected={index === here}
            ref={index === here ? chosen : undefined}
            onClick={() => run(entry)}
          >
            {entry.title} <span class="soft">{entry.hint}</span>
          </li>
        ))}
      </ul>
      {found.length === 0 && <p class="soft">Nothing has these words.</p>}
    </Dialog>
  );
}

const KEYS = /Mac|iPhone|iPad/.test(navigator.userAgent) ? '⌘K' : 'Ctrl K';

/** The button of the palette, and the palette, which Ctrl-K or Cmd-K opens too. */
export function Search() {
  const [isOpen, setOpen] = useState(false);
  const [chosen, setChosen] = useState<Chosen>();
  // The keys work as soon as the button is seen: an effect would come a frame later, in a hidden page much later.
  useLayoutEffect(() => {
    function onKey(event: KeyboardEvent): void {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey)
        return;
      // A shell has Ctrl-K itself, and a dialog that is open keeps what was typed into it.
      if ((event.target as Element).closest('.terminal-box') ?? document.querySelector('dialog[open]')) return;
      event.preventDefault();
      setOpen(true);
    }
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  return (
    <>
      <button id="search" class="small" type="button" onClick={() => setOpen(true)}>
        <span class="words">Go to</span> <kbd>{KEYS}</kbd>
      </button>
      {isOpen && <Palette close={() => setOpen(false)} act={setChosen} />}
      {chosen !== undefined && <ActionDialog {...chosen} close={() => setChosen(undefined)} />}
    </>
  );
}
