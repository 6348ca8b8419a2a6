import type { Secret } from '../kube/types.ts';
import { isObject } from '../lib/json.ts';
import { DOCKER_CONFIG, dockerConfig, isDockerHub } from './registry-credential.ts';

type Auths = Record<string, unknown>;

/** A registry with a path, Docker Hub by the name that images have. */
function named(place: string): string {
  const [host = '', ...path] = place.split('/');
  return isDockerHub(host) ? ['docker.io', ...path].join('/') : place;
}

/** Registry and path of an image, as the kubelet looks up credentials for it: `registry.example:5000/team/app`. */
export function repositoryOf(image: string): string {
  const [tagged = ''] = image.split('@');
  const path = tagged.replace(/:[^:/]*$/, '');
  const [first = '', ...rest] = path.split('/');
  const hasHost = rest.length > 0 && (/[.:A-Z]/.test(first) || first === 'localhost');
  if (hasHost) return named(path);
  return `docker.io/${rest.length === 0 ? 'library/' : ''}${path}`;
}

/** A key of `auths` as the kubelet reads it: without scheme, version and last slash. */
function placeOf(key: string): string {
  const place = key.replace(/^https?:\/\//, '').replace(/\/v[12](?=\/|$)/, '');
  return named(place.replace(/\/$/, ''));
}

function covers(place: string, repository: string): boolean {
  return repository === place || repository.startsWith(`${place}/`);
}

function authsOf({ data }: Secret): Auths {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(data?.[DOCKER_CONFIG] ?? '', 'base64').toString('utf8'));
    return isObject(parsed) && isObject(parsed['auths']) ? parsed['auths'] : {};
  } catch {
    return {};
  }
}

/**
 * The credentials for these images and for nothing else, of all that the operator's Secrets have: a tenant's own image in
 * the same registry is not pulled with them. The key that names the most of an image's path wins.
 */
export function credentialsFor(images: readonly string[], secrets: readonly Secret[]): Auths {
  const given = secrets
    .flatMap((secret) => Object.entries(authsOf(secret)))
    .map(([key, auth]) => ({ place: placeOf(key), auth }))
    .toSorted((left, right) => right.place.length - left.place.length);
  const found = new Set(images.map(repositoryOf));
  const auths: Auths = {};
  for (const repository of [...found].toSorted()) {
    const match = given.find(({ place }) => covers(place, repository));
    if (match !== undefined) auths[repository] = match.auth;
  }
  return auths;
}

/** What a Secret that pulls these images is made of; undefined when none of the operator's Secrets has credentials for them. */
export function pullContentFor(
  images: readonly string[],
  secrets: readonly (Secret | undefined)[],
): ReturnType<typeof dockerConfig> | undefined {
  const auths = credentialsFor(
    images,
    secrets.filter((secret) => secret !== undefined),
  );
  return Object.keys(auths).length === 0 ? undefined : dockerConfig(auths);
}
