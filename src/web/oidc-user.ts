import type { User } from './reviews.ts';

/** How the claims of a person become a user of Kubernetes. As the API server's flags --oidc-* do. */
export interface ClaimSettings {
  username: string;
  usernamePrefix: string;
  /** Absent: no groups but system:authenticated. */
  groups: string | undefined;
  groupsPrefix: string;
}

/** The provider's answer names nobody whom the cluster could know. The message is for the operator. */
export class ClaimError extends Error {
  override name = 'ClaimError';
}

const MOST_GROUPS = 256;
const MAX_NAME = 1024;
/** Names of Kubernetes itself, among them system:masters, who may do everything. No provider gives them. */
const RESERVED = 'system:';
/** What the API server says of everybody whom it knows. */
const EVERYBODY = 'system:authenticated';

function checked(name: string, claim: string): string {
  if (name.length > MAX_NAME) throw new ClaimError(`The claim ${claim} is longer than ${MAX_NAME} characters.`);
  if (!name.startsWith(RESERVED)) return name;
  throw new ClaimError(`The claim ${claim} says ${name.slice(0, 80)}, and names that begin with system: are reserved.`);
}

function namesOf(value: unknown, claim: string): string[] {
  if (value === undefined || value === null) return [];
  const names = Array.isArray(value) ? value : [value];
  if (names.length > MOST_GROUPS) throw new ClaimError(`The claim ${claim} has more than ${MOST_GROUPS} groups.`);
  if (names.every((name) => typeof name === 'string')) return names;
  throw new ClaimError(`The claim ${claim} is no list of names.`);
}

/** The groups in the claims, with their prefix; undefined when the claims have none. */
function groupsOf(claims: Readonly<Record<string, unknown>>, settings: ClaimSettings): string[] | undefined {
  const { groups: claim, groupsPrefix } = settings;
  if (claim === undefined || claims[claim] === undefined) return undefined;
  return namesOf(claims[claim], claim).map((name) => checked(`${groupsPrefix}${name}`, claim));
}

/**
 * The user that an ID token stands for. Throws `ClaimError`. As in the API server (apiserver/plugin/pkg/authenticator/
 * token/oidc), an address that the provider has not verified names nobody.
 */
export function userOfClaims(claims: Readonly<Record<string, unknown>>, settings: ClaimSettings): User {
  const username = nameOf(claims, settings);
  if (!isVerified(claims, settings)) throw new ClaimError('The provider has not verified the address of the person.');
  const groups = groupsOf(claims, settings) ?? [];
  return { username, groups: [...groups, EVERYBODY] };
}

function nameOf(claims: Readonly<Record<string, unknown>>, { username: claim, usernamePrefix }: ClaimSettings): string {
  const name = claims[claim];
  if (typeof name !== 'string' || name === '') throw new ClaimError(`The provider names nobody in the claim ${claim}.`);
  return checked(`${usernamePrefix}${name}`, claim);
}

/** As in the API server: an address is taken as verified where the provider does not say. */
function isVerified(claims: Readonly<Record<string, unknown>>, { username: claim }: ClaimSettings): boolean {
  return claim !== 'email' || claims['email_verified'] === undefined || claims['email_verified'] === true;
}

/** Whether the claims name groups, and be it none. */
export function namesGroups(claims: Readonly<Record<string, unknown>>, { groups }: ClaimSettings): boolean {
  return groups !== undefined && claims[groups] !== undefined;
}

/**
 * The user with the groups that the provider names now. Undefined when it says that the person has another name by now,
 * or no verified address. Providers leave out a claim that is empty, and some have groups in the ID token alone: what a
 * missing claim means, the sign-in has shown.
 */
export function renewedUser(
  known: { user: User; namesGroups: boolean },
  claims: Readonly<Record<string, unknown>>,
  settings: ClaimSettings,
): User | undefined {
  const { user } = known;
  if (claims[settings.username] !== undefined) {
    if (!isVerified(claims, settings) || nameOf(claims, settings) !== user.username) return undefined;
  }
  const groups = groupsOf(claims, settings) ?? (known.namesGroups ? [] : undefined);
  return groups === undefined ? user : { ...user, groups: [...groups, EVERYBODY] };
}
