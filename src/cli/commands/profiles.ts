import { CliFailure, EXIT } from '../failure.ts';
import { didYouMean } from '../nearest.ts';
import type { Input } from '../options.ts';
import { printList } from '../print-list.ts';
import type { Session } from '../session.ts';
import { chooseProfile, DEFAULT, profileOf, profilesOf, storedAccess } from '../settings.ts';

/** `berth profiles`: the logins of this machine. */
export async function profiles(input: Input, session: Session): Promise<void> {
  const { env } = session;
  const current = await profileOf(env);
  const names = (await profilesOf(env)).toSorted();
  const data = await Promise.all(
    names.map(async (name) => {
      const access = await storedAccess({ ...env, BERTH_PROFILE: name }).catch(() => undefined);
      return { name, url: access?.url ?? null, current: name === current };
    }),
  );
  await printList(
    input,
    session,
    { object: 'list', data },
    {
      titles: ['NAME', 'SERVER', 'CURRENT'],
      rows: data.map((one) => [one.name, one.url ?? 'cannot be read', one.current ? 'yes' : '']),
      empty: 'You are not signed in. Run berth login URL.',
    },
  );
}

/** `berth profiles use`: chooses the login of the next commands. */
export async function useProfile({ operands }: Input, { env, terminal }: Session): Promise<void> {
  const name = operands[0] ?? DEFAULT;
  const known = await profilesOf(env);
  if (!known.includes(name)) {
    const next = didYouMean(name, known) ?? `Run berth --profile ${name} login URL.`;
    throw new CliFailure(`There is no profile ${name}.`, { exitCode: EXIT.notFound, next });
  }
  await chooseProfile(env, name);
  terminal.say(`The next commands use the profile ${name}.`);
}
