import type { KubeObject } from '../../../src/kube/types.ts';
import type { Json } from '../../../src/lib/json.ts';
import {
  compared,
  type Comparison,
  cut,
  difference,
  type Fields,
  fieldsOf,
  fieldsV1,
  intersection,
  isNone,
  merged,
  noFields,
  removed,
  union,
  withParents,
} from './fields.ts';
import type { Kind, Schema } from './kinds.ts';

/** Who writes, and how: each of these owns fields of its own. */
export interface Manager {
  name: string;
  operation: 'Apply' | 'Update';
  subresource: 'status' | undefined;
}

/** What each manager of an object owns, by its manager as text. */
export type Managers = ReadonlyMap<string, Fields>;

export const NO_MANAGERS: Managers = new Map();

/** Fields that others own with another value, by manager. */
export class FieldConflict extends Error {
  override name = 'FieldConflict';
  readonly fields: Managers;

  constructor(fields: Managers) {
    super('Other managers own these fields.');
    this.fields = fields;
  }
}

/** Fields of no manager. */
const NOBODYS: Fields = {
  isMember: true,
  under: new Map([
    ['f:apiVersion', { isMember: true, under: new Map() }],
    ['f:kind', { isMember: true, under: new Map() }],
    [
      'f:metadata',
      {
        isMember: true,
        under: new Map(
          ['name', 'namespace', 'creationTimestamp', 'uid', 'generation', 'managedFields', 'resourceVersion'].map(
            (name) => [`f:${name}`, { isMember: true, under: new Map<string, Fields>() }],
          ),
        ),
      },
    ],
  ]),
};

function textOf({ operation, subresource, name }: Manager): string {
  return `${operation}/${subresource ?? ''}/${name}`;
}

/** What a write to this part of an object does not reach. */
function unreached({ type, hasStatus }: Kind, subresource: Manager['subresource']): readonly (readonly string[])[] {
  if (subresource === undefined) return hasStatus ? [['f:status']] : [];
  if (type.kind !== 'Pod') return [['f:metadata'], ['f:spec']];
  return [['f:spec'], ['f:metadata', 'f:ownerReferences'], ['f:metadata', 'f:deletionTimestamp']];
}

function withoutNone(managers: Iterable<readonly [string, Fields]>): Managers {
  return new Map([...managers].filter(([, fields]) => !isNone(fields)));
}

/** The managers after one took what differs: nobody else has it any more. */
function taken(managers: Managers, self: string, { added, modified, removed: gone }: Comparison): Managers {
  const lost = union(union(added, modified), gone);
  return withoutNone([...managers].map(([text, fields]) => [text, text === self ? fields : difference(fields, lost)]));
}

/** The managers after a POST, a PUT or a patch other than an apply. */
export function afterUpdate(
  managers: Managers,
  manager: Manager,
  { before, after, schema }: { before?: KubeObject; after: KubeObject; schema: Schema },
): Managers {
  const comparison = compared(before ?? { metadata: {} }, after, schema);
  const { added, modified, removed: gone } = comparison;
  if ([added, modified, gone].every(isNone)) return managers;
  const self = textOf(manager);
  const own = union(union(difference(managers.get(self) ?? noFields(), gone), modified), added);
  return withoutNone(new Map([...taken(managers, self, comparison), [self, difference(own, NOBODYS)]]));
}

/** Without what the manager applied last, does not name any more, and nobody else owns. */
function pruned(object: unknown, last: Fields, managers: Managers, schema: Schema): unknown {
  const lasted = withParents(last, schema);
  const all = (value: unknown): Fields =>
    withParents(value === undefined ? noFields() : fieldsOf(value, schema), schema);
  const whole = all(object);
  const owned = withParents([...managers.values()].reduce(union, noFields()), schema);
  const kept = union(all(removed(object, lasted, schema)), owned);
  const restored = all(removed(object, difference(whole, kept), schema));
  return removed(object, intersection(difference(whole, restored), lasted), schema);
}

/** A server-side apply. Throws FieldConflict. */
export function applied(
  kind: Kind,
  live: { object: KubeObject | undefined; managers: Managers },
  { config, manager, isForced }: { config: KubeObject; manager: Manager; isForced: boolean },
): { object: KubeObject; managers: Managers } {
  const schema = kind.fields;
  const reached = (fields: Fields): Fields => unreached(kind, manager.subresource).reduce(cut, fields);
  const self = textOf(manager);
  const before = live.object ?? { metadata: {} };
  const last = live.managers.get(self);
  const own = reached(fieldsOf(config, schema));
  const managers = new Map([...live.managers, [self, difference(own, NOBODYS)]]);
  const both = merged(before, config, schema);
  const object = (
    last === undefined ? both : pruned(both, last, new Map([...managers, [self, own]]), schema)
  ) as KubeObject;
  const { added, modified, removed: gone } = compared(before, object, schema);
  const comparison = { added: reached(added), modified: reached(modified), removed: reached(gone) };
  const written = union(comparison.added, comparison.modified);
  const conflicts = withoutNone(
    [...live.managers].map(([text, fields]) => [text, text === self ? noFields() : intersection(fields, written)]),
  );
  if (conflicts.size > 0 && !isForced) throw new FieldConflict(conflicts);
  return { object, managers: taken(managers, self, comparison) };
}

export function managedFields(managers: Managers): Json[] {
  return [...managers].map(([text, fields]) => {
    const [operation, subresource, ...name] = text.split('/');
    return {
      manager: name.join('/'),
      operation,
      ...(subresource !== '' && { subresource }),
      fieldsV1: fieldsV1(fields),
    };
  });
}
