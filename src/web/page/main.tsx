import { type ComponentType, render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { AccessView } from './access/access.tsx';
import { RegistriesView } from './access/registries.tsx';
import { KeysView } from './access/ssh-keys.tsx';
import { WebhooksView } from './access/webhooks.tsx';
import { FleetView } from './fleet/fleet.tsx';
import { InstanceView } from './instances/instance.tsx';
import { InstancesView } from './instances/list.tsx';
import { ModelsView } from './models/models.tsx';
import { Alert, Link } from './parts/controls.tsx';
import { RentView } from './rent/rent.tsx';
import { isPlace, titleHere } from './shell/places.ts';
import { Entrance, Shell, Toast } from './shell/shell.tsx';
import { SignIn } from './sign-in.tsx';
import { begin, path, problem, session, tenant, view } from './state.ts';
import { TemplatesView } from './templates/templates.tsx';
import { UsageView } from './usage/usage.tsx';

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

/** Each part with its states. Only a local cluster serves its script, which nobody else needs. */
function Parts() {
  const [Sheet, setSheet] = useState<ComponentType | null>();
  useEffect(() => {
    void import('./parts/sheet.tsx').then(
      (found) => setSheet(() => found.Sheet),
      () => setSheet(null),
    );
  }, []);
  if (Sheet === null) return <NoView />;
  return Sheet === undefined ? null : <Sheet />;
}

/** Views that have an address for each of their things. */
const WITH_ID: ReadonlySet<string> = new Set(['instances', 'rent']);

function Current() {
  const [place = '', id = '', ...more] = view.value;
  if (view.value.join('/') === 'parts') return <Parts />;
  if (!isPlace(place) || more.length > 0 || (id !== '' && !WITH_ID.has(place))) return <NoView />;
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
  if (place === 'webhooks') return <WebhooksView key={key} />;
  return <InstancesView key={key} />;
}

/** What stands around every view, and the view. */
function Page() {
  const signedIn = session.value !== null && session.value !== undefined;
  const title = signedIn ? titleHere() : 'Sign in';
  useEffect(() => {
    document.title = `${title} · Berth`;
  }, [title]);
  const main = (
    <main id="main" tabIndex={-1}>
      <Alert id="alert" text={problem.value} />
      {session.value === null && <SignIn />}
      {signedIn && <Current />}
    </main>
  );
  return (
    <>
      {signedIn ? <Shell key={tenant.value}>{main}</Shell> : <Entrance>{main}</Entrance>}
      <Toast />
    </>
  );
}

const root = document.getElementById('page');
if (root === null) throw new Error('The document has no #page.');
render(<Page />, root);
void begin();
