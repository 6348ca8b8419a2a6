import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Link } from '../parts/controls.tsx';
import { note, path, tenant } from '../state.ts';
import { Account } from './account.tsx';
import { Bell } from './bell.tsx';
import { Money, useInstances, useMoney } from './money.tsx';
import { Search } from './palette.tsx';
import { isHere, shownGroups, titleHere } from './places.ts';

/** Milliseconds for which a toast stays. */
const TOAST_MS = 6000;

function Brand() {
  return (
    <Link class="brand" to="/dashboard" label="Berth">
      <img src="/dashboard/icon.svg" alt="" width="26" height="26" />
      <span>Berth</span>
    </Link>
  );
}

/** What the last action did. */
export function Toast() {
  const text = note.value;
  useEffect(() => {
    if (text === '') return undefined;
    const timer = setTimeout(() => {
      note.value = '';
    }, TOAST_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <p class={text === '' ? 'hidden' : 'toast'} role="status">
      {text}
    </p>
  );
}

function Places() {
  return (
    <>
      {shownGroups().map(({ title, places }) => (
        <div key={title}>
          <p class="group" id={`group-${title}`}>
            {title}
          </p>
          <ul aria-labelledby={`group-${title}`}>
            {places.map((place) => (
              <li key={place.name}>
                <Link to={place.to} current={isHere(place.name)}>
                  {place.title}
                </Link>
              </li>
            ))}
          </ul>
        </div>
      ))}
      <p class="foot">
        <a href="/docs/">Documents</a>
        <a href="/docs/api">API reference</a>
      </p>
    </>
  );
}

/** What stands around every view of somebody who is signed in. Where there is no room, the places are behind a button. */
export function Shell({ children }: { children: ComponentChildren }) {
  const [isOpen, setOpen] = useState(false);
  const instances = useInstances();
  const sums = useMoney(instances);
  // Who chose a view wants to see it.
  useEffect(() => setOpen(false), [path.value]);
  return (
    <div
      class={isOpen ? 'shell open' : 'shell'}
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || !isOpen) return;
        setOpen(false);
        document.getElementById('menu')?.focus();
      }}
    >
      <header>
        <Brand />
        <button
          id="menu"
          class="small"
          type="button"
          aria-expanded={isOpen}
          aria-controls="places"
          onClick={() => setOpen(!isOpen)}
        >
          <span class="hidden">Menu, now at </span>
          {titleHere()}
        </button>
        <Money sums={sums} />
        <Search />
        <Bell instances={instances} />
        <Account key={tenant.value} />
      </header>
      <nav id="places" aria-label="Main">
        <Money sums={sums} />
        <Places />
      </nav>
      {children}
    </div>
  );
}

/** What stands around the sign-in. */
export function Entrance({ children }: { children: ComponentChildren }) {
  return (
    <div class="shell bare">
      <header>
        <Brand />
        <a href="/docs/">Documents</a>
        <a href="/docs/api">API reference</a>
      </header>
      {children}
    </div>
  );
}
