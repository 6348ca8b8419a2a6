import { maySeeFleet, session, view } from '../state.ts';

export interface Place {
  /** The first part of its path. */
  name: string;
  to: string;
  title: string;
}

const GROUPS: readonly { title: string; places: readonly Place[] }[] = [
  {
    title: 'Compute',
    places: [
      { name: '', to: '/dashboard', title: 'Instances' },
      { name: 'rent', to: '/dashboard/rent', title: 'Rent' },
      { name: 'templates', to: '/dashboard/templates', title: 'Templates' },
    ],
  },
  { title: 'Models', places: [{ name: 'models', to: '/dashboard/models', title: 'Models' }] },
  { title: 'Billing', places: [{ name: 'usage', to: '/dashboard/usage', title: 'Usage' }] },
  {
    title: 'Settings',
    places: [
      { name: 'ssh-keys', to: '/dashboard/ssh-keys', title: 'SSH keys' },
      { name: 'registries', to: '/dashboard/registries', title: 'Registries' },
      { name: 'api-access', to: '/dashboard/api-access', title: 'API keys' },
      { name: 'webhooks', to: '/dashboard/webhooks', title: 'Webhooks' },
    ],
  },
  { title: 'Operator', places: [{ name: 'fleet', to: '/dashboard/fleet', title: 'Fleet' }] },
];

function isShown({ name }: Place): boolean {
  if (name === 'fleet') return maySeeFleet.value;
  return name !== 'webhooks' || session.value?.webhooks === true;
}

/** The places that the person may go to, in groups of which none is empty. */
export function shownGroups(): { title: string; places: Place[] }[] {
  return GROUPS.map(({ title, places }) => ({ title, places: places.filter(isShown) })).filter(
    ({ places }) => places.length > 0,
  );
}

/** Whether there is a view of this name. */
export function isPlace(name: string): boolean {
  return name === 'instances' || GROUPS.some(({ places }) => places.some((place) => place.name === name));
}

export function isHere(name: string): boolean {
  const [place = ''] = view.value;
  return name === place || (name === '' && place === 'instances');
}

export function titleHere(): string {
  return GROUPS.flatMap(({ places }) => places).find(({ name }) => isHere(name))?.title ?? 'Dashboard';
}
