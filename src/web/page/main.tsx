import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { AccessView } from './access/access.tsx';
import { RegistriesView } from './access/registries.tsx';
import { KeysView } from './access/ssh-keys.tsx';
import { FleetView } from './fleet/fleet.tsx';
import { InstanceView } from './instances/instance.tsx';
import { InstancesView } from './instances/list.tsx';
import { ModelsView } from './models/models.tsx';
import { Alert, Link } from './parts/controls.tsx';
import { shortUser } from './parts/words.ts';
import { RentView } from './rent/rent.tsx';
import { SignIn } from './sign-in.tsx';
import {
  attempt,
  begin,
  choose,
  maySeeFleet,
  note,
  path,
  problem,
  session,
  signOut,
  suggestions,
  tenant,
  view,
} from './state.ts';
import { TemplatesView } from './templates/templates.tsx';
import { UsageView } from './usage/usage.tsx';

const PLACES = [
  { name: '', to: '/dashboard', title: 'Instances' },
  { name: 'rent', to: '/dashboard/rent', title: 'Rent' },
  { name: 'templates', to: '/dashboard/templates', title: 'Templates' },
  { name: 'models', to: '/dashboard/models', title: 'Models' },
  { name: 'usage', to: '/dashboard/usage', title: 'Usage' },
  { name: 'ssh-keys', to: '/dashboard/ssh-keys', title: 'SSH keys' },
  { name: 'registries', to: '/dashboard/registries', title: 'Registries' },
  { name: 'api-access', to: '/dashboard/api-access', title: 'API access' },
  { name: 'fleet', to: '/dashboard/fleet', title: 'Fleet' },
] as const;

function TenantChooser() {
  return (
    <form
      class="tenant"
      onSubmit={(event) => {
        event.preventDefault();
        const field = event.currentTarget.elements.namedItem('namespace') as HTMLInputElement;
        void choose(field.value);
      }}
    >
      <label for="namespace">Namespace</label>
      <input
        id="namespace"
        name="namespace"
        list="namespaces"
        required
        pattern="[a-z0-9]([a-z0-9\-]{0,61}[a-z0-9])?"
        spellcheck={false}
        autocomplete="off"
        defaultValue={tenant.value}
        key={tenant.value}
      />
      <datalist id="namespaces">
        {suggestions.value.map((name) => (
          <option value={name} key={name} />
        ))}
      </datalist>
      <button type="submit" class="small">
        Show
      </button>
    </form>
  );
}

/** A view that there is not: an address that was typed, or that an older page had. */
function NoView() {
  return (
    <section class="card" aria-labelledby="no-view">
      <h1 id="no-view">There is no such page</h1>
      <p>
        Nothing is at <code>{path.value}</code>. <Link to="/dashboard">Show your instances</Link>
      </p>
    </section>
  );
}

/** Views that have an address for each of their things. */
const WITH_ID: ReadonlySet<string> = new Set(['instances', 'rent']);

function Current() {
  const [place = '', id = '', ...more] = view.value;
  const isKnown = place === 'instances' || PLACES.some(({ name }) => name === place);
  if (!isKnown || more.length > 0 || (id !== '' && !WITH_ID.has(place))) return <NoView />;
  // Another tenant is another view: nothing of the one before may stand under its name.
  const key = tenant.value;
  if (place === 'instances' && id !== '') return <InstanceView key={`${key}/${id}`} id={id} />;
  if (place === 'rent') return <RentView key={`${key}/${id}`} template={id} />;
  if (place === 'templates') return <TemplatesView key={key} />;
  if (place === 'models') return <ModelsView key={key} />;
  if (place === 'usage') return <UsageView key={key} />;
  if (place === 'registries') return <RegistriesView key={key} />;
  if (place === 'fleet') return <FleetView key={key} />;
  if (place === 'ssh-keys') return <KeysView key={key} />;
  if (place === 'api-access') return <AccessView key={key} />;
  return <InstancesView key={key} />;
}

function isHere(name: string): boolean {
  const [place = ''] = view.value;
  return name === place || (name === '' && place === 'instances');
}

/** All views, the tenant and the person. On a phone they are behind a button, so that the header is one row. */
function Header({ title, signedIn }: { title: string; signedIn: boolean }) {
  const [isOpen, setOpen] = useState(false);
  // Who chose a view wants to see it.
  useEffect(() => setOpen(false), [path.value, tenant.value, signedIn]);
  return (
    <header
      class={isOpen ? 'open' : undefined}
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || !isOpen) return;
        setOpen(false);
        document.getElementById('menu')?.focus();
      }}
    >
      <Link class="brand" to="/dashboard">
        <img src="/dashboard/icon.svg" alt="" width="28" height="28" />
        Berth
      </Link>
      <button
        id="menu"
        class="small"
        type="button"
        aria-expanded={isOpen}
        aria-controls="places"
        onClick={() => setOpen(!isOpen)}
      >
        <span class="hidden">Menu, now at </span>
        {title}
      </button>
      <nav id="places" aria-label="Main">
        {signedIn &&
          PLACES.filter(({ name }) => name !== 'fleet' || maySeeFleet.value).map(({ name, to, title }) => (
            <Link to={to} key={name} current={isHere(name)}>
              {title}
            </Link>
          ))}
        <a href="/docs">API reference</a>
      </nav>
      {signedIn && <TenantChooser />}
      {signedIn && (
        <div class="who">
          <span title={session.value?.username}>{shortUser(session.value?.username ?? '')}</span>
          <button class="quiet" type="button" onClick={() => void attempt(signOut)}>
            Sign out
          </button>
        </div>
      )}
    </header>
  );
}

/** What stands around every view, and the view. */
function Page() {
  const signedIn = session.value !== null && session.value !== undefined;
  const title = signedIn ? (PLACES.find(({ name }) => isHere(name))?.title ?? 'Dashboard') : 'Sign in';
  useEffect(() => {
    document.title = `${title} · Berth`;
  }, [title]);
  return (
    <>
      <Header title={title} signedIn={signedIn} />
      <main id="main" tabIndex={-1}>
        <Alert id="alert" text={problem.value} />
        {session.value === null && <SignIn />}
        {signedIn && <Current />}
      </main>
      <p class="hidden" role="status">
        {note.value}
      </p>
    </>
  );
}

const root = document.getElementById('page');
if (root === null) throw new Error('The document has no #page.');
render(<Page />, root);
void begin();
